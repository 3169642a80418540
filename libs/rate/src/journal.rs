//! The last decisions of a learner, in words, for the live view and for whoever reads a job's state later.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many decisions are kept.
const KEPT: usize = 200;

/// A change of the rate, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When it was made: milliseconds of the learner's working life, those before a resume included.
    pub at_ms: u64,
    /// What was decided and why.
    pub words: String,
}

/// The newest decisions, oldest first, at most [`KEPT`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(VecDeque<Decision>);

impl Journal {
    /// Notes a decision made at this age of the learner.
    pub(crate) fn record(&mut self, age: Duration, words: impl Into<String>) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let at_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.0.push_back(Decision { at_ms, words: words.into() });
    }

    pub(crate) fn decisions(&self) -> impl ExactSizeIterator<Item = &Decision> {
        self.0.iter()
    }
}

impl From<Vec<Decision>> for Journal {
    /// Takes over the newest of what an earlier learner recorded.
    fn from(mut decisions: Vec<Decision>) -> Self {
        decisions.drain(..decisions.len().saturating_sub(KEPT));
        Self(decisions.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_two_hundred_are_kept() {
        let mut journal = Journal::default();
        for second in 0..250 {
            journal.record(Duration::from_secs(second), format!("decision {second}"));
        }
        assert_eq!(journal.decisions().len(), KEPT);
        assert_eq!(journal.decisions().next().unwrap().at_ms, 50_000);
        assert_eq!(journal.decisions().last().unwrap().words, "decision 249");

        let mut recorded = vec![Decision { at_ms: 0, words: "older still".to_owned() }];
        recorded.extend(journal.decisions().cloned());
        let restored = Journal::from(recorded);
        assert!(restored.decisions().eq(journal.decisions()));
    }
}
