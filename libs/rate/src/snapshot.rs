//! What a learner knows, as it lies in a job's state between two runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
}

impl PolicyRecord {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Fixed(_) => Mode::Fixed,
            Self::Aimd(_) => Mode::Aimd,
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
        let tagged = Tagged {
            format: FORMAT,
            record,
        };
        Self(serde_json::to_value(tagged).expect("invariant: a record has string keys only"))
    }

    pub(crate) fn open(&self) -> Result<Record, RestoreError> {
        match self.0.get("format") {
            Some(format) if format == FORMAT => Ok(Record::deserialize(&self.0)?),
            Some(other) => Err(RestoreError::UnknownFormat {
                found: other.to_string(),
            }),
            None => Err(RestoreError::UnknownFormat {
                found: "absent".to_owned(),
            }),
        }
    }
}
