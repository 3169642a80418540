//! The canonical spec: exactly what determines a job's answers, resolved and normalised.
//!
//! Names, limits, rate mode, retries, deadlines, resources and keys are not in it: they may differ when a job is resumed.

use std::collections::BTreeMap;

use penstock_batchfile::{Detected, Endpoint, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{BaseUrl, BaseUrlError, JobSpec, OnInvalid, ProviderKind};

/// OpenAI's own base URL.
const OPENAI: &str = "https://api.openai.com";

/// What determines a job's answers. Its canonical JSON is hashed to the job's identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanonicalSpec {
    /// Which bytes are read.
    pub input: CanonicalInput,
    /// How they are read.
    #[schemars(with = "String")]
    pub format: Format,
    /// Whether unknown top-level fields reject a line.
    pub strict: bool,
    /// What happens when a line is invalid.
    pub on_invalid: OnInvalid,
    /// Longest accepted line in bytes.
    pub max_line_bytes: usize,
    /// Who answers.
    pub provider: CanonicalProvider,
    /// The model for lines that name none.
    pub model: Option<String>,
    /// The endpoint that answers.
    #[schemars(with = "String")]
    pub endpoint: Endpoint,
    /// System prompt of every line.
    pub system_prompt: Option<String>,
    /// Bound on the tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// Further fields of each request's body.
    pub parameters: Map<String, Value>,
    /// Free text that makes a job another one.
    pub run: String,
}

/// The input as it was when the job began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanonicalInput {
    /// For a local file its canonical absolute path.
    pub uri: String,
    /// The pinned generation.
    pub generation: String,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanonicalProvider {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// Base URL without `/v1`; absent for the simulated provider, whose address means nothing.
    pub base_url: Option<String>,
    /// Base URL per routed model.
    pub routes: BTreeMap<String, String>,
}

/// Why a job's description does not make sense.
#[derive(Debug, Error)]
pub enum SpecError {
    /// A base URL is missing.
    #[error(
        "find the provider: `openai-compatible` needs a base URL; pass --base-url, for example http://localhost:8000/v1"
    )]
    NoBaseUrl,
    /// A base URL is malformed.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// Prompts lines name no model, so the job must.
    #[error("choose a model: lines of the format `prompts` name none; pass --model")]
    NoModel,
    /// A model name is empty.
    #[error("use the model: its name is empty; pass --model NAME")]
    EmptyModel,
    /// Prompts need an endpoint that answers with text.
    #[error(
        "use the endpoint {0} with the format `prompts`: its answers are not text; use /v1/chat/completions, /v1/responses or /v1/completions, or write OpenAI lines"
    )]
    EndpointWithoutText(Endpoint),
    /// A setting that only applies to Prompts lines.
    #[error(
        "apply {0} to OpenAI lines: their bodies are sent byte for byte; write it into the bodies, or leave it out"
    )]
    OnlyForPrompts(&'static str),
    /// A parameter that Penstock sets itself.
    #[error("use the parameter `{0}`: penstock sets it itself; take it out of `parameters`")]
    ReservedParameter(String),
    /// A limit on the size of a line that cannot work.
    #[error("use max_line_bytes {0}: choose between 1024 and 67108864")]
    LineCap(usize),
}

/// Fields of a request's body that Penstock writes itself.
const RESERVED: [&str; 7] = ["model", "messages", "input", "prompt", "instructions", "stream", "n"];

impl JobSpec {
    /// Resolves the spec for an input whose generation is known and whose first lines were looked at.
    pub fn canonical(
        &self,
        input: CanonicalInput,
        detected: impl Into<Detected>,
    ) -> Result<CanonicalSpec, SpecError> {
        let Detected { format, endpoint } = detected.into();
        let endpoint = self.endpoint.or(endpoint).unwrap_or(Endpoint::ChatCompletions);
        let model = self.model.clone().or_else(|| {
            // The double answers for any name, so the first command of a newcomer needs none.
            (format == Format::Prompts && self.provider.kind == ProviderKind::Simulated)
                .then(|| "simulated".to_owned())
        });
        if model.as_deref() == Some("") {
            return Err(SpecError::EmptyModel);
        }
        if !(1024..=64 << 20).contains(&self.max_line_bytes) {
            return Err(SpecError::LineCap(self.max_line_bytes));
        }
        match format {
            Format::Prompts => self.check_prompts(model.as_deref(), endpoint)?,
            Format::OpenAi => self.check_openai()?,
        }
        Ok(CanonicalSpec {
            input,
            format,
            strict: self.strict,
            on_invalid: self.on_invalid,
            max_line_bytes: self.max_line_bytes,
            provider: self.canonical_provider()?,
            model,
            endpoint,
            system_prompt: self.system_prompt.clone(),
            max_output_tokens: self.max_output_tokens.map(Into::into),
            parameters: self.parameters.clone(),
            run: self.run.clone(),
        })
    }

    fn check_prompts(&self, model: Option<&str>, endpoint: Endpoint) -> Result<(), SpecError> {
        if model.is_none() {
            return Err(SpecError::NoModel);
        }
        if matches!(endpoint, Endpoint::Embeddings | Endpoint::Moderations) {
            return Err(SpecError::EndpointWithoutText(endpoint));
        }
        match self.parameters.keys().find(|key| RESERVED.contains(&key.as_str())) {
            Some(key) => Err(SpecError::ReservedParameter(key.clone())),
            None => Ok(()),
        }
    }

    fn check_openai(&self) -> Result<(), SpecError> {
        if self.system_prompt.is_some() {
            Err(SpecError::OnlyForPrompts("--system-prompt"))
        } else if self.max_output_tokens.is_some() {
            Err(SpecError::OnlyForPrompts("--max-output-tokens"))
        } else if !self.parameters.is_empty() {
            Err(SpecError::OnlyForPrompts("`parameters`"))
        } else {
            Ok(())
        }
    }

    fn canonical_provider(&self) -> Result<CanonicalProvider, SpecError> {
        let provider = &self.provider;
        let kind = provider.kind;
        if kind == ProviderKind::Simulated {
            return Ok(CanonicalProvider { kind, base_url: None, routes: BTreeMap::new() });
        }
        let routes = provider
            .routes
            .iter()
            .map(|(model, route)| Ok((model.clone(), BaseUrl::parse(&route.base_url)?.to_string())))
            .collect::<Result<BTreeMap<_, _>, BaseUrlError>>()?;
        let base_url = match (&provider.base_url, kind) {
            (Some(url), _) => Some(BaseUrl::parse(url)?.to_string()),
            (None, ProviderKind::OpenAi) => Some(OPENAI.to_owned()),
            (None, _) if !routes.is_empty() => None,
            (None, _) => return Err(SpecError::NoBaseUrl),
        };
        Ok(CanonicalProvider { kind, base_url, routes })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::Route;

    fn input() -> CanonicalInput {
        CanonicalInput { uri: "/data/in.jsonl".to_owned(), generation: "12-34".to_owned() }
    }

    pub(crate) fn canonical() -> CanonicalSpec {
        JobSpec { model: Some("gpt".to_owned()), ..JobSpec::default() }
            .canonical(input(), Format::Prompts)
            .unwrap()
    }

    #[test]
    fn defaults_are_resolved_to_openai_itself() {
        let spec = canonical();
        assert_eq!(spec.provider.base_url.as_deref(), Some("https://api.openai.com"));
        assert_eq!(spec.endpoint, Endpoint::ChatCompletions);
    }

    #[test]
    fn the_endpoint_is_the_users_else_the_lines_else_chat_completions() {
        let endpoint = |own, detected| {
            let spec = JobSpec { endpoint: own, ..JobSpec::default() };
            let detected = Detected { format: Format::OpenAi, endpoint: detected };
            spec.canonical(input(), detected).unwrap().endpoint
        };
        assert_eq!(endpoint(None, None), Endpoint::ChatCompletions);
        assert_eq!(endpoint(None, Some(Endpoint::Embeddings)), Endpoint::Embeddings);
        assert_eq!(endpoint(Some(Endpoint::Responses), Some(Endpoint::Embeddings)), Endpoint::Responses);
    }

    #[test]
    fn the_same_provider_written_in_two_ways_is_one_job() {
        let with = |url: &str| {
            let mut spec = JobSpec { model: Some("m".to_owned()), ..JobSpec::default() };
            spec.provider.kind = ProviderKind::OpenAiCompatible;
            spec.provider.base_url = Some(url.to_owned());
            spec.canonical(input(), Format::Prompts).unwrap()
        };
        assert_eq!(with("http://h:1/v1/"), with("http://h:1"));
    }

    #[test]
    fn the_address_of_the_simulated_provider_is_not_part_of_the_job() {
        let mut spec = JobSpec::default();
        spec.provider.kind = ProviderKind::Simulated;
        let first = spec.canonical(input(), Format::Prompts).unwrap();
        spec.provider.base_url = Some("http://127.0.0.1:9".to_owned());
        assert_eq!(first, spec.canonical(input(), Format::Prompts).unwrap());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let with_model = || JobSpec { model: Some("m".to_owned()), ..JobSpec::default() };
        let refused = |change: &dyn Fn(&mut JobSpec), format| {
            let mut spec = with_model();
            change(&mut spec);
            spec.canonical(input(), format).unwrap_err().to_string()
        };
        assert!(refused(&|spec| spec.model = None, Format::Prompts).contains("--model"));
        assert!(refused(&|spec| spec.model = Some(String::new()), Format::OpenAi).contains("empty"));
        assert!(
            refused(&|spec| spec.endpoint = Some(Endpoint::Embeddings), Format::Prompts).contains("not text")
        );
        assert!(
            refused(&|spec| spec.system_prompt = Some("s".into()), Format::OpenAi)
                .contains("--system-prompt")
        );
        assert!(
            refused(&|spec| spec.max_output_tokens = 1.try_into().ok(), Format::OpenAi)
                .contains("--max-output")
        );
        assert!(
            refused(&|spec| spec.provider.kind = ProviderKind::OpenAiCompatible, Format::OpenAi)
                .contains("--base-url")
        );
        assert!(refused(&|spec| spec.max_line_bytes = 0, Format::OpenAi).contains("max_line_bytes"));
        let stream = |spec: &mut JobSpec| {
            spec.parameters.insert("stream".to_owned(), json!(true));
        };
        assert!(refused(&stream, Format::Prompts).contains("`stream`"));
        let route = |spec: &mut JobSpec| {
            spec.provider
                .routes
                .insert("m".to_owned(), Route { base_url: "nowhere".to_owned(), ..Route::default() });
        };
        assert!(refused(&route, Format::OpenAi).contains("nowhere"));
    }
}
