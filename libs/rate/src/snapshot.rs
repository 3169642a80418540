//! What a learner knows, as it lies in a job's state between two runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adaptive::AdaptiveRecord;
use crate::aimd::AimdRecord;
use crate::fixed::FixedRecord;
use crate::journal::Decision;
use crate::mode::Mode;

/// The format that this version writes and reads.
const FORMAT: &str = "penstock.rate/1";

/// A learner's memory, opaque to whoever stores it: any JSON deserializes into it, and only
/// [`Learner::restore`](crate::Learner::restore) looks inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot(Value);

/// Why a learner could not go on from a snapshot. The remedy is always a new one: what was learned is lost, nothing
/// else.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The snapshot comes from another version.
    #[error("resume the learned rate: its format is {found}, not `{FORMAT}`, so it is learned afresh")]
    UnknownFormat {
        /// The format as it stands in the snapshot.
        found: String,
    },
    /// The format is known, the content does not follow it.
    #[error("resume the learned rate: {0}, so it is learned afresh")]
    Damaged(#[from] serde_json::Error),
    /// The snapshot was taken in another mode, whose knowledge means nothing here.
    #[error(
        "resume the learned rate: it was learned in mode `{recorded}`, so mode `{wanted}` learns it afresh"
    )]
    OtherMode {
        /// The mode of the snapshot.
        recorded: Mode,
        /// The mode asked for.
        wanted: Mode,
    },
}

/// The content of a snapshot. All times are relative to the moment it was taken.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// How long the learner has been at work.
    pub(crate) age: Duration,
    pub(crate) refusals: u64,
    /// Output tokens of recent successes, oldest first.
    pub(crate) output_tokens: Vec<u32>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) policy: PolicyRecord,
}

/// What the mode itself has to remember.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub(crate) enum PolicyRecord {
    Fixed(FixedRecord),
    Aimd(AimdRecord),
    Adaptive(AdaptiveRecord),
}

impl PolicyRecord {
    fn mode(&self) -> Mode {
        match self {
            Self::Fixed(_) => Mode::Fixed,
            Self::Aimd(_) => Mode::Aimd,
            Self::Adaptive(_) => Mode::Adaptive,
        }
    }
}

/// A record under the name of its format.
#[derive(Serialize)]
struct Tagged<'a> {
    format: &'static str,
    #[serde(flatten)]
    record: &'a Record,
}

impl Snapshot {
    pub(crate) fn of(record: &Record) -> Self {
        let tagged = Tagged { format: FORMAT, record };
        Self(serde_json::to_value(tagged).expect("invariant: a record has string keys only"))
    }

    /// What the learner decided, oldest first, each with how long before the snapshot that was; empty where it cannot be
    /// read.
    pub fn decisions(&self) -> Vec<(Duration, String)> {
        #[derive(Deserialize)]
        struct Told {
            age: Duration,
            decisions: Vec<Decision>,
        }
        let told = Told::deserialize(&self.0).unwrap_or(Told { age: Duration::ZERO, decisions: Vec::new() });
        let before = |decision: &Decision| told.age.saturating_sub(Duration::from_millis(decision.at_ms));
        told.decisions.iter().map(|decision| (before(decision), decision.words.clone())).collect()
    }

    /// The record of a learner of this mode.
    pub(crate) fn open(&self, wanted: Mode) -> Result<Record, RestoreError> {
        match self.0.get("format") {
            Some(format) if format == FORMAT => {}
            Some(other) => {
                return Err(RestoreError::UnknownFormat { found: other.to_string() });
            }
            None => {
                return Err(RestoreError::UnknownFormat { found: "absent".to_owned() });
            }
        }
        let record = Record::deserialize(&self.0)?;
        match record.policy.mode() {
            recorded if recorded == wanted => Ok(record),
            recorded => Err(RestoreError::OtherMode { recorded, wanted }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Learner, Limits, Profile};

    fn refusal(content: Value, mode: Mode) -> String {
        let snapshot: Snapshot = serde_json::from_value(content).unwrap();
        Learner::restore(&snapshot, mode, Profile::Unknown, Limits::default(), Duration::ZERO)
            .unwrap_err()
            .to_string()
    }

    fn recorded(mode: Mode) -> Value {
        serde_json::to_value(
            Learner::new(mode, Profile::Unknown, Limits::default(), Duration::ZERO).snapshot(),
        )
        .unwrap()
    }

    #[test]
    fn any_json_is_a_snapshot_but_only_the_known_format_is_opened() {
        let unknown =
            "resume the learned rate: its format is absent, not `penstock.rate/1`, so it is learned afresh";
        assert_eq!(refusal(json!(null), Mode::Aimd), unknown);
        assert_eq!(refusal(json!([1]), Mode::Aimd), unknown);
        let newer = refusal(json!({"format": "penstock.rate/2"}), Mode::Aimd);
        assert!(newer.contains(r#"its format is "penstock.rate/2","#), "{newer}");
    }

    #[test]
    fn a_damaged_record_is_refused_with_what_is_wrong() {
        let mut content = recorded(Mode::Aimd);
        content["policy"]["target"] = json!(0);
        assert!(refusal(content, Mode::Aimd).contains("expected a nonzero u32"));
    }

    #[test]
    fn a_snapshot_tells_what_was_decided_and_how_long_before() {
        let mut learner =
            Learner::new(Mode::Aimd, Profile::Unknown, Limits::default(), Duration::from_secs(100));
        learner.next(Duration::from_secs(140), crate::Cost::default());
        let told = learner.snapshot().decisions();
        let before: Vec<_> = told.iter().map(|(before, _)| before.as_secs()).collect();
        assert_eq!(before, [40, 10]);
        assert!(told[1].1.starts_with("grew"), "{told:?}");
        let unreadable: Snapshot = serde_json::from_value(json!({"age": 7})).unwrap();
        assert!(unreadable.decisions().is_empty());
    }

    #[test]
    fn a_record_of_another_mode_is_refused() {
        assert_eq!(
            refusal(recorded(Mode::Fixed), Mode::Aimd),
            "resume the learned rate: it was learned in mode `fixed`, so mode `aimd` learns it afresh"
        );
    }
}
