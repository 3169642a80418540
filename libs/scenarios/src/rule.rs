//! The rules by which requests can be paced, by the names that users write.

use std::{fmt, str::FromStr};

use penstock_rate::Mode;
use serde::{Deserialize, Serialize};

/// A rule that decides when requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// A client that knows the limit and when it changes.
    Oracle,
    /// A hundred workers that back off when they are refused.
    Script,
    /// The learner's mode `aimd`.
    Aimd,
    /// The learner's mode `adaptive`.
    Adaptive,
}

impl Rule {
    /// Every rule, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Oracle, Self::Script, Self::Aimd, Self::Adaptive];

    /// The name that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Script => "script",
            Self::Aimd => Mode::Aimd.as_str(),
            Self::Adaptive => Mode::Adaptive.as_str(),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A name that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the rule: `{0}` is none, use {names}", names = Rule::ALL.map(|rule| format!("`{rule}`")).join(", "))]
pub struct UnknownRule(pub String);

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == name).ok_or_else(|| UnknownRule(name.to_owned()))
    }
}
