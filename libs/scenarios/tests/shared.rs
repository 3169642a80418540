//! Draws in which two jobs that hear nothing of each other once divided a limit very unevenly, each for another reason.

mod judged;

use penstock_scenarios::Figure;
use penstock_simulator::Enforcement;

/// Nobody is below a fifth of the limit in the long run.
fn is_divided(name: &str, enforcement: Enforcement, seed: u64) {
    let fairness = judged::figure(name, enforcement, seed, Figure::Fairness);
    assert!(
        fairness.is_some_and(|fairness| fairness >= 0.74),
        "{name}, {enforcement:?}, seed {seed}: {fairness:?}"
    );
}

/// Each took what it held of a sliding window for all of it, though that was less each time that it was used up.
#[test]
fn a_sliding_window_that_holds_less_each_time_is_shared() {
    is_divided("two-jobs-10000", Enforcement::SlidingMinute, 20);
    is_divided("two-jobs-10000", Enforcement::SlidingMinute, 12);
}

/// A lone refusal at the other's edge ended the start at a thirtieth of what there was.
#[test]
fn a_start_goes_on_past_a_lone_refusal() {
    is_divided("two-jobs-10000", Enforcement::SecondBucket, 1);
}

/// The one took what the other left it for a limit of its own, which rose by little each time that it looked.
#[test]
fn a_window_that_holds_a_little_more_each_time_is_shared() {
    is_divided("two-jobs-10000", Enforcement::FixedTenSeconds, 10);
}

/// Both probed the same windows, so each found what it had held before, for as long as they ran.
#[test]
fn two_jobs_do_not_probe_the_same_windows_for_ever() {
    is_divided("two-jobs-10000", Enforcement::FixedMinute, 19);
}
