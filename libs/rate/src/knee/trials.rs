//! In which direction, by how much and when the search tries another number.

use std::time::Duration;

use super::share;

/// Size of a trial, as a share of the number: coarse as long as trials change something.
const COARSE: f64 = 0.25;
const FINE: f64 = 0.12;
/// Between two trials that change nothing: at first, and at most.
const SHORTEST_HOLD: Duration = Duration::from_secs(30);
const LONGEST_HOLD: Duration = Duration::from_mins(3);
/// As many in vain follow at once: a fine one each way after a coarse one.
const AT_ONCE: u32 = 2;

/// The way in which trials go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    upwards: bool,
    step: f64,
    /// How long to hold after the next trial in vain.
    hold: Duration,
    next_at: Duration,
    /// Trials in a row that changed nothing.
    vain: u32,
}

impl Trials {
    /// Coarse ones from now on. Fewer are tried first: doubling rather overshoots.
    pub(super) fn new(now: Duration) -> Self {
        Self { upwards: false, step: COARSE, hold: SHORTEST_HOLD, next_at: now, vain: 0 }
    }

    pub(super) fn are_due(&self, now: Duration) -> bool {
        now >= self.next_at
    }

    /// The number to try from here, in the other direction where this one has come to its end; none if both have.
    pub(super) fn next(&mut self, here: u32, highest: u32) -> Option<u32> {
        let step = share(here, self.step).max(1);
        let above = here.saturating_add(step).min(highest);
        let below = here.saturating_sub(step).max(1);
        let (first, second) = if self.upwards { (above, below) } else { (below, above) };
        if first == here {
            self.upwards = !self.upwards;
            return (second != here).then_some(second);
        }
        Some(first)
    }

    /// Goes on in the same direction at once.
    pub(super) fn after_success(self, now: Duration) -> Self {
        Self { upwards: self.upwards, ..Self::new(now) }
    }

    /// Goes on in the other direction, in smaller steps, and later and later.
    pub(super) fn after_failure(self, now: Duration) -> Self {
        let vain = self.vain.saturating_add(1);
        let at_once = vain <= AT_ONCE;
        let wait = if at_once { Duration::ZERO } else { self.hold };
        let hold = if at_once { self.hold } else { self.hold.saturating_mul(2).min(LONGEST_HOLD) };
        Self { upwards: !self.upwards, step: FINE, hold, next_at: now.saturating_add(wait), vain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_in_vain_get_finer_and_rarer_and_change_direction() {
        let mut now = Duration::ZERO;
        let mut trials = Trials::new(now);
        let mut course = Vec::new();
        for _ in 0..7 {
            let waited = trials.next_at.saturating_sub(now);
            now = trials.next_at;
            assert!(trials.are_due(now));
            course.push((waited.as_secs(), trials.next(100, 1_000).unwrap()));
            trials = trials.after_failure(now);
        }
        let expected = [(0, 75), (0, 112), (0, 88), (30, 112), (60, 88), (120, 112), (180, 88)];
        assert_eq!(course, expected);
        assert_eq!(trials.after_success(now).next(100, 1_000), Some(125));
    }

    #[test]
    fn at_either_end_there_is_only_one_direction() {
        let trials = Trials::new(Duration::ZERO);
        assert_eq!(trials.clone().next(1, 10), Some(2));
        assert_eq!(trials.clone().next(1, 1), None);
        assert_eq!(trials.after_failure(Duration::ZERO).next(10, 10), Some(9));
    }
}
