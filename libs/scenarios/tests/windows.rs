//! Windows that start anew at even intervals.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// A window of ten seconds was taken for one that slides, which others seemed to use as well, or for one that holds a request
/// less than it did.
#[test]
fn a_window_of_ten_seconds_is_used_to_its_last_request() {
    let of = |figure| {
        let values = (9..=12).map(|seed| {
            judged::figure("steady-500", Enforcement::FixedTenSeconds, seed, figure).expect("it is measured")
        });
        values.sum::<f64>() / 4.0
    };
    let [used, refused] = [Figure::Utilisation, Figure::Refused].map(of);
    assert!(used > 0.985 && refused < 0.004, "{used:.4} used, {refused:.5} refused");
}

/// What ten seconds had held before the limit fell was taken for proof that the window was longer: it was used up again and again
/// for as long as that was remembered.
#[test]
fn what_a_window_held_before_a_cut_says_nothing_of_its_length() {
    let after = judged::figure("steps-500", Enforcement::FixedTenSeconds, 1, Figure::SettledAfterCut);
    assert!(after.is_some_and(|seconds| seconds <= 20.0), "{after:?} s after the cut");
}

/// However soon a window is used up it holds the same, so nothing is lost by looking fast for what it holds more.
#[test]
fn what_a_window_holds_more_is_found_within_little_more_than_one() {
    for (name, enforcement, most) in [
        ("steps-3500", Enforcement::FixedMinute, 75.0),
        ("steps-10000", Enforcement::FixedMinute, 75.0),
        ("steps-10000", Enforcement::FixedTenSeconds, 30.0),
    ] {
        let after = judged::figure(name, enforcement, 1, Figure::SettledAfterRaise);
        assert!(after.is_some_and(|seconds| seconds <= most), "{name}, {enforcement:?}: {after:?} s");
    }
}

/// A sliding minute was taken for one that starts anew. What it had admitted since it seemed to, in a few seconds, was taken for all
/// that it holds.
#[test]
fn a_window_that_opens_before_it_can_be_over_was_not_used_up() {
    let used = judged::figure("tokens-unnamed", Enforcement::SlidingMinute, 1, Figure::Utilisation);
    assert!(used.is_some_and(|used| used > 0.98), "{used:?} used");
}
