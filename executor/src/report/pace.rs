//! When the next report is due. Pure: told what became of the last one, with a clock reading and a draw from 0 to 1.

use std::time::Duration;

use tokio::time::Instant;

/// The least time between two reports, however much there is to tell.
const LEAST: Duration = Duration::from_secs(1);
/// The longest time between two reports, whatever the operator asks for or however long nobody has heard one.
const LONGEST_ASKED: Duration = Duration::from_mins(10);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(1);
/// Reports of many runs that began together are spread by this part of their interval, to either side.
const SPREAD: f64 = 0.1;

/// When the next report is due.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    every: Duration,
    next: Instant,
    soonest: Instant,
    /// Reports in a row that nobody heard.
    failures: u32,
}

impl Pace {
    /// The first report is due at once.
    pub(super) fn new(now: Instant, every: Duration) -> Self {
        Self { every, next: now, soonest: now, failures: 0 }
    }

    /// When it is due though there is nothing new.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// When it is due if there is something new.
    pub(super) fn soonest(&self) -> Instant {
        self.soonest
    }

    /// A report was heard; the operator perhaps asks for the next one after some time.
    pub(super) fn heard(&mut self, now: Instant, after: Option<Duration>, draw: f64) {
        let every = after.unwrap_or(self.every).clamp(LEAST, LONGEST_ASKED);
        self.failures = 0;
        self.soonest = now + LEAST;
        self.next = now + every.mul_f64(1.0 + SPREAD * (2.0 * draw - 1.0)).max(LEAST);
    }

    /// A report was not heard: the next waits for twice as long as this one did, half of that by chance, and hurries for
    /// nothing.
    pub(super) fn failed(&mut self, now: Instant, draw: f64) {
        let wait = LEAST.saturating_mul(2u32.saturating_pow(self.failures.saturating_add(1)));
        self.failures = self.failures.saturating_add(1);
        self.next = now + wait.min(LONGEST_BACK_OFF).mul_f64(0.5 + 0.5 * draw);
        self.soonest = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(from: Instant, to: Instant) -> f64 {
        (to - from).as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_is_heard_is_followed_at_the_interval_or_soon_when_there_is_news() {
        let now = Instant::now();
        let mut pace = Pace::new(now, Duration::from_secs(10));
        assert_eq!((pace.next(), pace.soonest()), (now, now));
        for (after, draw, expected) in [
            (None, 0.0, 9.0),
            (None, 0.5, 10.0),
            (None, 1.0, 11.0),
            (Some(30), 0.5, 30.0),
            (Some(1), 0.0, 1.0),
            (Some(1_000_000), 0.5, 600.0),
        ] {
            pace.heard(now, after.map(Duration::from_secs), draw);
            assert!((seconds(now, pace.next()) - expected).abs() < 1e-6, "{after:?} {draw}");
            assert!((seconds(now, pace.soonest()) - 1.0).abs() < f64::EPSILON);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_more_and_more_seldom_up_to_a_minute_and_news_hurry_nothing() {
        let now = Instant::now();
        let mut pace = Pace::new(now, Duration::from_secs(10));
        let mut waits = Vec::new();
        for _ in 0..40 {
            pace.failed(now, 1.0);
            assert_eq!(pace.next(), pace.soonest());
            waits.push(seconds(now, pace.next()));
        }
        assert_eq!(waits[..7], [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        assert!((waits[39] - 60.0).abs() < f64::EPSILON);
        pace.failed(now, 0.0);
        assert!((seconds(now, pace.next()) - 30.0).abs() < f64::EPSILON);
        pace.heard(now, None, 0.5);
        pace.failed(now, 0.0);
        assert!((seconds(now, pace.next()) - 1.0).abs() < f64::EPSILON);
    }
}
