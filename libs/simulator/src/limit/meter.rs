//! What every way of enforcing a quota has in common.
//!
//! Owns the trait and the choice of the implementation; the arithmetic is in the neighbouring files.

use std::time::Duration;

use super::{Enforcement, Quota, bucket::Bucket, sliding::SlidingLog, window::FixedWindow};

/// Counts use against one quota. `now` is the time since the server started and never goes back.
pub(super) trait Meter: std::fmt::Debug + Send {
    /// How long until `cost` fits; zero when it fits now. A cost above the capacity fits when nothing is used.
    fn wait(&mut self, now: Duration, cost: f64) -> Duration;

    /// Takes `cost`, whether it fits or not.
    fn charge(&mut self, now: Duration, cost: f64);

    /// Takes `cost` for something that was refused.
    fn charge_refused(&mut self, now: Duration, cost: f64);

    /// Gives back a part of what was charged at `charged_at`, as far as that still counts.
    fn refund(&mut self, now: Duration, charged_at: Duration, amount: f64);

    /// From now on another amount is allowed; what counts as used goes on counting.
    fn allow(&mut self, now: Duration, allowance: Allowance);

    /// How much counts as used now.
    fn used(&mut self, now: Duration) -> f64;

    /// How long until nothing counts as used, if nothing more is charged.
    fn reset(&mut self, now: Duration) -> Duration;
}

/// What a quota amounts to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// At once: in a window, or as the depth of a bucket.
    pub(super) at_once: f64,
    /// In the long run.
    pub(super) per_second: f64,
}

/// How the amounts of a quota are counted.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Bucket,
    Fixed,
    Sliding,
}

/// The shape of an enforcement, and over how many seconds it counts.
fn shape(enforcement: Enforcement) -> (Shape, u16) {
    match enforcement {
        Enforcement::MinuteBucket => (Shape::Bucket, 60),
        Enforcement::SecondBucket => (Shape::Bucket, 1),
        Enforcement::Bucket { seconds } => (Shape::Bucket, seconds.get()),
        Enforcement::FixedMinute => (Shape::Fixed, 60),
        Enforcement::FixedTenSeconds => (Shape::Fixed, 10),
        Enforcement::FixedWindow { seconds } => (Shape::Fixed, seconds.get()),
        Enforcement::SlidingMinute => (Shape::Sliding, 60),
        Enforcement::SlidingWindow { seconds } => (Shape::Sliding, seconds.get()),
    }
}

/// What a quota amounts to, in the way in which it is enforced.
pub(super) fn allowance(quota: Quota) -> Allowance {
    let (_, seconds) = shape(quota.enforcement);
    let per_second = as_amount(quota.per_minute) / 60.0;
    // Less than one at once would never let a request pass.
    Allowance { at_once: (per_second * f64::from(seconds)).max(1.0), per_second }
}

/// The meter of a quota. `phase` in 0..1 places the fixed windows.
pub(super) fn meter(quota: Quota, phase: f64, now: Duration) -> Box<dyn Meter> {
    let (shape, seconds) = shape(quota.enforcement);
    let Allowance { at_once, per_second } = allowance(quota);
    let length = Duration::from_secs(seconds.into());
    match shape {
        Shape::Bucket => Box::new(Bucket::full(at_once, per_second, now)),
        Shape::Fixed => Box::new(FixedWindow::new(at_once, length, phase)),
        Shape::Sliding => Box::new(SlidingLog::new(at_once, length)),
    }
}

/// A count as an amount that can be divided. Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no quota comes near 2^53")]
pub(crate) fn as_amount(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Enforcement; 5] = [
        Enforcement::MinuteBucket,
        Enforcement::SecondBucket,
        Enforcement::FixedMinute,
        Enforcement::FixedTenSeconds,
        Enforcement::SlidingMinute,
    ];

    /// How many unit requests pass in `minutes` when one is tried every 10 ms.
    fn admitted(enforcement: Enforcement, per_minute: u64, minutes: u64) -> u64 {
        let mut meter = meter(Quota { per_minute, enforcement }, 0.3, Duration::ZERO);
        (0..minutes * 6_000).fold(0, |admitted, tick| {
            let now = Duration::from_millis(tick * 10);
            let fits = meter.wait(now, 1.0).is_zero();
            if fits {
                meter.charge(now, 1.0);
            }
            admitted + u64::from(fits)
        })
    }

    #[test]
    fn in_the_long_run_each_way_of_enforcing_admits_its_quota() {
        for enforcement in ALL {
            let passed = admitted(enforcement, 300, 10);
            // The bucket starts full and a window is cut by the start and by the end, hence one quota of slack.
            assert!((2_990..=3_300).contains(&passed), "{enforcement:?} admitted {passed} in ten minutes");
        }
    }

    #[test]
    fn below_one_a_second_a_second_bucket_still_admits_its_quota() {
        let passed = admitted(Enforcement::SecondBucket, 10, 6);
        assert!((59..=61).contains(&passed), "{passed} in six minutes at ten a minute");
    }

    proptest! {
        #[test]
        fn after_the_named_wait_the_cost_fits(
            which in 0..ALL.len(), per_minute in 1..5_000_u64, cost in 1..3_000_u32, tries in 1..200_u32, phase in 0.0..1.0,
        ) {
            let mut meter = meter(Quota { per_minute, enforcement: ALL[which] }, phase, Duration::ZERO);
            let mut now = Duration::ZERO;
            for _ in 0..tries {
                now += Duration::from_millis(7);
                if meter.wait(now, f64::from(cost)).is_zero() {
                    meter.charge(now, f64::from(cost));
                }
            }
            let later = now + meter.wait(now, f64::from(cost)) + Duration::from_millis(1);
            prop_assert_eq!(meter.wait(later, f64::from(cost)), Duration::ZERO);
        }
    }
}
