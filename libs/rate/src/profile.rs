//! What kind of provider the learner faces, by the names users give them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of provider. It chooses constants, never the way of learning, so a wrong one costs time and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// `OpenAI` and those who limit like it: buckets a minute deep, tokens reserved up front.
    OpenAi,
    /// Azure `OpenAI`: fixed windows of ten seconds or a minute.
    Azure,
    /// Anthropic: prompts and answers are counted apart, answers as they are produced, and steep rises are refused.
    Anthropic,
    /// Gemini: the limits stand in the bodies of refusals.
    Gemini,
    /// A server of one's own that limits nothing, but saturates.
    Vllm,
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Profile {
    /// Every profile, in the order in which help texts name them.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Azure, Self::Anthropic, Self::Gemini, Self::Vllm, Self::Unknown];

    /// The name that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Vllm => "vllm",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A name that is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "read the provider profile: `{0}` is none, use `openai`, `azure`, `anthropic`, `gemini`, `vllm` or `unknown`"
)]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    /// Reads a name; `openai-compatible` is another one for `vllm`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "openai-compatible" => Ok(Self::Vllm),
            _ => Self::ALL
                .into_iter()
                .find(|profile| profile.as_str() == name)
                .ok_or_else(|| UnknownProfile(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_reads_back_from_its_name_and_its_json() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
        }
        assert_eq!("openai-compatible".parse(), Ok(Profile::Vllm));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_there_are() {
        let message = "groq".parse::<Profile>().unwrap_err().to_string();
        let names = Profile::ALL.map(Profile::as_str);
        assert!(names.iter().all(|name| message.contains(name)), "{message}");
    }
}
