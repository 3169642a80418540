//! Even pacing whose rate may change at every event: the generic cell rate algorithm with a burst of one.
//!
//! Owns when the next unit may go at a given rate; which rate that should be is decided elsewhere.

use std::time::Duration;

/// How late a caller's timer may wake without losing throughput. Its lateness is made up for at the next request,
/// so at high rates a burst is at most what goes out in this time.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// One minute, in which all rates are counted.
const MINUTE_NANOS: u128 = 60_000_000_000;

/// The time one unit takes at `per_minute` units each of which weighs `weight`: `weight / per_minute` minutes.
///
/// Rounded up to a nanosecond, so that pacing never exceeds the rate.
pub(crate) fn interval(weight: u64, per_minute: u64) -> Duration {
    from_nanos((u128::from(weight) * MINUTE_NANOS).div_ceil(u128::from(per_minute.max(1))))
}

fn from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// An evenly spaced lane: each request keeps it busy for its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// When the lane is free: the theoretical arrival time of the next request.
    free_at: Duration,
}

impl Pace {
    /// A lane that is free.
    pub(crate) fn new(now: Duration) -> Self {
        Self { free_at: now }
    }

    /// A lane in the state that [`record`](Self::record) told.
    pub(crate) fn restore(now: Duration, recorded: Duration) -> Self {
        Self { free_at: now.saturating_add(recorded).saturating_sub(TICK) }
    }

    /// How long the lane is busy, counted from a tick ago, since lateness of less than that is still made up for.
    pub(crate) fn record(self, now: Duration) -> Duration {
        self.free_at.saturating_add(TICK).saturating_sub(now)
    }

    /// The earliest time for the next request.
    pub(crate) fn free_at(self) -> Duration {
        self.free_at
    }

    /// A request went out that takes `interval` at the present rate.
    pub(crate) fn take(&mut self, now: Duration, interval: Duration) {
        self.free_at = self.free_at.max(now.saturating_sub(TICK)).saturating_add(interval);
    }

    /// The rate changes: what was not waited for yet takes longer or shorter in proportion.
    pub(crate) fn change(&mut self, now: Duration, from: Duration, to: Duration) {
        let owed = self.free_at.saturating_sub(now).as_nanos();
        if owed > 0 && from != to && from > Duration::ZERO {
            let owed = owed.saturating_mul(to.as_nanos()).div_ceil(from.as_nanos());
            self.free_at = now.saturating_add(from_nanos(owed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn requests_are_spaced_evenly() {
        let gap = interval(1, 500);
        assert_eq!(gap, Duration::from_millis(120));
        let mut pace = Pace::new(SECOND);
        let mut sent = Vec::new();
        for _ in 0..4 {
            sent.push(pace.free_at().as_millis());
            pace.take(pace.free_at(), gap);
        }
        assert_eq!(sent, [1_000, 1_120, 1_240, 1_360]);
    }

    #[test]
    fn a_timer_that_wakes_late_loses_nothing_within_a_tick() {
        let gap = interval(1, 30_000);
        let mut pace = Pace::new(Duration::ZERO);
        for _ in 0..30_000 {
            pace.take(pace.free_at() + Duration::from_millis(1), gap);
        }
        assert_eq!(pace.free_at().as_secs(), 60);
    }

    #[test]
    fn an_idle_lane_saves_up_no_more_than_a_tick() {
        let mut pace = Pace::new(Duration::ZERO);
        pace.take(100 * SECOND, SECOND);
        assert_eq!(pace.free_at() + TICK, 101 * SECOND);
    }

    #[test]
    fn a_restored_lane_is_as_busy_or_as_late_as_it_was() {
        for free_at in [10 * SECOND, 3 * SECOND, Duration::from_millis(2_998)] {
            let recorded = Pace { free_at }.record(3 * SECOND);
            assert_eq!(Pace::restore(8 * SECOND, recorded).free_at(), free_at + 5 * SECOND);
        }
    }

    #[test]
    fn a_change_of_rate_counts_from_now_on() {
        let mut pace = Pace::new(Duration::ZERO);
        pace.take(SECOND, 6 * SECOND + TICK);
        // Half of the six seconds is over; the other half is worth two seconds at a rate of one in four.
        pace.change(4 * SECOND, 6 * SECOND, 4 * SECOND);
        assert_eq!(pace.free_at(), 6 * SECOND);
    }

    #[test]
    fn an_interval_is_rounded_up_and_saturates() {
        assert_eq!(interval(1, 7), Duration::from_nanos(8_571_428_572));
        assert_eq!(interval(u64::MAX, 1), Duration::from_nanos(u64::MAX));
        assert_eq!(interval(0, 1), Duration::ZERO);
    }
}
