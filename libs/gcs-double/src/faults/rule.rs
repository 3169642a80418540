//! One rule: the requests that it names, which of them fail, and how.

use serde::{Deserialize, Serialize};

use super::Pattern;
use crate::operation::Operation;

/// Which requests meet which fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What happens.
    pub fault: Fault,
    /// The operations that it is about; all if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// The names of the objects that it is about; for a listing, the prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Pattern>,
    /// Which of the requests that it is about.
    #[serde(default)]
    pub calls: Calls,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error, and nothing was done.
    ErrorBefore {
        /// The HTTP status, such as 503; gRPC has the code that stands for it.
        status: u16,
    },
    /// An error, and all was done.
    ErrorAfter {
        /// The HTTP status, such as 503; gRPC has the code that stands for it.
        status: u16,
    },
    /// No answer, and nothing was done.
    StallBefore,
    /// No answer, and all was done.
    StallAfter,
    /// The connection breaks when so many bytes of an upload have arrived. Of an upload in chunks, what was
    /// whole is kept.
    BreakRequest {
        /// Bytes of the body.
        after_bytes: u64,
    },
    /// The connection breaks when so many bytes of the content were sent; where none are, before the answer.
    /// All was done.
    BreakResponse {
        /// Bytes of content.
        after_bytes: u64,
    },
    /// The content is sent no faster than this.
    Slow {
        /// Bytes of content.
        bytes_per_second: u64,
    },
    /// The answer comes later.
    Delay {
        /// Milliseconds.
        milliseconds: u64,
    },
}

/// Which requests of those that a rule names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// Every one.
    #[default]
    All,
    /// The first so many.
    First(u64),
    /// These, counted from 1.
    Nth(Vec<u64>),
    /// So large a share, drawn by seed, name and how often that was asked before.
    Share(f64),
}

/// A rule that says nothing that can be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidFaultRule {
    /// Not a share.
    #[error("a fault rule asks for the share {share} of the requests; write a share between 0 and 1")]
    Share {
        /// What was asked for.
        share: f64,
    },
    /// Not an error.
    #[error(
        "a fault rule answers with the status {status}; write one of 401, 403, 408, 429, 500, 502, 503, 504"
    )]
    Status {
        /// What was asked for.
        status: u16,
    },
    /// It would never end.
    #[error("a fault rule sends 0 bytes per second; write 1 or more, or use `stall_before`")]
    Standstill,
}

impl FaultRule {
    /// This fault for every request.
    pub fn always(fault: Fault) -> Self {
        Self { fault, operations: Vec::new(), object: None, calls: Calls::All }
    }

    /// Whether it is about a request.
    pub(super) fn names(&self, operation: Operation, name: &str) -> bool {
        let operation = self.operations.is_empty() || self.operations.contains(&operation);
        operation && self.object.as_ref().is_none_or(|pattern| pattern.fits(name))
    }

    pub(super) fn check(&self) -> Result<(), InvalidFaultRule> {
        match self.calls {
            Calls::Share(share) if !(0.0..=1.0).contains(&share) => {
                return Err(InvalidFaultRule::Share { share });
            }
            _ => {}
        }
        match self.fault {
            Fault::ErrorBefore { status } | Fault::ErrorAfter { status }
                if !matches!(status, 401 | 403 | 408 | 429 | 500 | 502 | 503 | 504) =>
            {
                Err(InvalidFaultRule::Status { status })
            }
            Fault::Slow { bytes_per_second: 0 } => Err(InvalidFaultRule::Standstill),
            _ => Ok(()),
        }
    }
}

impl Calls {
    /// Whether it is one of them: the `count`th, with a `draw` in 0..1.
    pub(super) fn holds(&self, count: u64, draw: f64) -> bool {
        match self {
            Self::All => true,
            Self::First(first) => count <= *first,
            Self::Nth(these) => these.contains(&count),
            Self::Share(share) => draw < *share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_from_json_and_unknown_words_refused() {
        let rule: FaultRule = serde_json::from_str(
            r#"{"fault": {"error_after": {"status": 503}}, "operations": ["write", "compose"],
                "object": "*/parts/*", "calls": {"share": 0.05}}"#,
        )
        .unwrap();
        assert_eq!(rule.fault, Fault::ErrorAfter { status: 503 });
        assert_eq!(rule.calls, Calls::Share(0.05));
        assert!(rule.names(Operation::Compose, "a/parts/1") && !rule.names(Operation::Read, "a/parts/1"));
        assert_eq!(serde_json::from_value::<FaultRule>(serde_json::to_value(&rule).unwrap()).unwrap(), rule);
        let stall: FaultRule =
            serde_json::from_str(r#"{"fault": "stall_before", "calls": {"first": 1}}"#).unwrap();
        assert_eq!(stall.calls, Calls::First(1));
        for bad in [r#"{"fault": "explode"}"#, r#"{"fault": "stall_after", "objects": "a"}"#] {
            assert!(serde_json::from_str::<FaultRule>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_done_is_refused() {
        let always = |fault| FaultRule::always(fault);
        assert!(always(Fault::ErrorBefore { status: 412 }).check().is_err());
        assert!(always(Fault::Slow { bytes_per_second: 0 }).check().is_err());
        let share = FaultRule { calls: Calls::Share(1.5), ..always(Fault::StallBefore) };
        assert_eq!(share.check(), Err(InvalidFaultRule::Share { share: 1.5 }));
    }
}
