//! The job file: everything that a user may say about a job, as `--job FILE` and as the executor's own spec file.
//!
//! Unknown fields are refused. Keys are named (a variable or a file), never written here.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
};

use penstock_batchfile::{Endpoint, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Budget, Prices, ProviderKind, ReportTo};

/// One job, as a user describes it. Every field has a default, so that flags and a file may share the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// Where the input is: a path or a URI.
    pub input: Option<String>,
    /// Where the output goes: a folder or a URI.
    pub output: Option<String>,
    /// Format of the input's lines.
    pub format: FormatChoice,
    /// Reject OpenAI lines with top-level fields that the format does not have.
    pub strict: bool,
    /// What to do when a line is invalid.
    pub on_invalid: OnInvalid,
    /// Longest accepted line in bytes; longer ones are rejected.
    pub max_line_bytes: usize,
    /// Who answers.
    pub provider: ProviderSpec,
    /// The model for lines that name none.
    pub model: Option<String>,
    /// The endpoint that answers, for all lines; by default the one that the first line names, else chat completions.
    #[schemars(with = "Option<String>")]
    pub endpoint: Option<Endpoint>,
    /// System prompt of every line (format Prompts only).
    pub system_prompt: Option<String>,
    /// Bound on the tokens of one answer (format Prompts only).
    pub max_output_tokens: Option<NonZeroU32>,
    /// Further fields of each request's body, such as `temperature` (format Prompts only).
    pub parameters: Map<String, Value>,
    /// Free text that makes this job another one: change it to have the same work done again.
    pub run: String,
    /// How fast, how often, how long; may differ when a job is resumed.
    pub limits: Limits,
    /// What the job may use up before it is held; may differ when a job is resumed.
    pub budget: Budget,
    /// What tokens cost; without prices no cost is known.
    pub prices: Option<Prices>,
    /// Leave the parts in place after the receipt.
    pub keep_parts: bool,
    /// Whom a run tells how far it is; by default nobody.
    pub report: Option<ReportTo>,
    /// Who owns the job in a cluster; empty elsewhere.
    pub metadata: Metadata,
}

impl Default for JobSpec {
    fn default() -> Self {
        Self {
            input: None,
            output: None,
            format: FormatChoice::default(),
            strict: false,
            on_invalid: OnInvalid::default(),
            max_line_bytes: 8 << 20,
            provider: ProviderSpec::default(),
            model: None,
            endpoint: None,
            system_prompt: None,
            max_output_tokens: None,
            parameters: Map::new(),
            run: String::new(),
            limits: Limits::default(),
            budget: Budget::default(),
            prices: None,
            keep_parts: false,
            report: None,
            metadata: Metadata::default(),
        }
    }
}

impl JobSpec {
    /// How the rate is found. The simulated provider limits nothing unless it is told to, so there is nothing to find.
    pub fn rate(&self) -> RateMode {
        self.limits.rate.unwrap_or(match self.provider.kind {
            ProviderKind::Simulated => RateMode::Fixed,
            ProviderKind::OpenAi
            | ProviderKind::OpenAiCompatible
            | ProviderKind::Gemini
            | ProviderKind::Anthropic
            | ProviderKind::AzureOpenAi => RateMode::Adaptive,
        })
    }
}

/// The input's format, or the wish to have it detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FormatChoice {
    /// Look at the first lines.
    #[default]
    Auto,
    /// `{"prompt_id": 7, "prompt": "..."}`.
    Prompts,
    /// `{"custom_id": "a", "method": "POST", "url": "/v1/...", "body": {...}}`.
    OpenAi,
}

impl FormatChoice {
    /// The format, where it is named.
    pub fn named(self) -> Option<Format> {
        match self {
            Self::Auto => None,
            Self::Prompts => Some(Format::Prompts),
            Self::OpenAi => Some(Format::OpenAi),
        }
    }
}

/// What to do when a line is invalid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnInvalid {
    /// Record the line as rejected and go on.
    #[default]
    Skip,
    /// Refuse the whole input before anything is sent.
    Fail,
}

/// Who answers: base URL, credentials, TLS and, where models live in different places, routes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSpec {
    /// The kind of provider.
    pub kind: ProviderKind,
    /// Base URL with or without `/v1`; by default the provider's own, where it has one.
    pub base_url: Option<String>,
    /// Version of the API that is asked for (`azure-openai` only), by default `2024-10-21`.
    pub api_version: Option<String>,
    /// Where the API key is found.
    pub api_key: Option<KeySource>,
    /// TLS settings.
    pub tls: Tls,
    /// Per model: where it is served. When there is any route, a line whose model has none fails with `model_not_found`.
    pub routes: BTreeMap<String, Route>,
}

/// Where one model is served. Nothing is inherited from the provider: each route is complete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Base URL with or without `/v1`.
    pub base_url: String,
    /// Where the API key is found.
    #[serde(default)]
    pub api_key: Option<KeySource>,
    /// TLS settings.
    #[serde(default)]
    pub tls: Tls,
}

/// Where an API key is found. The key itself is never part of a spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeySource {
    /// In an environment variable of this name.
    Env(String),
    /// In a file, read again when the provider refuses the key.
    File(PathBuf),
}

/// TLS settings of a connection to a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate chain.
    pub client_certificate_file: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub client_key_file: Option<PathBuf>,
}

/// How the request rate is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateMode {
    /// From the provider's answers: finds its limit, stated or not, and stays close to it. The user's own limits are upper
    /// bounds.
    Adaptive,
    /// The user's own limits and nothing else; without any, only the number of requests in flight bounds the rate.
    Fixed,
    /// Slow start and additive increase, multiplicative decrease; gentle and predictable.
    Aimd,
}

/// How fast, how often, how long. None of it determines the answers, so all of it may change between two runs of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How the rate is found; by default `adaptive`, and `fixed` with the simulated provider.
    pub rate: Option<RateMode>,
    /// At most so many requests per minute over the whole job.
    pub rpm: Option<NonZeroU32>,
    /// At most so many tokens per minute over the whole job.
    pub tpm: Option<NonZeroU64>,
    /// At most so many requests in flight over the whole job; by default what the memory limit allows.
    pub max_in_flight: Option<NonZeroU32>,
    /// Bounds for single models, within those of the job.
    pub per_model: BTreeMap<String, ModelLimits>,
    /// How often a line is tried before it fails; refusals for rate or load do not count. The default, with the default
    /// waits, outlasts an outage of two minutes on average.
    pub max_attempts: NonZeroU32,
    /// How long to wait between attempts.
    pub retry: Retry,
    /// Completion window in seconds, counted from the job's first start; none by default.
    pub deadline_seconds: Option<NonZeroU64>,
    /// How long one request may take, in seconds.
    pub request_timeout_seconds: NonZeroU64,
    /// How long to wait for answers after SIGTERM, in seconds. Spot nodes kill 15 s after the signal.
    pub drain_seconds: u64,
    /// Longest time between two checkpoints, in seconds.
    pub checkpoint_seconds: NonZeroU64,
}

impl Default for Limits {
    fn default() -> Self {
        const fn seconds(value: u64) -> NonZeroU64 {
            NonZeroU64::new(value).expect("a positive number")
        }
        Self {
            rate: None,
            rpm: None,
            tpm: None,
            max_in_flight: None,
            per_model: BTreeMap::new(),
            max_attempts: const { NonZeroU32::new(8).expect("a positive number") },
            retry: Retry::default(),
            deadline_seconds: None,
            request_timeout_seconds: const { seconds(600) },
            drain_seconds: 10,
            checkpoint_seconds: const { seconds(30) },
        }
    }
}

/// Bounds for one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelLimits {
    /// At most so many requests per minute.
    pub rpm: Option<NonZeroU32>,
    /// At most so many tokens per minute.
    pub tpm: Option<NonZeroU64>,
    /// At most so many requests in flight.
    pub max_in_flight: Option<NonZeroU32>,
}

/// Full jitter: the wait before attempt `n + 1` is drawn evenly from zero to `base * 2^(n - 1)`, at most `cap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Upper bound of the first wait, in milliseconds.
    pub base_ms: u64,
    /// Upper bound of every wait, in milliseconds.
    pub cap_ms: u64,
}

impl Default for Retry {
    /// 4 s doubling to 60 s: seven waits of 4, 8, 16, 32, 60, 60, 60 s at most, 120 s on average in all.
    fn default() -> Self {
        Self { base_ms: 4_000, cap_ms: 60_000 }
    }
}

/// Who owns a job in a cluster. Informs; never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// The owning object's UID.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}
