//! Whether a line may go: what the job's budget says, and then the rate.

use std::{collections::BTreeSet, sync::Arc};

use penstock_job::usage::Tokens;
use penstock_rate::Cost;

use super::{pacing::Pacing, schedule::Pace};
use crate::meter::{Expected, Meter, Refusal};

/// What lets lines go.
#[derive(Debug)]
pub(super) struct Allowance {
    meter: Arc<Meter>,
    pacing: Arc<Pacing>,
    /// Models of whose answers nothing was known when their one request in flight went out.
    first: BTreeSet<Arc<str>>,
    refusal: Option<Refusal>,
}

impl Allowance {
    pub(super) fn new(meter: Arc<Meter>, pacing: Arc<Pacing>) -> Self {
        Self { meter, pacing, first: BTreeSet::new(), refusal: None }
    }

    /// When a line of this model and length may go. One that the budget does not admit waits for answers, which may take
    /// less than was expected.
    pub(super) fn pace(&mut self, model: &str, length: u32) -> Pace {
        if self.meter.is_bounded() {
            // How long answers are decides how far one burst goes past a budget, so the first is awaited alone.
            if self.first.contains(model) {
                return Pace::Wait;
            }
            if let Err(refusal) = self.meter.admit(model, tokens(self.pacing.estimate(model, length))) {
                self.refusal = Some(refusal);
                return Pace::Wait;
            }
        }
        self.pacing.pace(model, length)
    }

    /// A request goes out.
    pub(super) fn sent(&mut self, model: &Arc<str>, length: u32) -> Expected {
        if !self.meter.is_bounded() {
            return Expected::default();
        }
        if !self.pacing.knows_answers(model) {
            self.first.insert(Arc::clone(model));
        }
        self.meter.sent(model, tokens(self.pacing.estimate(model, length)))
    }

    /// It has ended, and what it took is counted.
    pub(super) fn ended(&mut self, model: &str, expected: Expected) {
        self.first.remove(model);
        self.meter.ended(expected);
    }

    /// Whether nothing more may go.
    pub(super) fn is_exhausted(&self) -> bool {
        self.meter.is_exhausted()
    }

    /// Forgets the refusals so far.
    pub(super) fn ask_anew(&mut self) {
        self.refusal = None;
    }

    /// Nothing is in flight and nothing else may go: a budget that has refused since it was asked anew is used up.
    pub(super) fn conclude(&mut self) {
        if let Some(refusal) = self.refusal.take() {
            self.meter.exhaust(&refusal);
        }
    }
}

fn tokens(cost: Cost) -> Tokens {
    Tokens { input: cost.input_tokens.into(), cached_input: 0, output: cost.output_tokens.into() }
}
