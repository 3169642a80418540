//! Bounds of rate and retries, which a BatchJob asks for and a Provider sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper bounds of a rate. What is not set is not bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateBounds {
    /// Most requests per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub requests_per_minute: Option<i32>,
    /// Most tokens per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_i64))]
    pub tokens_per_minute: Option<i64>,
    /// Most requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: Option<i32>,
}

/// Upper bounds of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelBounds {
    /// The model.
    #[schemars(length(min = 1, max = 253))]
    pub model: String,
    /// Its bounds.
    #[serde(flatten)]
    pub bounds: RateBounds,
}

/// How often a line is tried, and how long it waits in between: a time drawn from zero to the first wait, which doubles
/// from attempt to attempt up to the longest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// Attempts before a line fails; refusals for rate or load do not count. By default 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<i32>,
    /// Most seconds before the second attempt. By default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600))]
    pub first_wait_seconds: Option<i32>,
    /// Most seconds before any attempt. By default 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600))]
    pub longest_wait_seconds: Option<i32>,
}
