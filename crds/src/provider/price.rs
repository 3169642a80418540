//! What tokens cost at a provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What tokens cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    /// The currency, such as `USD`.
    #[serde(default = "default_currency")]
    #[schemars(regex(pattern = "^[A-Z]{3}$"), length(min = 3, max = 3))]
    pub currency: String,
    /// The price of each model.
    #[schemars(
        length(min = 1, max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["model"])
    )]
    pub models: Vec<Price>,
}

fn default_currency() -> String {
    "USD".to_owned()
}

/// What the tokens of one model cost, for a million of them, such as "0.25".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// The model.
    #[schemars(length(min = 1, max = 253))]
    pub model: String,
    /// Tokens of requests.
    #[schemars(schema_with = "schema::money")]
    pub input_per_million_tokens: String,
    /// Tokens of requests that the provider had cached; by default the price of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::money")]
    pub cached_input_per_million_tokens: Option<String>,
    /// Tokens of answers.
    #[schemars(schema_with = "schema::money")]
    pub output_per_million_tokens: String,
}
