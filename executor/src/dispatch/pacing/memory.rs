//! What stands in `state.json` under `learner`: what the next run starts from, and what `penstock status` tells. Pure.

use std::{collections::BTreeMap, time::Duration};

use penstock_rate::Snapshot;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::board::RateGauges;

/// The format of the learners' memory.
const FORMAT: &str = "penstock.learners/1";
/// Learners that are remembered.
const REMEMBERED: usize = 100;
/// Decisions that are told of a job, over all its models.
const DECISIONS: usize = 200;

/// The memory of a job's learners.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    format: String,
    /// What is believed of the rate and why, in a sentence.
    #[serde(default)]
    belief: String,
    #[serde(default)]
    gauges: RateGauges,
    models: BTreeMap<String, Snapshot>,
}

/// What a job has learned about the rate, as its last checkpoint tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    /// What is believed of the rate and why, in a sentence.
    pub belief: String,
    /// The same in numbers.
    pub gauges: RateGauges,
    /// The last 200 decisions, oldest first.
    pub decisions: Vec<Decision>,
}

/// A change of a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// How long before the checkpoint it was made; time between two runs does not count.
    pub before: Duration,
    /// The model that it is about.
    pub model: String,
    /// What was decided and why.
    pub words: String,
}

impl Memory {
    /// The learners of this run first; of those of earlier runs as many as there is room for.
    pub(super) fn new(
        belief: String,
        gauges: RateGauges,
        present: impl Iterator<Item = (String, Snapshot)>,
        former: &BTreeMap<String, Snapshot>,
    ) -> Self {
        let mut models: BTreeMap<_, _> = present.take(REMEMBERED).collect();
        for (model, snapshot) in former {
            if models.len() == REMEMBERED {
                break;
            }
            models.entry(model.clone()).or_insert_with(|| snapshot.clone());
        }
        Self { format: FORMAT.to_owned(), belief, gauges, models }
    }
}

/// Reads the learners' memory out of a state; what cannot be read is forgotten, since learning anew is safe.
pub(crate) fn learner_memory(value: Option<&Value>) -> BTreeMap<String, Snapshot> {
    let Some(value) = value else {
        return BTreeMap::new();
    };
    match Memory::deserialize(value) {
        Ok(memory) if memory.format == FORMAT => memory.models,
        Ok(memory) => {
            tracing::warn!(
                format = memory.format,
                "the learner's memory has an unknown format; learning starts afresh"
            );
            BTreeMap::new()
        }
        Err(error) => {
            tracing::warn!(%error, "the learner's memory cannot be read; learning starts afresh");
            BTreeMap::new()
        }
    }
}

/// What the field `learner` of a `state.json` tells; `None` where it tells nothing.
pub fn learned(learner: Option<&Value>) -> Option<Learned> {
    let Memory { format, belief, gauges, models } = Memory::deserialize(learner?).ok()?;
    if format != FORMAT || belief.is_empty() {
        return None;
    }
    let of_model = |(model, snapshot): (&String, &Snapshot)| {
        let model = model.clone();
        let decision = move |(before, words)| Decision { before, model: model.clone(), words };
        snapshot.decisions().into_iter().map(decision)
    };
    let mut decisions: Vec<_> = models.iter().flat_map(of_model).collect();
    decisions.sort_by_key(|decision| std::cmp::Reverse(decision.before));
    decisions.drain(..decisions.len().saturating_sub(DECISIONS));
    Some(Learned { belief, gauges, decisions })
}

#[cfg(test)]
mod tests {
    use penstock_rate::{Cost, Learner, Limits, Mode, Profile};

    use super::*;

    fn snapshot(age_seconds: u64) -> Snapshot {
        let mut learner = Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::ZERO);
        learner.next(Duration::from_secs(age_seconds), Cost::default());
        learner.snapshot()
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_forgotten() {
        assert!(learner_memory(None).is_empty());
        assert!(learner_memory(Some(&serde_json::json!(7))).is_empty());
        let newer = serde_json::json!({"format": "penstock.learners/2", "models": {}});
        assert!(learner_memory(Some(&newer)).is_empty());
        assert_eq!(learned(Some(&newer)), None);
    }

    #[test]
    fn a_memory_from_before_sentences_were_kept_is_still_one() {
        let older = serde_json::json!({"format": FORMAT, "models": {"m": snapshot(1)}});
        assert_eq!(learner_memory(Some(&older)).len(), 1);
        assert_eq!(learned(Some(&older)), None, "there is nothing to tell");
    }

    #[test]
    fn the_decisions_of_all_models_are_told_in_their_order() {
        let models = [("young", 35), ("old", 65)].map(|(model, age)| (model.to_owned(), snapshot(age)));
        let memory =
            Memory::new("believed".to_owned(), RateGauges::default(), models.into_iter(), &BTreeMap::new());
        let told = learned(Some(&serde_json::to_value(memory).unwrap())).unwrap();
        assert_eq!(told.belief, "believed");
        let order: Vec<_> = told
            .decisions
            .iter()
            .map(|decision| (decision.before.as_secs(), decision.model.as_str()))
            .collect();
        assert_eq!(order, [(65, "old"), (35, "old"), (35, "young"), (5, "old"), (5, "young")]);
    }
}
