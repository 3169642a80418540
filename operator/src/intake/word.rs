//! What an intake says when it is done: a termination message of at most 4,096 bytes where it ran in a pod.

use std::fmt::Display;

use penstock_job::{Identity, Reason, Receipt, State, Validation, last_word::ReceiptInBrief};
use serde::{Deserialize, Serialize};

/// Longest message, in bytes: with everything else it fits the 4,096 bytes that the kubelet keeps.
const MESSAGE_BYTES: usize = 1_536;

/// What an intake found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "word")]
pub enum Word {
    /// The job may run.
    Accepted(Validated),
    /// Nothing may be sent: the input has no lines, or none that is valid, or one that is not.
    Refused {
        /// Why, as a word.
        reason: Reason,
        /// Why, and what helps.
        message: String,
        /// What was found, unless not even the format was.
        validated: Option<Validated>,
    },
    /// The job is over: its receipt is there.
    Over(Box<Over>),
    /// The input is not there.
    Absent {
        /// Where it is looked for.
        message: String,
    },
    /// The output belongs to another job.
    Occupied {
        /// What differs, and what helps.
        message: String,
    },
    /// The input is larger than what is validated here.
    TooLarge {
        /// Its size.
        size_bytes: u64,
    },
    /// Somebody else must look: whoever looked may not read the input or write the output.
    Denied {
        /// What was refused, and what helps.
        message: String,
    },
    /// Something must be corrected first.
    Misconfigured {
        /// What, and how.
        message: String,
    },
    /// It did not work this time and may work the next.
    Trouble {
        /// What did not work.
        message: String,
    },
}

/// What validation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validated {
    /// The job's identity.
    pub identity: Identity,
    /// The generation of the input.
    pub generation: String,
    /// Non-blank lines.
    pub lines: u64,
    /// How many of them are invalid.
    pub rejected: u64,
}

/// How a job ended, by its receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// What validation had found.
    pub validated: Validated,
    /// What the receipt says.
    pub receipt: ReceiptInBrief,
}

impl Word {
    /// Something must be corrected first; `error` reads after "failed to".
    pub(super) fn misconfigured(error: &impl Display) -> Self {
        Self::Misconfigured { message: failed_to(error) }
    }

    /// It may work the next time; `error` reads after "failed to".
    pub(super) fn trouble(error: impl Display) -> Self {
        Self::Trouble { message: failed_to(error) }
    }

    /// The output is that of a job that differs in `field`.
    pub(super) fn occupied(field: &str) -> Self {
        Self::Occupied {
            message: format!(
                "The output belongs to another job, whose `{field}` differs; its files were not touched. Choose another \
                 output, and another `spec.run` to have the same work done again."
            ),
        }
    }

    /// As a termination message.
    pub fn to_message(&self) -> String {
        serde_json::to_string(self).expect("invariant: a word holds only what JSON can hold")
    }

    /// From a termination message; `None` for any other text.
    pub fn from_message(message: &str) -> Option<Self> {
        serde_json::from_str(message).ok()
    }
}

fn failed_to(error: impl Display) -> String {
    let mut message = format!("failed to {error}");
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    message
}

impl From<&Validation> for Validated {
    fn from(validation: &Validation) -> Self {
        Self {
            identity: validation.identity.clone(),
            generation: validation.input.generation.clone(),
            lines: validation.lines,
            rejected: validation.rejected,
        }
    }
}

impl From<&State> for Validated {
    fn from(state: &State) -> Self {
        Self {
            identity: state.job.identity.clone(),
            generation: state.input.generation.clone(),
            lines: state.input.lines,
            rejected: state.input.rejected,
        }
    }
}

impl From<&Receipt> for Over {
    fn from(receipt: &Receipt) -> Self {
        Self {
            validated: Validated {
                identity: receipt.job.identity.clone(),
                generation: receipt.input.generation.clone(),
                lines: receipt.lines,
                rejected: receipt.outcomes.rejected,
            },
            receipt: ReceiptInBrief::from(receipt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_still_fits_what_the_kubelet_keeps() {
        let word = Word::trouble("\u{e4}\"".repeat(5_000));
        let text = word.to_message();
        assert!(text.len() <= 4_096, "{}", text.len());
        assert_eq!(Word::from_message(&text), Some(word));
    }

    #[test]
    fn what_is_no_word_is_none() {
        assert_eq!(Word::from_message("exec format error"), None);
    }
}
