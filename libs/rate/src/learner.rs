//! The learner: one interface over all modes.
//!
//! Owns what every mode needs (the clock, requests in flight, recent answers, refusals, the journal) and hands the
//! question of the rate to the mode.

use std::time::Duration;

use crate::aimd::Aimd;
use crate::event::{Cost, RequestId, Verdict, Wait};
use crate::fixed::Fixed;
use crate::gauges::Gauges;
use crate::in_flight::InFlight;
use crate::journal::{Decision, Journal};
use crate::limits::Limits;
use crate::mode::Mode;
use crate::percentile::RecentOutputs;
use crate::snapshot::{PolicyRecord, Record, RestoreError, Snapshot};

/// Decides when requests to one provider, model and key may go.
///
/// The caller reports each request with [`sent`](Self::sent) and its fate with [`verdict`](Self::verdict), and asks
/// [`next`](Self::next) before sending another. Each call takes constant time; memory is about 25 kB and up to
/// 18 bytes per request in flight.
#[derive(Clone, Debug)]
pub struct Learner {
    /// The newest clock reading.
    clock: Duration,
    /// The clock reading at which this learner began, and how long it had been at work before that.
    began: Duration,
    age_at_begin: Duration,
    in_flight: InFlight,
    outputs: RecentOutputs,
    refusals: u64,
    journal: Journal,
    policy: Policy,
}

/// The state of the mode.
#[derive(Clone, Debug)]
enum Policy {
    Fixed(Fixed),
    Aimd(Aimd),
}

impl Learner {
    /// A learner that knows nothing but the user's limits.
    pub fn new(mode: Mode, limits: Limits, now: Duration) -> Self {
        let mut learner = Self {
            clock: now,
            began: now,
            age_at_begin: Duration::ZERO,
            in_flight: InFlight::new(limits),
            outputs: RecentOutputs::default(),
            refusals: 0,
            journal: Journal::default(),
            policy: match mode {
                Mode::Fixed => Policy::Fixed(Fixed::new(limits, now)),
                Mode::Aimd => Policy::Aimd(Aimd::new(limits, now)),
            },
        };
        learner
            .journal
            .record(Duration::ZERO, format!("started: {}", learner.explain()));
        learner
    }

    /// A learner that goes on where another stopped, within the limits of today and with nothing in flight. Time
    /// between the two runs does not count.
    pub fn restore(
        snapshot: &Snapshot,
        mode: Mode,
        limits: Limits,
        now: Duration,
    ) -> Result<Self, RestoreError> {
        let record = snapshot.open()?;
        let outputs = RecentOutputs::from_iter(record.output_tokens);
        let policy = match (mode, record.policy) {
            (Mode::Fixed, PolicyRecord::Fixed(fixed)) => Policy::Fixed(Fixed::restore(&fixed, limits, now)),
            (Mode::Aimd, PolicyRecord::Aimd(aimd)) => {
                Policy::Aimd(Aimd::restore(&aimd, limits, outputs.p95(), now))
            }
            (wanted, recorded) => {
                return Err(RestoreError::OtherMode {
                    recorded: recorded.mode(),
                    wanted,
                });
            }
        };
        let mut learner = Self {
            clock: now,
            began: now,
            age_at_begin: record.age,
            in_flight: InFlight::new(limits),
            outputs,
            refusals: record.refusals,
            journal: Journal::from(record.decisions),
            policy,
        };
        learner
            .journal
            .record(record.age, format!("resumed: {}", learner.explain()));
        Ok(learner)
    }

    /// What [`restore`](Self::restore) needs, as of the newest clock reading.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&Record {
            age: self.age(self.clock),
            refusals: self.refusals,
            output_tokens: self.outputs.arrivals().collect(),
            decisions: self.decisions().cloned().collect(),
            policy: match &self.policy {
                Policy::Fixed(fixed) => PolicyRecord::Fixed(fixed.record(self.clock)),
                Policy::Aimd(aimd) => PolicyRecord::Aimd(aimd.record(self.clock)),
            },
        })
    }

    /// A request has gone out.
    pub fn sent(&mut self, now: Duration, id: RequestId, cost: Cost) {
        let now = self.advance(now);
        self.in_flight.insert(id);
        match &mut self.policy {
            Policy::Fixed(fixed) => fixed.sent(now, cost),
            Policy::Aimd(aimd) => aimd.sent(now),
        }
    }

    /// Something became of a request. A verdict on a request that is not in flight is ignored.
    pub fn verdict(&mut self, now: Duration, id: RequestId, verdict: Verdict) {
        let now = self.advance(now);
        if matches!(verdict, Verdict::Admitted { .. }) || !self.in_flight.remove(id) {
            return;
        }
        match verdict {
            Verdict::Admitted { .. } | Verdict::Lost => {}
            Verdict::Succeeded { output_tokens, .. } => {
                self.outputs.record(output_tokens);
                if let Policy::Aimd(aimd) = &mut self.policy {
                    aimd.measured(now, self.outputs.p95());
                }
            }
            Verdict::Refused { .. } => {
                self.refusals += 1;
                if let Policy::Aimd(aimd) = &mut self.policy
                    && let Some(change) = aimd.refused(now)
                {
                    self.journal.record(self.age(now), change.to_string());
                }
            }
        }
    }

    /// When a request of this cost may go. Asking changes nothing: a request counts once it was [`sent`](Self::sent).
    ///
    /// Both modes charge a request after it has gone, so its cost delays those behind it, not itself.
    pub fn next(&mut self, now: Duration, _cost: Cost) -> Wait {
        let now = self.advance(now);
        if self.in_flight.is_full() {
            return Wait::ForVerdict;
        }
        let free_at = match &self.policy {
            Policy::Fixed(fixed) => fixed.free_at(),
            Policy::Aimd(aimd) => aimd.free_at(),
        };
        if free_at > now {
            Wait::Until(free_at)
        } else {
            Wait::Now
        }
    }

    /// When the rate will change by itself if nothing is reported until then. A caller that waits past this moment
    /// asks [`next`](Self::next) again then: it may be allowed to send earlier.
    pub fn changes_at(&self) -> Option<Duration> {
        match &self.policy {
            Policy::Fixed(_) => None,
            Policy::Aimd(aimd) => aimd.changes_at(),
        }
    }

    /// The mode in which the rate is found.
    pub fn mode(&self) -> Mode {
        match self.policy {
            Policy::Fixed(_) => Mode::Fixed,
            Policy::Aimd(_) => Mode::Aimd,
        }
    }

    /// The present state in numbers.
    pub fn gauges(&self) -> Gauges {
        let (rpm_target, effective_rpm) = match &self.policy {
            Policy::Fixed(fixed) => (fixed.target(), fixed.effective_rpm()),
            Policy::Aimd(aimd) => (Some(aimd.target()), Some(aimd.effective_rpm())),
        };
        Gauges {
            rpm_target,
            effective_rpm,
            p95_tokens: self.outputs.p95(),
            refusals: self.refusals,
            in_flight: self.in_flight.len(),
        }
    }

    /// The rate and why it is what it is, in one line for people.
    pub fn explain(&self) -> String {
        match &self.policy {
            Policy::Fixed(fixed) => fixed.explain(),
            Policy::Aimd(aimd) => aimd.explain(),
        }
    }

    /// The last 200 decisions, oldest first.
    pub fn decisions(&self) -> impl ExactSizeIterator<Item = &Decision> {
        self.journal.decisions()
    }

    /// Takes over a clock reading, makes every change that is due by then, and returns the newest reading.
    fn advance(&mut self, now: Duration) -> Duration {
        self.clock = self.clock.max(now);
        if let Policy::Aimd(aimd) = &mut self.policy {
            while let Some((at, change)) = aimd.step(self.clock) {
                let age = self.age_at_begin.saturating_add(at.saturating_sub(self.began));
                self.journal.record(age, change.to_string());
            }
        }
        self.clock
    }

    /// How long the learner has been at work at this clock reading, earlier runs included.
    fn age(&self, at: Duration) -> Duration {
        self.age_at_begin.saturating_add(at.saturating_sub(self.began))
    }
}
