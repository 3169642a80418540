//! How a provider is reached: keys, certificates, and routes of single models. Secrets are named, never held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// One value of a Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKey {
    /// The Secret.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// The key of the value in it.
    #[serde(default = "default_api_key")]
    #[schemars(schema_with = "schema::data_key")]
    pub key: String,
}

fn default_api_key() -> String {
    "api-key".to_owned()
}

/// One value of a ConfigMap in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapKey {
    /// The ConfigMap.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// The key of the value in it.
    #[schemars(schema_with = "schema::data_key")]
    pub key: String,
}

/// A Secret in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretName {
    /// The Secret.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// TLS settings of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// The certificate authorities to trust instead of the system's, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<CertificateAuthority>,
    /// The client's certificate and key: a Secret of the type `kubernetes.io/tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate_secret_ref: Option<SecretName>,
}

/// Where certificate authorities are found: exactly one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::rules::certificate_authority)]
pub struct CertificateAuthority {
    /// In a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<ConfigMapKey>,
    /// In a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKey>,
}

/// Where one model is served. Nothing is inherited from the provider: each route is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The model.
    #[schemars(length(min = 1, max = 253))]
    pub model: String,
    /// Its address, with or without `/v1`.
    #[schemars(schema_with = "schema::base_url")]
    pub base_url: String,
    /// The Secret with the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_secret_ref: Option<SecretKey>,
    /// TLS settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}
