//! Draws in which a limit that changed was once found again much too late, each for another reason.

mod judged;

use penstock_scenarios::{Case, Figure, Rule, named};
use penstock_simulator::Enforcement;

/// The limit is found again in the time that the scenario allows, after it fell and after it rose.
fn is_found_again(name: &str, enforcement: Enforcement, seed: u64) {
    let scenario = named(name).expect("it comes with the program").expect("it can be read");
    let judged = [scenario.judge(Rule::Adaptive, Case { enforcement, seed })];
    for held in scenario.held(Rule::Adaptive, &judged) {
        let is_settling = matches!(held.figure, Figure::SettledAfterCut | Figure::SettledAfterRaise);
        assert!(
            held.holds || !is_settling,
            "{name}, {enforcement:?}, seed {seed}: {} is {:?}",
            held.figure,
            held.values
        );
    }
}

/// Requests that went out before a step back were refused after it, which looked as if everything were.
#[test]
fn late_refusals_do_not_shut_a_bucket_that_was_measured() {
    is_found_again("steps-3500", Enforcement::SecondBucket, 3);
}

/// A window that held less than before was taken for one of another length.
#[test]
fn a_window_keeps_its_length_when_its_limit_changes() {
    is_found_again("steps-10000", Enforcement::FixedTenSeconds, 4);
    is_found_again("steps-10000", Enforcement::FixedMinute, 4);
}

/// One closure, which began as a lone refusal, counted twice as one that others had caused.
#[test]
fn a_limit_that_fell_is_no_sign_of_others() {
    is_found_again("steps-500", Enforcement::SlidingMinute, 2);
}

/// A search used up what the bucket had saved, and what it gave from then on looked like what others had left.
#[test]
fn a_bucket_that_gives_what_it_gave_before_is_shared_with_nobody() {
    is_found_again("steps-3500", Enforcement::MinuteBucket, 12);
}

/// The closure of a changed limit was counted once for each round of refusals in it, and proved a window of a minute.
#[test]
fn one_closure_does_not_prove_a_window() {
    is_found_again("steps-500", Enforcement::FixedTenSeconds, 12);
}

/// By chance a window that starts anew had held as much as one in which refused requests count.
#[test]
fn two_closures_do_not_prove_that_refused_requests_count() {
    is_found_again("steps-500", Enforcement::FixedTenSeconds, 2);
}

/// The pace itself came to use up a sliding window, which looked as if others had.
#[test]
fn who_holds_as_much_as_before_used_it_up() {
    is_found_again("steps-500", Enforcement::SlidingMinute, 10);
}

/// What a bucket allows is known from its edge, which is met at even intervals, so a raise is found soon after one of them.
#[test]
fn a_raise_of_a_bucket_is_found_within_a_minute_on_average() {
    for (enforcement, most) in [(Enforcement::MinuteBucket, 25.0), (Enforcement::SecondBucket, 60.0)] {
        let raises = (1..=6).map(|seed| {
            judged::figure("steps-500", enforcement, seed, Figure::SettledAfterRaise).expect("it was found")
        });
        let mean = raises.sum::<f64>() / 6.0;
        assert!(mean <= most, "{enforcement:?}: found after {mean:.0} s");
    }
}
