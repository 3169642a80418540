//! `Provider`: who answers the requests of the jobs of a namespace, with which credentials and within which bounds.

mod connection;
mod price;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    bounds::{ModelBounds, RateBounds, Retries},
    schema,
};

pub use connection::{CertificateAuthority, ConfigMapKey, Route, SecretKey, SecretName, Tls};
pub use price::{Price, Prices};

/// Who answers, and what it allows. What belongs to the answers (`kind`, `baseUrl`, `apiVersion`, `routes`) is fixed for
/// a job when it starts; another value makes the same BatchJob another job.
#[expect(clippy::duplicated_attributes, reason = "columns of one type, each with attributes of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "penstock.dev",
    version = "v1alpha1",
    kind = "Provider",
    namespaced,
    category = "penstock",
    doc = "An inference provider: its address, the credentials for it, and what it allows.",
    derive = "PartialEq",
    selectable = ".spec.kind",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.baseUrl"),
    printcolumn(name = "RPM", type_ = "integer", json_path = ".spec.limits.requestsPerMinute"),
    printcolumn(name = "TPM", type_ = "integer", json_path = ".spec.limits.tokensPerMinute"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::rules::provider_spec)]
pub struct ProviderSpec {
    /// Which API it speaks.
    pub kind: ProviderKind,
    /// Its address, with or without `/v1`. OpenAI, Gemini and Anthropic have one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::base_url")]
    pub base_url: Option<String>,
    /// The version of the API that is asked for, by default 2024-10-21. For the kind AzureOpenAI only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Za-z0-9._-]+$"), length(min = 1, max = 64))]
    pub api_version: Option<String>,
    /// The Secret with the API key, in the same namespace. A job goes on by itself when a refused key is replaced there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_secret_ref: Option<SecretKey>,
    /// TLS settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Where single models are served. With any route, a line whose model has none fails with `model_not_found`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["model"]))]
    pub routes: Vec<Route>,
    /// Upper bounds of every job.
    #[serde(default)]
    pub limits: Limits,
    /// How long to wait for it.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// How often a line is tried, where the job does not say.
    #[serde(default)]
    pub retries: Retries,
    /// What tokens cost; without prices no cost is shown, and no budget in money can be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// Which API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProviderKind {
    /// OpenAI itself.
    OpenAI,
    /// Anything that speaks OpenAI's API: vLLM, a gateway.
    OpenAICompatible,
    /// Google's Gemini API.
    Gemini,
    /// Anthropic.
    Anthropic,
    /// Azure OpenAI, where a model is a deployment.
    AzureOpenAI,
    /// The provider double that comes with Penstock.
    Simulated,
}

/// Upper bounds of every job that uses a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Upper bounds over all models.
    #[serde(flatten)]
    pub bounds: RateBounds,
    /// Upper bounds of single models, within these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["model"]))]
    pub per_model: Vec<ModelBounds>,
}

/// How long to wait for a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// Seconds that one request may take. By default 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub request_seconds: Option<i32>,
}
