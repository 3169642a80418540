//! The modes behind one face: each call goes to the mode in force.
//!
//! What all modes share lies in [`Learner`](crate::Learner); how a mode finds its rate lies in the mode's own file.

use std::time::Duration;

use crate::adaptive::{Adaptive, Words};
use crate::aimd::Aimd;
use crate::event::{Cost, Verdict};
use crate::fixed::Fixed;
use crate::gauges::Gauges;
use crate::in_flight::Flight;
use crate::limits::Limits;
use crate::mode::Mode;
use crate::profile::Profile;
use crate::snapshot::PolicyRecord;

/// A mode and what it has learned.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    Fixed(Fixed),
    Aimd(Aimd),
    Adaptive(Box<Adaptive>),
}

impl Policy {
    pub(crate) fn new(mode: Mode, profile: Profile, limits: Limits, now: Duration) -> Self {
        match mode {
            Mode::Fixed => Self::Fixed(Fixed::new(limits, now)),
            Mode::Aimd => Self::Aimd(Aimd::new(limits, now)),
            Mode::Adaptive => Self::Adaptive(Box::new(Adaptive::new(profile, limits, now))),
        }
    }

    pub(crate) fn restore(
        record: &PolicyRecord,
        profile: Profile,
        limits: Limits,
        p95: Option<u32>,
        now: Duration,
    ) -> Self {
        match record {
            PolicyRecord::Fixed(record) => Self::Fixed(Fixed::restore(record, limits, now)),
            PolicyRecord::Aimd(record) => Self::Aimd(Aimd::restore(record, limits, p95, now)),
            PolicyRecord::Adaptive(record) => {
                Self::Adaptive(Box::new(Adaptive::restore(record, profile, limits, now)))
            }
        }
    }

    pub(crate) fn record(&self, now: Duration) -> PolicyRecord {
        match self {
            Self::Fixed(fixed) => PolicyRecord::Fixed(fixed.record(now)),
            Self::Aimd(aimd) => PolicyRecord::Aimd(aimd.record(now)),
            Self::Adaptive(adaptive) => PolicyRecord::Adaptive(adaptive.record()),
        }
    }

    /// Other limits of the user hold from now on.
    pub(crate) fn limit(&mut self, now: Duration, limits: Limits) {
        match self {
            Self::Fixed(fixed) => fixed.limit(now, limits),
            Self::Aimd(aimd) => aimd.limit(now, limits),
            Self::Adaptive(adaptive) => adaptive.limit(now, limits),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Fixed(_) => Mode::Fixed,
            Self::Aimd(_) => Mode::Aimd,
            Self::Adaptive(_) => Mode::Adaptive,
        }
    }

    pub(crate) fn adaptive(&mut self) -> Option<&mut Adaptive> {
        match self {
            Self::Fixed(_) | Self::Aimd(_) => None,
            Self::Adaptive(adaptive) => Some(adaptive),
        }
    }

    /// Makes the oldest change that is due by `now`, if any, and says in words what it was and when.
    pub(crate) fn step(&mut self, now: Duration) -> Option<(Duration, String)> {
        match self {
            Self::Fixed(_) => None,
            Self::Aimd(aimd) => aimd.step(now).map(|(at, change)| (at, change.to_string())),
            Self::Adaptive(adaptive) => adaptive.step(now).map(|words| (now, words)),
        }
    }

    pub(crate) fn changes_at(&self, now: Duration) -> Option<Duration> {
        match self {
            Self::Fixed(_) => None,
            Self::Aimd(aimd) => aimd.changes_at(),
            Self::Adaptive(adaptive) => adaptive.changes_at(now),
        }
    }

    pub(crate) fn sent(&mut self, now: Duration, cost: Cost) {
        match self {
            Self::Fixed(fixed) => fixed.sent(now, cost),
            Self::Aimd(aimd) => aimd.sent(now),
            Self::Adaptive(adaptive) => adaptive.sent(now, cost),
        }
    }

    /// Something became of a request. `p95` are the output tokens of recent answers, `in_flight` the requests that
    /// are left, both as of now.
    pub(crate) fn verdict(
        &mut self,
        now: Duration,
        flight: Flight,
        verdict: Verdict,
        p95: Option<u32>,
        in_flight: u32,
    ) -> Words {
        match (self, verdict) {
            (Self::Aimd(aimd), Verdict::Succeeded { .. }) => {
                aimd.measured(now, p95);
                Words::new()
            }
            (Self::Aimd(aimd), Verdict::Refused { .. }) => {
                aimd.refused(now).iter().map(ToString::to_string).collect()
            }
            (Self::Adaptive(adaptive), verdict) => adaptive.verdict(now, flight, verdict, in_flight),
            (Self::Fixed(_) | Self::Aimd(_), _) => Words::new(),
        }
    }

    pub(crate) fn free_at(&mut self, now: Duration) -> Duration {
        match self {
            Self::Fixed(fixed) => fixed.free_at(),
            Self::Aimd(aimd) => aimd.free_at(),
            Self::Adaptive(adaptive) => adaptive.free_at(now),
        }
    }

    /// Requests that the mode lets be in flight at once.
    pub(crate) fn most_in_flight(&self) -> Option<u32> {
        match self {
            Self::Fixed(_) | Self::Aimd(_) => None,
            Self::Adaptive(adaptive) => Some(adaptive.most_in_flight()),
        }
    }

    /// The numbers that the mode knows.
    pub(crate) fn gauges(&self, now: Duration) -> Gauges {
        match self {
            Self::Fixed(fixed) => Gauges {
                rpm_target: fixed.target(),
                effective_rpm: fixed.effective_rpm(),
                ..Gauges::default()
            },
            Self::Aimd(aimd) => Gauges {
                rpm_target: Some(aimd.target()),
                effective_rpm: Some(aimd.effective_rpm()),
                ..Gauges::default()
            },
            Self::Adaptive(adaptive) => adaptive.gauges(now),
        }
    }

    pub(crate) fn explain(&self) -> String {
        match self {
            Self::Fixed(fixed) => fixed.explain(),
            Self::Aimd(aimd) => aimd.explain(),
            Self::Adaptive(adaptive) => adaptive.explain(),
        }
    }
}
