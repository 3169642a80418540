//! How many requests a provider let in during the last minute. Pure.

use std::time::Duration;

/// Seconds that are looked back on.
const SECONDS: u64 = 60;
const SLOTS: usize = 60;
/// With fewer whole seconds a rate says little.
const FEWEST: u64 = 10;

/// Requests by second, over the last minute.
#[derive(Debug, Clone)]
pub(super) struct Lately {
    began: Option<u64>,
    /// The second that each slot is about, and its requests less those that were refused.
    slots: [(u64, i32); SLOTS],
}

impl Default for Lately {
    fn default() -> Self {
        Self { began: None, slots: [(0, 0); SLOTS] }
    }
}

impl Lately {
    /// A request went out.
    pub(super) fn sent(&mut self, now: Duration) {
        self.began.get_or_insert(now.as_secs());
        *self.slot(now.as_secs()) += 1;
    }

    /// One that went out was refused.
    pub(super) fn refused(&mut self, now: Duration) {
        *self.slot(now.as_secs()) -= 1;
    }

    /// Requests a minute that were let in, over the whole seconds of the last minute; `None` at first.
    pub(super) fn per_minute(&self, now: Duration) -> Option<f64> {
        let now = now.as_secs();
        let covered = now.saturating_sub(self.began?).min(SECONDS - 1);
        if covered < FEWEST {
            return None;
        }
        let recent = |second: u64| second < now && now - second <= covered;
        let sum: i32 = self.slots.iter().filter(|(second, _)| recent(*second)).map(|(_, count)| count).sum();
        #[expect(clippy::cast_precision_loss, reason = "at most a minute")]
        let seconds = covered as f64;
        Some(f64::from(sum.max(0)) * 60.0 / seconds)
    }

    fn slot(&mut self, second: u64) -> &mut i32 {
        let index = usize::try_from(second % SECONDS).expect("invariant: less than a minute");
        let slot = &mut self.slots[index];
        if slot.0 != second {
            *slot = (second, 0);
        }
        &mut slot.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_let_in_is_told_over_the_last_minute() {
        let mut lately = Lately::default();
        assert_eq!(lately.per_minute(seconds(100)), None);
        for second in 0..200 {
            let each = if second < 100 { 10 } else { 2 };
            (0..each).for_each(|_| lately.sent(seconds(second)));
            if second == 5 {
                assert_eq!(lately.per_minute(seconds(5)), None, "too early");
            }
            if second == 30 {
                assert_eq!(lately.per_minute(seconds(30)), Some(600.0));
            }
        }
        assert_eq!(lately.per_minute(seconds(200)), Some(120.0));
        for second in 200..260 {
            lately.sent(seconds(second));
            lately.refused(seconds(second));
        }
        assert_eq!(lately.per_minute(seconds(260)), Some(0.0));
        assert_eq!(lately.per_minute(seconds(1_000)), Some(0.0), "an idle minute");
    }
}
