//! The names of the two line formats.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How the lines of an input, and so of its outputs, are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `{"prompt_id": 7, "prompt": "..."}`
    Prompts,
    /// `{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}}`
    OpenAi,
}

impl Format {
    /// `prompts` or `openai`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::OpenAi => "openai",
        }
    }

    /// The field that holds a line's id.
    pub(crate) const fn id_name(self) -> &'static str {
        match self {
            Self::Prompts => "prompt_id",
            Self::OpenAi => "custom_id",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read the format `{0}`: write `prompts` or `openai`")]
pub struct UnknownFormatName(String);

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Prompts, Self::OpenAi]
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| UnknownFormatName(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_parse_and_serde_use_the_same_name() {
        for format in [Format::Prompts, Format::OpenAi] {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(serde_json::to_string(&format).unwrap(), format!("\"{format}\""));
        }
    }

    #[test]
    fn another_name_is_refused_with_the_two_that_exist() {
        let refused = "jsonl".parse::<Format>().unwrap_err();
        assert_eq!(refused.to_string(), "read the format `jsonl`: write `prompts` or `openai`");
    }
}
