//! Limits that the provider states.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// What is reached in a draw: the part that is used, and after how many seconds 90 % of the limit was in use.
fn reached(name: &str, enforcement: Enforcement, seed: u64) -> (f64, f64) {
    let of = |figure| judged::figure(name, enforcement, seed, figure).expect("it is measured");
    (of(Figure::Utilisation), of(Figure::TimeTo90Percent))
}

/// Before the first answer a job has asked for more than a bucket of one second holds. Those refusals, which state a limit of
/// which much is left, were taken for a contradiction: nothing that was stated was believed for ten minutes.
#[test]
fn what_is_stated_is_believed_though_the_first_requests_were_refused() {
    for seed in [4, 28] {
        let of = |figure| judged::figure("tokens-headers", Enforcement::SecondBucket, seed, figure);
        let [used, refused] =
            [Figure::Utilisation, Figure::Refused].map(|figure| of(figure).expect("it is measured"));
        assert!(used > 0.985 && refused < 0.0005, "seed {seed}: {used:.3} used, {refused:.5} refused");
    }
}

/// It was tried whether the limit is one of a shorter period, which it was not. The way back to what was stated then took more
/// than a minute.
#[test]
fn what_is_stated_is_returned_to_after_more_was_tried() {
    let (used, _) = reached("headers-honest-30000", Enforcement::FixedTenSeconds, 5);
    assert!(used > 0.985, "{used:.3} used");
}

/// A window was taken for one of a minute though the headers told when each was over. What the last minute held was then little
/// right after a raise.
#[test]
fn a_window_is_as_long_as_it_is_stated() {
    for (enforcement, seed) in [(Enforcement::FixedTenSeconds, 3), (Enforcement::SlidingMinute, 11)] {
        let (used, _) = reached("headers-honest-steps-500", enforcement, seed);
        assert!(used > 0.984, "{enforcement:?}, seed {seed}: {used:.3} used");
    }
}

/// One request in a hundred that is refused at what is stated says little against it.
#[test]
fn the_first_refusal_at_what_is_stated_does_not_halve_the_rate() {
    let (_, after) = reached("headers-honest-500", Enforcement::SecondBucket, 11);
    assert!(after <= 3.0, "90 % only after {after} s");
}

/// Ten requests fit into ten seconds. Whoever asked during the rest of them was refused with fifty of sixty left, and believed
/// nothing any more for ten minutes.
#[test]
fn who_is_refused_for_the_rest_of_a_window_goes_on_to_believe() {
    for seed in [6, 9] {
        let (used, after) = reached("headers-honest-60", Enforcement::FixedTenSeconds, seed);
        assert!(used > 0.985 && after <= 3.0, "seed {seed}: {used:.3} used, 90 % after {after} s");
    }
}
