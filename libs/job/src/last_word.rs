//! `penstock.last-word/1`: how an executor's process ended. It stands in the pod's termination message and in the last
//! report, so that an operator that was away, or that may not read the bucket, knows it all the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    clipped::Clipped,
    document::{Document, Medium, format_tag},
    exit::ExitCode,
    identity::Identity,
    incarnation::{Epoch, Incarnation},
    money::Cost,
    reason::Reason,
    receipt::{Receipt, ReceiptEnding},
    report::{Owner, RunRequests, Stage},
    state::{Outcomes, PartOutcomes, Requests},
    usage::Tokens,
};

format_tag! {
    /// The format of a last word.
    LastWordFormat = "penstock.last-word/1"
}

/// No last word is longer, in bytes: what a kubelet keeps of a termination message.
pub const LONGEST_LAST_WORD: usize = 4_096;

/// How a process ended and what it knew then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastWord {
    /// Names this schema.
    pub format: LastWordFormat,
    /// Whose job it is; empty when the job file could not be read.
    pub job: Owner,
    /// The job's identity; `null` when the process ended before it was known.
    pub identity: Option<Identity>,
    /// The epoch of the process's claim; 0 before it.
    pub epoch: Epoch,
    /// Which process it was.
    pub incarnation: Incarnation,
    /// What the process exits with.
    pub exit_code: ExitCode,
    /// What it was doing.
    pub stage: Stage,
    /// Why it did not come further, as a word; `null` when it did all there was to do, or when no word is for it.
    pub reason: Option<Reason>,
    /// What happened and what to do, in a sentence or two.
    pub message: Clipped<1024>,
    /// Non-blank lines of the input; 0 when the process ended before its claim.
    pub lines: u64,
    /// Lines that validation rejected.
    pub rejected: u64,
    /// Outcomes of all other lines as this process knew them, those of earlier runs included.
    pub outcomes: PartOutcomes,
    /// Requests of this process.
    pub requests: RunRequests,
    /// Tokens of the job so far, those of earlier runs included.
    pub tokens: Tokens,
    /// What they cost; `null` where a price is not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// What was published; `null` when no receipt was read, which is when the job is not over.
    pub receipt: Option<ReceiptInBrief>,
}

impl Document for LastWord {
    const NAME: &'static str = "the last word";
    const FORMAT: &'static str = LastWordFormat::TEXT;
    const MEDIUM: Medium = Medium::Message;
}

/// What a receipt says, without what only `verify` needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiptInBrief {
    /// How the job ended.
    pub ending: ReceiptEnding,
    /// Hash of what is published.
    pub decision: Clipped<64>,
    /// Non-blank lines of the input.
    pub lines: u64,
    /// What became of them; their sum is `lines`.
    pub outcomes: Outcomes,
    /// How many claims it took up to the freeze.
    pub epochs: Epoch,
    /// Requests of all runs of the job: lower bounds.
    pub requests: Requests,
    /// Tokens that the answers took.
    #[serde(default)]
    pub tokens: Tokens,
    /// What they cost; `null` where a price is not known.
    #[serde(default)]
    pub cost: Option<Cost>,
    /// When the outcome was decided, in milliseconds since the epoch.
    pub frozen_at_ms: u64,
}

impl From<&Receipt> for ReceiptInBrief {
    fn from(receipt: &Receipt) -> Self {
        Self {
            ending: receipt.ending,
            decision: receipt.decision.as_str().into(),
            lines: receipt.lines,
            outcomes: receipt.outcomes,
            epochs: receipt.epochs,
            requests: receipt.requests,
            tokens: receipt.usage.models.total(),
            cost: receipt.cost,
            frozen_at_ms: receipt.frozen_at_ms,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{document, money::Currency, spec::Metadata, spec::tests::canonical};

    /// A text that is long and takes more bytes in JSON than characters.
    pub(crate) fn noisy() -> String {
        "\u{1}\"Ä".repeat(10_000)
    }

    /// A last word in which everything is as long as can be.
    pub(crate) fn longest_last_word() -> LastWord {
        let text = noisy();
        let outcomes = PartOutcomes {
            succeeded: u64::MAX,
            failed: u64::MAX,
            expired: u64::MAX,
            cancelled: u64::MAX,
            abandoned: u64::MAX,
        };
        let tokens = Tokens { input: u64::MAX, cached_input: u64::MAX, output: u64::MAX };
        let most = format!("{}.99", u128::MAX / 1_000_000_000_000 - 1);
        let cost = Some(Cost { amount: most.parse().unwrap(), currency: Currency::default() });
        LastWord {
            format: LastWordFormat,
            job: Owner::from(&Metadata { uid: text.clone(), namespace: text.clone(), name: text.clone() }),
            identity: Some(Identity::of(&canonical())),
            epoch: Epoch(u32::MAX),
            incarnation: Incarnation::draw(),
            exit_code: ExitCode::Interrupted,
            stage: Stage::Reconciling,
            reason: Some(Reason::CompletionWindowOver),
            message: text.as_str().into(),
            lines: u64::MAX,
            rejected: u64::MAX,
            outcomes,
            requests: RunRequests { sent: u64::MAX, throttled: u64::MAX, retried: u64::MAX },
            tokens,
            cost,
            receipt: Some(ReceiptInBrief {
                ending: ReceiptEnding::Completed,
                decision: text.as_str().into(),
                lines: u64::MAX,
                outcomes: outcomes.with_rejected(u64::MAX),
                epochs: Epoch(u32::MAX),
                requests: Requests { sent: u64::MAX, throttled: u64::MAX },
                tokens,
                cost,
                frozen_at_ms: u64::MAX,
            }),
        }
    }

    #[test]
    fn no_last_word_outgrows_what_a_kubelet_keeps_and_the_longest_reads_back() {
        let word = longest_last_word();
        let bytes = document::write(&word);
        assert!(bytes.len() <= LONGEST_LAST_WORD, "{}", bytes.len());
        assert_eq!(document::read::<LastWord>(&bytes).unwrap(), word);
    }

    #[test]
    fn an_exit_code_that_no_executor_has_is_refused() {
        let mut value = serde_json::to_value(longest_last_word()).unwrap();
        value["exit_code"] = 101.into();
        let message = document::read::<LastWord>(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(message.contains("`exit_code`") && message.contains("101"), "{message}");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_for_a_last_word_is_written_as_it_was_read(
            at in any::<prop::sample::Index>(),
            replaced in any::<u8>(),
        ) {
            let mut bytes = document::write(&longest_last_word());
            let at = at.index(bytes.len());
            bytes[at] = replaced;
            if let Ok(word) = document::read::<LastWord>(&bytes) {
                prop_assert_eq!(document::read::<LastWord>(&document::write(&word)).unwrap(), word);
            }
        }
    }
}
