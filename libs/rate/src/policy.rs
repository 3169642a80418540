//! The modes behind one face: each call goes to the mode in force.
//!
//! What all modes share lies in [`Learner`](crate::Learner); how a mode finds its rate lies in the mode's own file.

use std::time::Duration;

use crate::aimd::{Aimd, Change};
use crate::event::Cost;
use crate::fixed::Fixed;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::snapshot::PolicyRecord;

/// A mode and what it has learned.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    Fixed(Fixed),
    Aimd(Aimd),
}

impl Policy {
    pub(crate) fn new(mode: Mode, limits: Limits, now: Duration) -> Self {
        match mode {
            Mode::Fixed => Self::Fixed(Fixed::new(limits, now)),
            Mode::Aimd => Self::Aimd(Aimd::new(limits, now)),
        }
    }

    pub(crate) fn restore(record: &PolicyRecord, limits: Limits, p95: Option<u32>, now: Duration) -> Self {
        match record {
            PolicyRecord::Fixed(record) => Self::Fixed(Fixed::restore(record, limits, now)),
            PolicyRecord::Aimd(record) => Self::Aimd(Aimd::restore(record, limits, p95, now)),
        }
    }

    pub(crate) fn record(&self, now: Duration) -> PolicyRecord {
        match self {
            Self::Fixed(fixed) => PolicyRecord::Fixed(fixed.record(now)),
            Self::Aimd(aimd) => PolicyRecord::Aimd(aimd.record(now)),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Fixed(_) => Mode::Fixed,
            Self::Aimd(_) => Mode::Aimd,
        }
    }

    /// Makes the oldest change that is due by `now`, if any.
    pub(crate) fn step(&mut self, now: Duration) -> Option<(Duration, Change)> {
        match self {
            Self::Fixed(_) => None,
            Self::Aimd(aimd) => aimd.step(now),
        }
    }

    pub(crate) fn changes_at(&self) -> Option<Duration> {
        match self {
            Self::Fixed(_) => None,
            Self::Aimd(aimd) => aimd.changes_at(),
        }
    }

    pub(crate) fn sent(&mut self, now: Duration, cost: Cost) {
        match self {
            Self::Fixed(fixed) => fixed.sent(now, cost),
            Self::Aimd(aimd) => aimd.sent(now),
        }
    }

    /// An answer came, which made this the 95th percentile of output tokens.
    pub(crate) fn succeeded(&mut self, now: Duration, p95: Option<u32>) {
        match self {
            Self::Fixed(_) => {}
            Self::Aimd(aimd) => aimd.measured(now, p95),
        }
    }

    pub(crate) fn refused(&mut self, now: Duration) -> Option<Change> {
        match self {
            Self::Fixed(_) => None,
            Self::Aimd(aimd) => aimd.refused(now),
        }
    }

    pub(crate) fn free_at(&self) -> Duration {
        match self {
            Self::Fixed(fixed) => fixed.free_at(),
            Self::Aimd(aimd) => aimd.free_at(),
        }
    }

    pub(crate) fn target(&self) -> Option<u32> {
        match self {
            Self::Fixed(fixed) => fixed.target(),
            Self::Aimd(aimd) => Some(aimd.target()),
        }
    }

    pub(crate) fn effective_rpm(&self) -> Option<f64> {
        match self {
            Self::Fixed(fixed) => fixed.effective_rpm(),
            Self::Aimd(aimd) => Some(aimd.effective_rpm()),
        }
    }

    pub(crate) fn explain(&self) -> String {
        match self {
            Self::Fixed(fixed) => fixed.explain(),
            Self::Aimd(aimd) => aimd.explain(),
        }
    }
}
