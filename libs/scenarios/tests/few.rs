//! Limits of a few requests a minute, where each refused one is a large share.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// A figure of four draws, on average.
fn mean(name: &str, enforcement: Enforcement, figure: Figure) -> f64 {
    let values = (1..=4).map(|seed| judged::figure(name, enforcement, seed, figure).expect("it is measured"));
    values.sum::<f64>() / 4.0
}

/// Whether it is open was asked as often as the limit admits, and each question counted: it never opened.
#[test]
fn asking_does_not_keep_a_limit_shut_that_counts_what_it_refuses() {
    for enforcement in [Enforcement::MinuteBucket, Enforcement::SlidingMinute] {
        let used = mean("refusals-count-10", enforcement, Figure::Utilisation);
        assert!(used > 0.8, "{enforcement:?}: {used:.3} of the limit are used");
    }
}

/// A bucket of one request refused every second one, until half of what it gives was taken for its limit.
#[test]
fn a_search_that_went_too_far_is_taken_back_in_a_few_steps() {
    let used = mean("steady-10", Enforcement::SecondBucket, Figure::Utilisation);
    assert!(used > 0.955, "{used:.3} of the limit are used");
}

/// Each look beyond a window's limit cost a second refusal, to know better when it opens.
#[test]
fn a_window_of_few_requests_is_waited_for() {
    let refused = mean("steady-10", Enforcement::FixedMinute, Figure::Refused);
    assert!(refused < 0.055, "{refused:.3} are refused");
}

/// Windows of ten seconds that hold four requests were taken for ones that slide, or their closures explained together with one
/// of the time before the limit rose.
#[test]
fn a_limit_of_few_requests_that_has_risen_is_found() {
    for seed in [7, 16, 45, 55] {
        let enforcement = Enforcement::FixedTenSeconds;
        let after = judged::figure("steps-60", enforcement, seed, Figure::SettledAfterRaise);
        assert!(after.is_some_and(|seconds| seconds <= 165.0), "seed {seed}: {after:?} s after the raise");
    }
}
