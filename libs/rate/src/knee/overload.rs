//! What a server's 503s say about the number in flight, and for how long.

use std::time::Duration;

use super::share;

/// After an overload the number stays below this share of what was in flight.
const BELOW: f64 = 0.97;
/// For so long, after which it may be tried again.
const LASTS: Duration = Duration::from_mins(10);
/// Within this time after a cut, further overloads cut again only if they are more than a few.
const ROUND: Duration = Duration::from_mins(1);
/// One overload in this many answers is few: it came whatever was in flight.
const FEW: u32 = 33;

/// The server had too much to do with more than this in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    pub(super) most: u32,
    until: Duration,
    cut_at: Duration,
    /// Answers and refusals since the cut.
    answers: u32,
    refusals: u32,
}

impl Overload {
    pub(super) fn new(now: Duration, with: u32) -> Self {
        let until = now.saturating_add(LASTS);
        Self { most: share(with, BELOW).max(1), until, cut_at: now, answers: 0, refusals: 0 }
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }

    pub(super) fn answered(&mut self) {
        self.answers = self.answers.saturating_add(1);
    }

    /// Another overload, of a request sent then. Whether the number is cut again.
    pub(super) fn refused(&mut self, now: Duration, sent_at: Duration, with: u32) -> bool {
        self.refusals = self.refusals.saturating_add(1);
        let many = u64::from(self.refusals) * u64::from(FEW) > u64::from(self.answers);
        let cuts = sent_at >= self.cut_at && (many || now >= self.cut_at.saturating_add(ROUND));
        if cuts {
            let again = Self::new(now, with);
            *self = Self { most: again.most.min(self.most), until: self.until, ..again };
        }
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn later(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    #[test]
    fn a_burst_of_refusals_is_one_cut() {
        let mut overload = Overload::new(START, 200);
        assert_eq!(overload.most, 194);
        assert!(!overload.refused(later(1), Duration::ZERO, 150));
        assert!(overload.refused(later(1), later(1), 150));
        assert_eq!(overload.most, 145);
    }

    #[test]
    fn a_few_that_come_whatever_is_in_flight_cut_once_a_minute_at_most() {
        let mut overload = Overload::new(START, 200);
        (0..40).for_each(|_| overload.answered());
        assert!(!overload.refused(later(59), later(59), 190));
        assert!(overload.refused(later(60), later(60), 190));
    }

    #[test]
    fn it_is_over_ten_minutes_after_the_first_whatever_comes_later() {
        let mut overload = Overload::new(START, 200);
        assert!(overload.refused(later(300), later(300), 190));
        assert!(!overload.is_over(later(599)) && overload.is_over(later(600)));
    }
}
