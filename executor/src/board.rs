//! What a run shows of itself while it goes on: counters, conditions that hold it back, and what the learner believes.
//!
//! The loops write here and never read; whoever draws a view takes a [`Progress`] as often as it likes.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use penstock_batchfile::OutcomeKind;
pub use penstock_job::report::{RateGauges, Stage};
use penstock_job::{
    Reason,
    state::{Ending, PartOutcomes},
};
use tokio::{sync::Notify, time::Instant};

use crate::{job::reason_of, meter::Spent};

/// A moment of a run.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// What it is doing.
    pub stage: Stage,
    /// Non-blank lines of the input.
    pub lines: u64,
    /// Lines that validation rejected.
    pub rejected: u64,
    /// Outcomes of lines, those of earlier runs included.
    pub outcomes: PartOutcomes,
    /// Lines that were already done when this run began.
    pub adopted: u64,
    /// Requests sent by this run.
    pub sent: u64,
    /// Of these, refused for the rate.
    pub throttled: u64,
    /// Attempts of this run that failed and were, or will be, repeated.
    pub retried: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Lines that wait for another attempt.
    pub waiting_for_retry: u64,
    /// What the job has used up, earlier runs included.
    pub spent: Spent,
    /// Why the job is not further, with one sentence of evidence.
    pub reason: Option<(Reason, String)>,
    /// What the learner believes and why, in one sentence.
    pub rate: String,
    /// The rate in numbers.
    pub gauges: RateGauges,
    /// The epoch of this run's claim; 0 before it.
    pub epoch: u32,
    /// Time since the last checkpoint; `None` before the first.
    pub checkpoint_age: Option<Duration>,
    /// Lines that are answered but not yet listed in a checkpoint or in flight: what a lost machine would send again.
    pub exposed: u64,
}

/// Where the loops of a run leave what they know.
#[derive(Debug, Default)]
pub struct Board {
    pub(crate) sent: AtomicU64,
    pub(crate) throttled: AtomicU64,
    pub(crate) retried: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) waiting_for_retry: AtomicU64,
    pub(crate) unlisted: AtomicU64,
    told: Mutex<Told>,
    /// Another stage, or another reason, is there.
    turned: Notify,
}

#[derive(Debug, Default)]
struct Told {
    stage: Stage,
    lines: u64,
    rejected: u64,
    adopted: u64,
    outcomes: PartOutcomes,
    spent: Spent,
    epoch: u32,
    checkpoint: Option<Instant>,
    conditions: BTreeMap<Reason, String>,
    rate: String,
    gauges: RateGauges,
}

impl Told {
    fn first_reason(&self) -> Option<Reason> {
        self.conditions.first_key_value().map(|(reason, _)| *reason)
    }
}

impl Board {
    /// A moment of the run.
    pub fn progress(&self) -> Progress {
        let told = self.told();
        let in_flight = self.in_flight.load(Relaxed);
        Progress {
            stage: told.stage,
            lines: told.lines,
            rejected: told.rejected,
            outcomes: told.outcomes,
            adopted: told.adopted,
            sent: self.sent.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            retried: self.retried.load(Relaxed),
            in_flight,
            waiting_for_retry: self.waiting_for_retry.load(Relaxed),
            spent: told.spent,
            reason: told.conditions.first_key_value().map(|(reason, evidence)| (*reason, evidence.clone())),
            rate: told.rate.clone(),
            gauges: told.gauges,
            epoch: told.epoch,
            checkpoint_age: told.checkpoint.map(|at| at.elapsed()),
            exposed: self.exposed(),
        }
    }

    /// Completes when there is another stage or reason than at its last return. For one listener.
    pub(crate) async fn turned(&self) {
        self.turned.notified().await;
    }

    /// Requests in flight, and answers that no checkpoint lists yet.
    pub(crate) fn exposed(&self) -> u64 {
        self.in_flight.load(Relaxed) + self.unlisted.load(Relaxed)
    }

    /// The stage that begins.
    pub(crate) fn enter(&self, stage: Stage) {
        let before = std::mem::replace(&mut self.told().stage, stage);
        if before != stage {
            self.turned.notify_one();
        }
    }

    /// What the claim found.
    pub(crate) fn claimed(&self, epoch: u32, lines: u64, rejected: u64) {
        let mut told = self.told();
        (told.epoch, told.lines, told.rejected) = (epoch, lines, rejected);
    }

    /// The ending that is stored, if there is one, is why not every line is answered.
    pub(crate) fn ends(&self, ending: Option<&Ending>) {
        if let Some(ending) = ending
            && let Some(reason) = reason_of(ending)
        {
            self.raise(reason, ending.message.as_str());
        }
    }

    /// What earlier epochs had done.
    pub(crate) fn adopted(&self, outcomes: PartOutcomes) {
        let mut told = self.told();
        told.adopted = outcomes.total();
        told.outcomes = outcomes;
    }

    /// One more outcome.
    pub(crate) fn count(&self, outcomes: &[OutcomeKind]) {
        let mut told = self.told();
        for outcome in outcomes {
            told.outcomes.count(*outcome);
        }
    }

    /// What the job has used up so far.
    pub(crate) fn spends(&self, spent: Spent) {
        self.told().spent = spent;
    }

    /// The counts that reconciliation found.
    pub(crate) fn recount(&self, outcomes: PartOutcomes) {
        self.told().outcomes = outcomes;
    }

    /// A checkpoint succeeded.
    pub(crate) fn checkpointed(&self) {
        self.told().checkpoint = Some(Instant::now());
    }

    /// What the learners believe, in words and in numbers.
    pub(crate) fn believes(&self, rate: String, gauges: RateGauges) {
        let mut told = self.told();
        (told.rate, told.gauges) = (rate, gauges);
    }

    /// A condition holds; its evidence is the newest.
    pub(crate) fn raise(&self, reason: Reason, evidence: impl Into<String>) {
        let evidence = evidence.into();
        {
            let mut told = self.told();
            let first = told.first_reason();
            if told.conditions.insert(reason, evidence.clone()).is_some() {
                return;
            }
            if told.first_reason() != first {
                self.turned.notify_one();
            }
        }
        // A rate that is at its limit is how a job should run; the others are trouble.
        if reason < Reason::Learning {
            tracing::warn!(%reason, evidence, help = reason.help(), "held back");
        } else {
            tracing::debug!(%reason, evidence, "held back");
        }
    }

    /// A condition no longer holds.
    pub(crate) fn clear(&self, reason: Reason) {
        let mut told = self.told();
        let first = told.first_reason();
        if told.conditions.remove(&reason).is_some() {
            if told.first_reason() != first {
                self.turned.notify_one();
            }
            tracing::debug!(%reason, "no longer held back");
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        // Nothing panics while it holds this lock, and plain values cannot be left half written.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
