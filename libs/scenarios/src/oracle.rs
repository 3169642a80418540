//! A client that knows the limit, and when it changes: what the others are measured against.

use std::time::Duration;

use penstock_simulator::rate::{Answer, Controller, Outcome, Wish};

/// The share of the limit that it uses, so that the smallest disturbance does not get it refused.
const SHARE: f64 = 0.997;

/// How long it rests when it is refused all the same.
const REST: Duration = Duration::from_secs(1);

/// Sends evenly, at a share of a limit that changes at known times.
#[derive(Debug)]
pub(crate) struct Oracle {
    /// From when on, how many requests a minute.
    limits: Vec<(Duration, f64)>,
    free_at: Duration,
}

impl Oracle {
    /// Knows these limits, in requests per minute from a time on, in order.
    pub(crate) fn new(limits: Vec<(Duration, f64)>) -> Self {
        Self { limits, free_at: Duration::ZERO }
    }

    fn limit(&self, now: Duration) -> Option<f64> {
        self.limits.iter().rev().find(|(from, _)| *from <= now).map(|(_, limit)| *limit)
    }

    fn wish(&self) -> Wish {
        Wish { send_at: Some(self.free_at), wake_at: None }
    }
}

impl Controller for Oracle {
    fn start(&mut self, now: Duration) -> Wish {
        self.free_at = now;
        self.wish()
    }

    fn departed(&mut self, now: Duration, _index: u64, _input_tokens: u32, _max_tokens: u32) -> Wish {
        let interval = self.limit(now).map_or(0.0, |limit| 60.0 / (SHARE * limit));
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(interval);
        self.wish()
    }

    fn answered(&mut self, now: Duration, answer: &Answer) -> Wish {
        if matches!(answer.outcome, Outcome::Refused { .. }) {
            self.free_at = self.free_at.max(now + REST);
        }
        self.wish()
    }

    fn woken(&mut self, _now: Duration) -> Wish {
        self.wish()
    }

    fn per_minute(&self) -> Option<f64> {
        self.limit(self.free_at).map(|limit| SHARE * limit)
    }
}
