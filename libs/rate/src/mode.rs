//! The ways of finding a rate, by the names users give them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the rate is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The user's limits are the rate; refusals do not change it. Without limits nothing is paced.
    Fixed,
    /// Additive increase, multiplicative decrease: starts low, grows until the first refusal, backs off by a
    /// quarter, climbs by one.
    Aimd,
    /// Reads from refusals, and from what the provider says, where the limit is, and stays close to it.
    Adaptive,
}

impl Mode {
    /// Every mode, in the order in which help texts name them.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Aimd, Self::Adaptive];

    /// The name that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aimd => "aimd",
            Self::Adaptive => "adaptive",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A name that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read the rate mode: `{0}` is none, use `fixed`, `aimd` or `adaptive`")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_reads_back_from_its_name_and_its_json() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_there_are() {
        let message = "Aimd".parse::<Mode>().unwrap_err().to_string();
        assert_eq!(message, "read the rate mode: `Aimd` is none, use `fixed`, `aimd` or `adaptive`");
    }
}
