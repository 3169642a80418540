//! The kinds of provider, and what a job's description may ask of each. How they are spoken to is the executor's.

use std::fmt;

use penstock_batchfile::{Endpoint, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// OpenAI itself.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// Anything that speaks OpenAI's API: vLLM, a gateway.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
    /// Google's Gemini API: `generateContent` for prompts, its OpenAI-compatible endpoints for OpenAI lines.
    Gemini,
    /// Anthropic: Messages for prompts, its OpenAI-compatible endpoint for OpenAI lines.
    Anthropic,
    /// Azure OpenAI, where a model is a deployment.
    #[serde(rename = "azure-openai")]
    AzureOpenAi,
    /// The provider double that comes with Penstock.
    Simulated,
}

/// The version of Azure's API that is asked for where a job names none: the last that is generally available under a
/// date (<https://learn.microsoft.com/azure/ai-foundry/openai/reference>).
const AZURE_API_VERSION: &str = "2024-10-21";

/// Anthropic wants a bound on every answer. Each of its models allows this one.
const ANTHROPIC_MAX_TOKENS: u32 = 4_096;

/// Fields of a body in OpenAI's API that Penstock writes itself.
const OF_OPENAI: &[&str] = &["model", "messages", "input", "prompt", "instructions", "stream", "n"];

/// The same for `generateContent`, whose JSON takes each name in both spellings.
const OF_GEMINI: &[&str] = &[
    "model",
    "contents",
    "systemInstruction",
    "system_instruction",
    "generationConfig",
    "generation_config",
    "candidateCount",
    "candidate_count",
];

/// The same for Messages.
const OF_ANTHROPIC: &[&str] = &["model", "messages", "system", "stream"];

impl ProviderKind {
    /// The word for it in a job file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::AzureOpenAi => "azure-openai",
            Self::Simulated => "simulated",
        }
    }

    /// Its own base URL, where there is one for everybody.
    pub(super) const fn own_base_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::OpenAiCompatible | Self::AzureOpenAi | Self::Simulated => None,
        }
    }

    /// What a base URL looks like, for messages.
    pub(super) const fn example_base_url(self) -> &'static str {
        match self {
            Self::AzureOpenAi => "https://NAME.openai.azure.com",
            Self::OpenAi | Self::OpenAiCompatible | Self::Simulated => "http://localhost:8000/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// What users may write at the end of its base URL and what is sent anyway, from the end.
    pub(super) const fn sent_anyway(self) -> &'static [&'static str] {
        match self {
            Self::Gemini => &["/openai", "/v1beta"],
            Self::AzureOpenAi => &["/openai"],
            Self::OpenAi | Self::OpenAiCompatible | Self::Anthropic | Self::Simulated => &[],
        }
    }

    /// The endpoints that answer lines of a format.
    pub(super) const fn endpoints(self, format: Format) -> &'static [Endpoint] {
        use Endpoint::{ChatCompletions, Completions, Embeddings};
        match (self, format) {
            (Self::OpenAi | Self::OpenAiCompatible | Self::Simulated, _) => &Endpoint::ALL,
            (Self::Gemini, Format::OpenAi) => &[ChatCompletions, Embeddings],
            (Self::Gemini, Format::Prompts) | (Self::Anthropic, _) => &[ChatCompletions],
            (Self::AzureOpenAi, Format::OpenAi) => &[ChatCompletions, Completions, Embeddings],
            (Self::AzureOpenAi, Format::Prompts) => &[ChatCompletions, Completions],
        }
    }

    /// Fields of a request's body that Penstock writes itself.
    pub(super) const fn reserved_parameters(self) -> &'static [&'static str] {
        match self {
            Self::Gemini => OF_GEMINI,
            Self::Anthropic => OF_ANTHROPIC,
            Self::OpenAi | Self::OpenAiCompatible | Self::AzureOpenAi | Self::Simulated => OF_OPENAI,
        }
    }

    /// The version of its API where a job names none; `None` for those that are asked for no version.
    pub(super) const fn default_api_version(self) -> Option<&'static str> {
        match self {
            Self::AzureOpenAi => Some(AZURE_API_VERSION),
            Self::OpenAi | Self::OpenAiCompatible | Self::Gemini | Self::Anthropic | Self::Simulated => None,
        }
    }

    /// The bound on an answer that it needs where a job sets none, and the parameter that sets one too.
    pub(super) const fn required_bound(self) -> Option<(u32, &'static str)> {
        match self {
            Self::Anthropic => Some((ANTHROPIC_MAX_TOKENS, "max_tokens")),
            Self::OpenAi | Self::OpenAiCompatible | Self::Gemini | Self::AzureOpenAi | Self::Simulated => {
                None
            }
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kind_is_its_word_in_a_job_file() {
        use ProviderKind::{Anthropic, AzureOpenAi, Gemini, OpenAi, OpenAiCompatible, Simulated};
        for kind in [OpenAi, OpenAiCompatible, Gemini, Anthropic, AzureOpenAi, Simulated] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
