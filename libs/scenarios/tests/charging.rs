//! How a provider charges tokens, which nobody says.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// The part of a bucket of one second that is used.
fn used(name: &str, seed: u64) -> f64 {
    judged::figure(name, Enforcement::SecondBucket, seed, Figure::Utilisation).expect("it is measured")
}

/// Its first refusal on trial was taken for the end of a window, in which nothing comes back: for good, at two thirds of the
/// limit.
#[test]
fn tokens_that_come_back_are_used() {
    let used = used("tokens-refunded", 5);
    assert!(used > 0.93, "{used:.3} of the limit are used");
}

/// Taken to come back where they are charged as they are produced, with no more to show for it.
#[test]
fn tokens_that_do_not_come_back_after_all_are_given_up() {
    let used = used("tokens-actual-untold", 8);
    assert!(used > 0.9, "{used:.3} of the limit are used");
}
