//! The canonical spec: exactly what determines a job's answers, resolved and normalised.
//!
//! Names, limits, rate mode, retries, deadlines, resources and keys are not in it: they may differ when a job is resumed.

use std::collections::BTreeMap;

use penstock_batchfile::{Detected, Endpoint, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{BaseUrl, BaseUrlError, BudgetError, JobSpec, OnInvalid, ProviderKind};

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
    /// Version of the API that is asked for; absent where the provider has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

/// Why a job's description does not make sense.
#[derive(Debug, Error)]
pub enum SpecError {
    /// A base URL is missing.
    #[error(
        "find the provider: `{0}` needs a base URL; pass --base-url, for example {example}",
        example = .0.example_base_url()
    )]
    NoBaseUrl(ProviderKind),
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
    /// The provider has no such endpoint for lines of this format.
    #[error(
        "use the endpoint {endpoint} with the provider `{kind}`: it answers lines of this format at {served}; use that, \
         or reach an OpenAI-compatible API of the provider with --provider openai-compatible",
        served = paths(kind.endpoints(*format))
    )]
    EndpointNotServed {
        /// The job's endpoint.
        endpoint: Endpoint,
        /// The job's provider.
        kind: ProviderKind,
        /// The format of its lines.
        format: Format,
    },
    /// A version for a provider that is not asked for one.
    #[error("ask `{0}` for an API version: only `azure-openai` has one; leave it out")]
    NoApiVersion(ProviderKind),
    /// A version that is none.
    #[error("ask for the API version `{0}`: write a date such as 2024-10-21 or 2025-04-01-preview")]
    ApiVersion(String),
    /// A setting that only applies to Prompts lines.
    #[error(
        "apply {0} to OpenAI lines: their bodies are sent byte for byte; write it into the bodies, or leave it out"
    )]
    OnlyForPrompts(&'static str),
    /// A parameter that Penstock sets itself.
    #[error("use the parameter `{0}`: penstock sets it itself; take it out of `parameters`")]
    ReservedParameter(String),
    /// A budget that nobody could keep to.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A limit on the size of a line that cannot work.
    #[error("use max_line_bytes {0}: choose between 1024 and 67108864")]
    LineCap(usize),
}

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
        let kind = self.provider.kind;
        if !kind.endpoints(format).contains(&endpoint) {
            return Err(SpecError::EndpointNotServed { endpoint, kind, format });
        }
        self.budget.check(self.prices.as_ref(), model.as_deref())?;
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
            max_output_tokens: self.bound(format),
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
        let reserved = self.provider.kind.reserved_parameters();
        match self.parameters.keys().find(|key| reserved.contains(&key.as_str())) {
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

    /// The bound on an answer, with the one that the provider needs where the job sets none.
    fn bound(&self, format: Format) -> Option<u32> {
        let required = || {
            let (bound, parameter) = self.provider.kind.required_bound()?;
            (format == Format::Prompts && !self.parameters.contains_key(parameter)).then_some(bound)
        };
        self.max_output_tokens.map(Into::into).or_else(required)
    }

    fn canonical_provider(&self) -> Result<CanonicalProvider, SpecError> {
        let provider = &self.provider;
        let kind = provider.kind;
        let api_version = self.api_version()?;
        if kind == ProviderKind::Simulated {
            return Ok(CanonicalProvider { kind, base_url: None, routes: BTreeMap::new(), api_version });
        }
        let routes = provider
            .routes
            .iter()
            .map(|(model, route)| Ok((model.clone(), BaseUrl::of(kind, &route.base_url)?.to_string())))
            .collect::<Result<BTreeMap<_, _>, BaseUrlError>>()?;
        let base_url = match (&provider.base_url, kind.own_base_url()) {
            (Some(url), _) => Some(BaseUrl::of(kind, url)?.to_string()),
            (None, Some(own)) => Some(own.to_owned()),
            (None, None) if !routes.is_empty() => None,
            (None, None) => return Err(SpecError::NoBaseUrl(kind)),
        };
        Ok(CanonicalProvider { kind, base_url, routes, api_version })
    }

    fn api_version(&self) -> Result<Option<String>, SpecError> {
        let kind = self.provider.kind;
        match (&self.provider.api_version, kind.default_api_version()) {
            (None, default) => Ok(default.map(str::to_owned)),
            (Some(_), None) => Err(SpecError::NoApiVersion(kind)),
            (Some(version), Some(_)) if is_version(version) => Ok(Some(version.clone())),
            (Some(version), Some(_)) => Err(SpecError::ApiVersion(version.clone())),
        }
    }
}

/// Whether a text can be the version of an API; it goes into a URL.
fn is_version(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Endpoints as a list for people.
fn paths(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(|endpoint| endpoint.path()).collect::<Vec<_>>().join(", ")
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

    fn of_kind(kind: ProviderKind) -> JobSpec {
        let mut spec = JobSpec { model: Some("m".to_owned()), ..JobSpec::default() };
        spec.provider.kind = kind;
        spec.provider.base_url = Some("http://host".to_owned());
        spec
    }

    #[test]
    fn each_provider_with_an_address_of_its_own_is_found_there() {
        for (kind, expected) in [
            (ProviderKind::Gemini, "https://generativelanguage.googleapis.com"),
            (ProviderKind::Anthropic, "https://api.anthropic.com"),
        ] {
            let mut spec = of_kind(kind);
            spec.provider.base_url = None;
            let canonical = spec.canonical(input(), Format::Prompts).unwrap();
            assert_eq!(canonical.provider.base_url.as_deref(), Some(expected));
        }
        let mut spec = of_kind(ProviderKind::AzureOpenAi);
        spec.provider.base_url = None;
        let refused = spec.canonical(input(), Format::Prompts).unwrap_err().to_string();
        assert!(refused.contains("openai.azure.com"), "{refused}");
    }

    #[test]
    fn the_api_version_is_part_of_the_job_where_there_is_one_and_absent_elsewhere() {
        let mut spec = of_kind(ProviderKind::AzureOpenAi);
        let version =
            |spec: &JobSpec| spec.canonical(input(), Format::Prompts).map(|spec| spec.provider.api_version);
        assert_eq!(version(&spec).unwrap().as_deref(), Some("2024-10-21"));
        spec.provider.api_version = Some("2025-04-01-preview".to_owned());
        assert_eq!(version(&spec).unwrap().as_deref(), Some("2025-04-01-preview"));
        spec.provider.api_version = Some("2024&x=1".to_owned());
        assert!(version(&spec).unwrap_err().to_string().contains("2024&x=1"));
        spec.provider.kind = ProviderKind::Gemini;
        assert!(version(&spec).unwrap_err().to_string().contains("azure-openai"));
        let written = serde_json::to_value(canonical()).unwrap();
        assert!(
            written["provider"].get("api_version").is_none(),
            "identities of other jobs stay as they were"
        );
    }

    #[test]
    fn anthropic_gets_a_bound_on_answers_to_prompts_unless_the_job_has_one() {
        let mut spec = of_kind(ProviderKind::Anthropic);
        let bound = |spec: &JobSpec, format| spec.canonical(input(), format).unwrap().max_output_tokens;
        assert_eq!(bound(&spec, Format::Prompts), Some(4_096));
        assert_eq!(bound(&spec, Format::OpenAi), None);
        spec.parameters.insert("max_tokens".to_owned(), json!(7));
        assert_eq!(bound(&spec, Format::Prompts), None);
        spec.max_output_tokens = 9.try_into().ok();
        assert_eq!(bound(&spec, Format::Prompts), Some(9));
    }

    #[test]
    fn an_endpoint_that_the_provider_does_not_have_is_refused_with_those_that_it_has() {
        for (kind, format, endpoint, served) in [
            (ProviderKind::Gemini, Format::Prompts, Endpoint::Responses, "/v1/chat/completions"),
            (ProviderKind::Gemini, Format::OpenAi, Endpoint::Responses, "/v1/embeddings"),
            (ProviderKind::Anthropic, Format::Prompts, Endpoint::Embeddings, "/v1/chat/completions"),
            (ProviderKind::Anthropic, Format::OpenAi, Endpoint::Embeddings, "/v1/chat/completions"),
            (ProviderKind::AzureOpenAi, Format::OpenAi, Endpoint::Responses, "/v1/embeddings"),
        ] {
            let spec = JobSpec { endpoint: Some(endpoint), ..of_kind(kind) };
            let refused = spec.canonical(input(), format).unwrap_err().to_string();
            assert!(refused.contains(served) && refused.contains(kind.name()), "{refused}");
        }
    }

    #[test]
    fn the_fields_that_penstock_writes_are_those_of_the_providers_own_body() {
        for (kind, name, is_reserved) in [
            (ProviderKind::Gemini, "generationConfig", true),
            (ProviderKind::Gemini, "system_instruction", true),
            (ProviderKind::Gemini, "temperature", false),
            (ProviderKind::Anthropic, "system", true),
            (ProviderKind::Anthropic, "n", false),
            (ProviderKind::AzureOpenAi, "messages", true),
        ] {
            let mut spec = of_kind(kind);
            spec.parameters.insert(name.to_owned(), json!(1));
            assert_eq!(spec.canonical(input(), Format::Prompts).is_err(), is_reserved, "{kind} {name}");
        }
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
