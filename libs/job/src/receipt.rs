//! `receipt.json`: the proof of conservation. A job is over when it exists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    checksum::Crc32c,
    document::{Document, format_tag},
    identity_sum::IdentitySum,
    incarnation::{Epoch, Incarnation},
    layout::Kind,
    money::Cost,
    state::{Discarded, EndingReason, Outcomes, Requests, State, StateJob},
    usage::Usage,
    validation::{ValidatedInput, Validation},
};

format_tag! {
    /// The format of `receipt.json`.
    ReceiptFormat = "penstock.receipt/1"
}

/// The published proof that each line has exactly one outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Names this schema.
    pub format: ReceiptFormat,
    /// Whose receipt it is.
    pub job: StateJob,
    /// How the job ended.
    pub ending: ReceiptEnding,
    /// Hash of what is published.
    pub decision: String,
    /// Non-blank lines of the input.
    pub lines: u64,
    /// What became of them; their sum is `lines`.
    pub outcomes: Outcomes,
    /// The input.
    pub input: ValidatedInput,
    /// The identity sums of the input and of the published records.
    pub identity: IdentitySums,
    /// The published files.
    pub outputs: Vec<Output>,
    /// The parts that they were made of.
    pub parts: PartTotals,
    /// How many claims it took up to the freeze.
    pub epochs: Epoch,
    /// Parts that could not be adopted.
    pub discarded: Discarded,
    /// Requests sent: lower bounds.
    pub requests: Requests,
    /// What the answers used up, as far as it is known.
    #[serde(default)]
    pub usage: Usage,
    /// What that cost; `null` where a price is not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// When the outcome was decided, in milliseconds since the epoch.
    pub frozen_at_ms: u64,
    /// When this was written, in milliseconds since the epoch.
    pub written_at_ms: u64,
    /// Who wrote this.
    pub written_by: Writer,
}

impl Document for Receipt {
    const NAME: &'static str = crate::layout::RECEIPT;
    const FORMAT: &'static str = ReceiptFormat::TEXT;
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptEnding {
    /// Every valid line was answered or failed.
    Completed,
    /// Cancelled before that.
    Cancelled,
    /// The completion window was over before that.
    Expired,
    /// The job could not be run to its end.
    Failed,
}

impl From<Option<EndingReason>> for ReceiptEnding {
    fn from(ending: Option<EndingReason>) -> Self {
        match ending {
            None => Self::Completed,
            Some(EndingReason::Cancelled) => Self::Cancelled,
            Some(EndingReason::Expired) => Self::Expired,
            Some(EndingReason::Abandoned) => Self::Failed,
        }
    }
}

impl ReceiptEnding {
    /// The early ending behind it.
    pub fn reason(self) -> Option<EndingReason> {
        match self {
            Self::Completed => None,
            Self::Cancelled => Some(EndingReason::Cancelled),
            Self::Expired => Some(EndingReason::Expired),
            Self::Failed => Some(EndingReason::Abandoned),
        }
    }
}

/// The identity sums of the input and of the published records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentitySums {
    /// Over the input's lines.
    pub expected: IdentitySum,
    /// Over the published records; `null` when ids were lost with the input.
    pub found: Option<IdentitySum>,
}

/// One published file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name below the output.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// The generation that was published.
    pub generation: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its CRC32C.
    pub crc32c: Crc32c,
    /// Hex SHA-256: what `sha256sum` prints.
    pub sha256: String,
    /// How many records it holds.
    pub lines: u64,
}

/// The parts that the published files were made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartTotals {
    /// How many.
    pub count: u64,
    /// Their size.
    pub bytes: u64,
}

/// Who wrote a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Writer {
    /// Its epoch.
    pub epoch: Epoch,
    /// Its incarnation.
    pub incarnation: Incarnation,
}

impl Receipt {
    /// The receipt of a frozen state; `None` when nothing is frozen. All but `written_*` comes from what is frozen, so
    /// two finalisers differ only there. `generations` are those of the published files, in the order of the freeze.
    pub fn of(
        state: &State,
        validation: &Validation,
        generations: impl IntoIterator<Item = String>,
        written_at_ms: u64,
    ) -> Option<Self> {
        let frozen = state.finalization.as_ref()?;
        let outputs = frozen
            .finals
            .iter()
            .zip(generations)
            .map(|(one, generation)| Output {
                name: one.name.clone(),
                kind: one.kind,
                generation,
                size_bytes: one.size_bytes,
                crc32c: one.crc32c,
                sha256: one.sha256.clone(),
                lines: one.lines,
            })
            .collect();
        Some(Self {
            format: ReceiptFormat,
            job: state.job.clone(),
            ending: state.ending.as_ref().map(|ending| ending.reason).into(),
            decision: frozen.decision.clone(),
            lines: state.input.lines,
            outcomes: frozen.outcomes,
            input: validation.input.clone(),
            identity: IdentitySums { expected: validation.identity_sum, found: frozen.identity_found },
            outputs,
            parts: PartTotals {
                count: state.parts.len() as u64,
                bytes: state.parts.iter().map(|part| part.size_bytes).fold(0, u64::saturating_add),
            },
            epochs: frozen.frozen_by_epoch,
            discarded: state.discarded,
            requests: state.requests,
            usage: state.usage.clone(),
            cost: state.usage.cost(),
            frozen_at_ms: frozen.frozen_at_ms,
            written_at_ms,
            written_by: Writer { epoch: state.epoch, incarnation: state.incarnation },
        })
    }
}
