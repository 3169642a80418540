//! What a provider states about one quantity, weighed against what the learner sees of it.

use std::time::Duration;

use super::lane::Lane;
use crate::event::Hint;
use crate::hint::{Belief, Hinted, OwnUse};

/// What was admitted in the last minute is summed up once in so many seconds: hints come with every answer.
const SUMMED_EVERY: f64 = 1.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Stated {
    hinted: Hinted,
    summed: Option<Summed>,
}

/// What was admitted in the minute before.
#[derive(Clone, Copy, Debug)]
struct Summed {
    at: f64,
    admitted: f64,
}

/// What a job may use of a limit as it is stated, in units a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    pub(super) per_second: f64,
    /// How long the windows are in which it is counted, in seconds, and how many units one holds.
    pub(super) windows: Option<(f64, f64)>,
}

/// When and to which request something was said, and how many jobs share the limit that it is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) now: Duration,
    /// When the lanes' time began.
    pub(super) began: Duration,
    pub(super) sent_at: Duration,
    pub(super) jobs: f64,
}

impl Stated {
    /// A request was not refused for this quantity, and its answer said this.
    pub(super) fn observe(&mut self, said: Said, hint: Hint, lane: Option<&mut Lane>) {
        self.hinted.admitted(said.sent_at);
        if hint.limit.is_some() {
            let own = self.own_use(said, lane);
            self.hinted.observe(said.now, said.sent_at, hint, own);
        }
    }

    /// A request was refused for this quantity, and the refusal said this.
    pub(super) fn refused(&mut self, said: Said, hint: Hint, lane: Option<&mut Lane>) {
        let own = self.own_use(said, lane);
        self.hinted.refused(said.now, said.sent_at, hint, own);
    }

    /// Units per second that are believed to be allowed to all jobs together.
    pub(super) fn believed(&self, now: Duration) -> Option<f64> {
        self.hinted.belief(now).map(|belief| belief.per_second)
    }

    /// What each of so many jobs may use of it.
    pub(super) fn part(&self, now: Duration, jobs: f64) -> Option<Allowed> {
        let Belief { per_second, windows, .. } = self.hinted.belief(now)?;
        let windows = windows.map(|windows| (windows.length.as_secs_f64(), windows.holds / jobs));
        Some(Allowed { per_second: per_second / jobs, windows })
    }

    pub(super) fn changes_at(&self, now: Duration) -> Option<Duration> {
        self.hinted.changes_at(now)
    }

    fn own_use(&mut self, said: Said, lane: Option<&mut Lane>) -> OwnUse {
        let Some(lane) = lane else { return OwnUse::default() };
        let now = said.now.saturating_sub(said.began).as_secs_f64();
        let summed = match self.summed {
            Some(summed) if now < summed.at + SUMMED_EVERY => summed,
            _ => Summed { at: now, admitted: lane.admitted_last_minute(now) },
        };
        self.summed = Some(summed);
        OwnUse { per_second: lane.rate() * said.jobs, last_minute: summed.admitted * said.jobs }
    }
}
