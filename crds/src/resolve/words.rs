//! The words of a manifest as those of a job file. A word that one side gets and the other lacks does not compile.

use penstock_batchfile as batchfile;
use penstock_job::spec;

use crate::{
    batch_job::{Endpoint, InputFormat, OnInvalid, RateMode},
    provider::ProviderKind,
};

impl From<InputFormat> for spec::FormatChoice {
    fn from(format: InputFormat) -> Self {
        match format {
            InputFormat::Auto => Self::Auto,
            InputFormat::Prompts => Self::Prompts,
            InputFormat::OpenAI => Self::OpenAi,
        }
    }
}

impl From<OnInvalid> for spec::OnInvalid {
    fn from(choice: OnInvalid) -> Self {
        match choice {
            OnInvalid::Skip => Self::Skip,
            OnInvalid::Fail => Self::Fail,
        }
    }
}

impl From<Endpoint> for batchfile::Endpoint {
    fn from(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::ChatCompletions => Self::ChatCompletions,
            Endpoint::Responses => Self::Responses,
            Endpoint::Completions => Self::Completions,
            Endpoint::Embeddings => Self::Embeddings,
            Endpoint::Moderations => Self::Moderations,
        }
    }
}

impl From<RateMode> for spec::RateMode {
    fn from(mode: RateMode) -> Self {
        match mode {
            RateMode::Adaptive => Self::Adaptive,
            RateMode::Fixed => Self::Fixed,
            RateMode::Aimd => Self::Aimd,
        }
    }
}

impl From<ProviderKind> for spec::ProviderKind {
    fn from(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::OpenAI => Self::OpenAi,
            ProviderKind::OpenAICompatible => Self::OpenAiCompatible,
            ProviderKind::Gemini => Self::Gemini,
            ProviderKind::Anthropic => Self::Anthropic,
            ProviderKind::AzureOpenAI => Self::AzureOpenAi,
            ProviderKind::Simulated => Self::Simulated,
        }
    }
}
