//! What each request of a job in the format Prompts asks for beside its prompt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// What each request asks for beside its prompt. Lines of the format OpenAI say all of it themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// The system prompt of every line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65_536))]
    pub system_prompt: Option<String>,
    /// The most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_output_tokens: Option<i32>,
    /// The temperature, as a decimal number in quotes such as "0.2".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub temperature: Option<String>,
    /// The share of probability that is sampled from, as a decimal number in quotes such as "0.95".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::fraction")]
    pub top_p: Option<String>,
    /// Further fields of each request's body, each value as JSON text, such as `seed: "7"` or `stop: '["END"]'`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::body_fields")]
    pub body: BTreeMap<String, String>,
}
