//! What can become of a line, and what was tried for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of a line. Each line of a job has exactly one outcome in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The provider answered.
    Succeeded,
    /// The provider refused it for good, or every attempt failed.
    Failed,
    /// The line is not valid input; nothing was sent.
    Rejected,
    /// The completion window ended first.
    Expired,
    /// The job was cancelled first.
    Cancelled,
    /// The job failed first.
    Abandoned,
}

impl OutcomeKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Succeeded, Self::Failed, Self::Rejected, Self::Expired, Self::Cancelled, Self::Abandoned];

    /// The word that stands in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The outcomes of lines that an early end of the job left undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Undone {
    /// The completion window ended.
    Expired,
    /// The job was cancelled.
    Cancelled,
    /// The job failed.
    Abandoned,
}

impl Undone {
    /// The error code of the record.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Expired => "batch_expired",
            Self::Cancelled => "batch_cancelled",
            Self::Abandoned => "batch_failed",
        }
    }
}

impl From<Undone> for OutcomeKind {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Expired => Self::Expired,
            Undone::Cancelled => Self::Cancelled,
            Undone::Abandoned => Self::Abandoned,
        }
    }
}

/// One try to get a line answered that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was sent, in milliseconds since the epoch.
    pub at_ms: u64,
    /// HTTP status of the answer, `None` when there was no answer.
    pub status: Option<u16>,
    /// What went wrong.
    pub code: String,
    /// From sending to the failure, in milliseconds.
    pub latency_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_and_display_use_the_same_word() {
        for kind in OutcomeKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
    }
}
