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
use penstock_job::{Reason, state::PartOutcomes};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// What a run is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Taking the job over and looking at what is there.
    #[default]
    Claiming,
    /// Sending requests.
    Running,
    /// Asked to stop: storing what is known, awaiting answers.
    Draining,
    /// Recording the lines that an early ending leaves undone.
    Ending,
    /// Reading everything once more.
    Reconciling,
    /// Publishing.
    Publishing,
}

/// The rate of a job in numbers, over all its models. The names in JSON are those of the metrics; each means the same
/// whichever way the rate is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RateGauges {
    /// Requests a minute that the learners aim at, before any token limit; `None` while nothing is paced.
    #[serde(rename = "rate.rpm_target")]
    pub rpm_target: Option<u64>,
    /// Requests a minute that may go out now, token limits included; `None` while nothing is paced.
    #[serde(rename = "rate.effective_rpm")]
    pub effective_rpm: Option<f64>,
    /// The 95th percentile of the output tokens of recent answers, that of the model with the longest; `None` before the
    /// first.
    #[serde(rename = "rate.p95_tokens")]
    pub p95_tokens: Option<u32>,
    /// Refusals for the rate, those of earlier runs included.
    #[serde(rename = "rate.429_events")]
    pub refusals: u64,
    /// What was let in during the last minute, as a part of the limits that were found out; `None` while a model's is not
    /// known.
    #[serde(rename = "rate.learned_utilisation", default)]
    pub learned_utilisation: Option<f64>,
    /// The same as a part of the limits that the provider states; `None` where it states none.
    #[serde(rename = "rate.stated_utilisation", default)]
    pub stated_utilisation: Option<f64>,
}

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
    /// Tokens of the prompts answered by this run, as the provider counted them.
    pub input_tokens: u64,
    /// Tokens of the answers of this run, as the provider counted them.
    pub output_tokens: u64,
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
    pub(crate) input_tokens: AtomicU64,
    pub(crate) output_tokens: AtomicU64,
    pub(crate) unlisted: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    stage: Stage,
    lines: u64,
    rejected: u64,
    adopted: u64,
    outcomes: PartOutcomes,
    epoch: u32,
    checkpoint: Option<Instant>,
    conditions: BTreeMap<Reason, String>,
    rate: String,
    gauges: RateGauges,
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
            input_tokens: self.input_tokens.load(Relaxed),
            output_tokens: self.output_tokens.load(Relaxed),
            reason: told.conditions.first_key_value().map(|(reason, evidence)| (*reason, evidence.clone())),
            rate: told.rate.clone(),
            gauges: told.gauges,
            epoch: told.epoch,
            checkpoint_age: told.checkpoint.map(|at| at.elapsed()),
            exposed: in_flight + self.unlisted.load(Relaxed),
        }
    }

    /// The stage that begins.
    pub(crate) fn enter(&self, stage: Stage) {
        self.told().stage = stage;
    }

    /// What the claim found.
    pub(crate) fn claimed(&self, epoch: u32, lines: u64, rejected: u64) {
        let mut told = self.told();
        (told.epoch, told.lines, told.rejected) = (epoch, lines, rejected);
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
        if self.told().conditions.insert(reason, evidence.clone()).is_some() {
            return;
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
        if self.told().conditions.remove(&reason).is_some() {
            tracing::debug!(%reason, "no longer held back");
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        // Nothing panics while it holds this lock, and plain values cannot be left half written.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
