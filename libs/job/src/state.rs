//! `state.json`: the checkpoint. The manifest of parts, the completed set, who runs the job, and, once frozen, what is
//! to be published.

use penstock_batchfile::{OutcomeKind, Position, Undone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    checksum::Crc32c,
    document::{Document, format_tag},
    finals::Final,
    identity::Identity,
    identity_sum::IdentitySum,
    incarnation::{Epoch, Incarnation},
    layout::PartName,
    ordinals::OrdinalSet,
    spec::CanonicalSpec,
    usage::Usage,
};

format_tag! {
    /// The format of `state.json`.
    StateFormat = "penstock.state/1"
}

/// How many epochs are remembered.
pub const EPOCHS_KEPT: usize = 64;

/// The checkpoint of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Names this schema.
    pub format: StateFormat,
    /// Whose state this is.
    pub job: StateJob,
    /// Set by the first write, never changed.
    pub created_at_ms: u64,
    /// The epoch of the newest claim.
    pub epoch: Epoch,
    /// Every epoch up to this one can add no part any more.
    pub sealed: Epoch,
    /// Who wrote this.
    pub incarnation: Incarnation,
    /// Which of the writer's writes this is, from 1.
    pub write: u64,
    /// Whether the outcome is decided.
    pub phase: Phase,
    /// Why the job ends before every line was answered; the first ending stays.
    pub ending: Option<Ending>,
    /// The input as validated.
    pub input: StateInput,
    /// The validation that this job rests on.
    pub validation: ValidationReference,
    /// The union of the ordinals of the listed parts.
    pub completed: OrdinalSet,
    /// Start of the oldest window with an undone line.
    #[schemars(with = "Cursor")]
    pub cursor: Position,
    /// The listed parts, in order of epoch and sequence.
    pub parts: Vec<Part>,
    /// Outcomes over the listed parts.
    pub outcomes: PartOutcomes,
    /// Requests as known at this checkpoint: lower bounds.
    pub requests: Requests,
    /// What the answers have used up that are, or ever were, in listed parts.
    #[serde(default)]
    pub usage: Usage,
    /// Parts that could not be adopted.
    pub discarded: Discarded,
    /// The newest claims, at most [`EPOCHS_KEPT`].
    pub epochs: Vec<EpochRecord>,
    /// The learner's own memory; opaque here.
    pub learner: Option<Value>,
    /// What is to be published; set by the freeze.
    pub finalization: Option<Finalization>,
    /// When this was written, in milliseconds since the epoch.
    pub updated_at_ms: u64,
}

impl Document for State {
    const NAME: &'static str = crate::layout::STATE;
    const FORMAT: &'static str = StateFormat::TEXT;
}

/// Whose state it is. The identity is compared; the spec explains it; the rest informs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateJob {
    /// The job's identity.
    pub identity: Identity,
    /// What the identity is the hash of.
    pub spec: CanonicalSpec,
    /// UID of the owning object.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Whether the outcome of a job is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Lines are answered, or an early ending is recorded.
    Running,
    /// Decided: whoever comes can only publish what `finalization` says.
    Finalizing,
}

/// Why a job ends before every line was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// What becomes of the undone lines.
    pub reason: EndingReason,
    /// What happened, as a word: `cancel_requested`, `completion_window_over`, `input_modified`.
    pub code: String,
    /// What happened, in a sentence.
    pub message: String,
    /// When it was decided, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// What becomes of the undone lines of a job that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndingReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// The completion window is over.
    Expired,
    /// The job cannot be run to its end.
    Abandoned,
}

impl EndingReason {
    /// The outcome that each undone line gets.
    pub fn outcome(self) -> OutcomeKind {
        Undone::from(self).into()
    }
}

impl From<EndingReason> for Undone {
    fn from(reason: EndingReason) -> Self {
        match reason {
            EndingReason::Cancelled => Self::Cancelled,
            EndingReason::Expired => Self::Expired,
            EndingReason::Abandoned => Self::Abandoned,
        }
    }
}

/// The input as validated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateInput {
    /// Where it is.
    pub uri: String,
    /// The pinned generation.
    pub generation: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
    /// Non-blank lines.
    pub lines: u64,
    /// How many of them are invalid.
    pub rejected: u64,
}

/// The validation that a job rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidationReference {
    /// The object's name.
    pub name: String,
    /// Its generation.
    pub generation: String,
}

/// Schema of the cursor, whose type belongs to the line formats.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Cursor {
    /// Ordinal of the line that starts here.
    ordinal: u32,
    /// Where it starts.
    byte_offset: u64,
    /// Its physical line number, from 1.
    line_number: u64,
}

/// One row of the manifest. In JSON an array: name, generation, lines, size in bytes, CRC32C.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "PartRow", try_from = "PartRow")]
#[schemars(with = "PartRow")]
pub struct Part {
    /// Its name.
    pub name: PartName,
    /// The generation that is listed; every read is pinned to it.
    pub generation: Box<str>,
    /// How many records it holds.
    pub lines: u32,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct PartRow(String, Box<str>, u32, u64, Crc32c);

impl From<Part> for PartRow {
    fn from(part: Part) -> Self {
        Self(part.name.to_string(), part.generation, part.lines, part.size_bytes, part.crc32c)
    }
}

impl TryFrom<PartRow> for Part {
    type Error = crate::layout::PartNameError;

    fn try_from(PartRow(name, generation, lines, size_bytes, crc32c): PartRow) -> Result<Self, Self::Error> {
        Ok(Self { name: name.parse()?, generation, lines, size_bytes, crc32c })
    }
}

/// How many lines of the listed parts ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartOutcomes {
    /// Answered.
    pub succeeded: u64,
    /// Refused for good, or tried too often.
    pub failed: u64,
    /// Not answered before the completion window was over.
    pub expired: u64,
    /// Not answered before the job was cancelled.
    pub cancelled: u64,
    /// Not answered because the job could not be run to its end.
    pub abandoned: u64,
}

impl PartOutcomes {
    /// Counts one record. `rejected` records are never in parts, so counting one returns `false`.
    pub fn count(&mut self, outcome: OutcomeKind) -> bool {
        let count = match outcome {
            OutcomeKind::Succeeded => &mut self.succeeded,
            OutcomeKind::Failed => &mut self.failed,
            OutcomeKind::Expired => &mut self.expired,
            OutcomeKind::Cancelled => &mut self.cancelled,
            OutcomeKind::Abandoned => &mut self.abandoned,
            OutcomeKind::Rejected => return false,
        };
        *count += 1;
        true
    }

    /// Adds the counts of another set of parts.
    pub fn add(&mut self, other: Self) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.expired += other.expired;
        self.cancelled += other.cancelled;
        self.abandoned += other.abandoned;
    }

    /// Takes away counts that were added before.
    pub fn subtract(&mut self, other: Self) {
        self.succeeded -= other.succeeded;
        self.failed -= other.failed;
        self.expired -= other.expired;
        self.cancelled -= other.cancelled;
        self.abandoned -= other.abandoned;
    }

    /// All of them, at most [`u64::MAX`].
    pub fn total(&self) -> u64 {
        self.with_rejected(0).total()
    }

    /// Together with the rejected lines.
    pub fn with_rejected(self, rejected: u64) -> Outcomes {
        let Self { succeeded, failed, expired, cancelled, abandoned } = self;
        Outcomes { succeeded, failed, rejected, expired, cancelled, abandoned }
    }
}

/// How many lines of a job ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcomes {
    /// Answered.
    pub succeeded: u64,
    /// Refused for good, or tried too often.
    pub failed: u64,
    /// Invalid input.
    pub rejected: u64,
    /// Not answered before the completion window was over.
    pub expired: u64,
    /// Not answered before the job was cancelled.
    pub cancelled: u64,
    /// Not answered because the job could not be run to its end.
    pub abandoned: u64,
}

impl Outcomes {
    /// All of them, at most [`u64::MAX`]: must equal the number of lines.
    pub fn total(&self) -> u64 {
        let Self { succeeded, failed, rejected, expired, cancelled, abandoned } = *self;
        [succeeded, failed, rejected, expired, cancelled, abandoned].into_iter().fold(0, u64::saturating_add)
    }

    /// Lines of which something was made: all but those that the job's end has left undone.
    pub fn done(&self) -> u64 {
        Self { expired: 0, cancelled: 0, abandoned: 0, ..*self }.total()
    }
}

/// Requests as known at a checkpoint: lower bounds, since a killed process cannot report its last ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Requests sent.
    pub sent: u64,
    /// Of these, refused for the rate.
    pub throttled: u64,
}

/// Parts that could not be adopted, over all claims. Informs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discarded {
    /// How many.
    pub parts: u64,
    /// How many lines they hold.
    pub lines: u64,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// The epoch taken.
    pub epoch: Epoch,
    /// By whom.
    pub incarnation: Incarnation,
    /// When, in milliseconds since the epoch.
    pub claimed_at_ms: u64,
    /// How many lines were completed then.
    pub lines_at_claim: u64,
}

/// What is to be published. Set by the freeze and never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finalization {
    /// The published files, results first.
    pub finals: Vec<Final>,
    /// All outcomes, the rejected lines among them.
    pub outcomes: Outcomes,
    /// The identity sum over all records; `null` when ids were lost with the input.
    pub identity_found: Option<IdentitySum>,
    /// Hash of what is published; every finaliser must arrive at it.
    pub decision: String,
    /// The epoch that froze.
    pub frozen_by_epoch: Epoch,
    /// When, in milliseconds since the epoch.
    pub frozen_at_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_no_job_has_do_not_add_up_to_those_of_a_small_one() {
        let outcomes = PartOutcomes { succeeded: u64::MAX, failed: 5, ..PartOutcomes::default() };
        assert_eq!(outcomes.total(), u64::MAX);
        assert_eq!(outcomes.with_rejected(3).total(), u64::MAX);
    }

    #[test]
    fn what_the_end_of_a_job_leaves_undone_is_not_done() {
        let outcomes =
            Outcomes { succeeded: 1, failed: 2, rejected: 4, expired: 8, cancelled: 16, abandoned: 32 };
        assert_eq!((outcomes.done(), outcomes.total()), (7, 63));
    }
}
