//! How far a job is. Written by the operator alone, seldom: at each transition, and at most every ten seconds between.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{schema, state::State};

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchJobStatus {
    /// The generation of the spec that this status speaks of; -1 before the operator has looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
    /// Where the job is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The one word that says why it is not further; with nothing in its way, the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub reason: Option<String>,
    /// What was seen, and what helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// The same for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// How far it is, for people and for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What became of the lines so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Requests so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Requests>,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What it has cost so far, such as `12.51 USD`; absent where the Provider has no price for a model that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cost: Option<String>,
    /// Who pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tenant: Option<String>,
    /// The Kubernetes Job that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub job_name: Option<String>,
    /// How many executors have claimed it so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub epoch: Option<i64>,
    /// How many pods of its Kubernetes Job were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub lost_pods: Option<i32>,
    /// The hash of what determines the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub identity: Option<String>,
    /// What validation found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationSummary>,
    /// When the first executor started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<Time>,
    /// When the completion window is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub deadline: Option<Time>,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<Time>,
    /// The receipt, which names the published files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub receipt_uri: Option<String>,
}

/// How far a job is: what `kubectl get` shows, beside numbers for programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Lines that are done, in percent of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i32>,
    /// Lines that are done (answered, failed or rejected) and all lines, such as `6.1M/10M`. What a job's end has left undone is
    /// not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub done: Option<String>,
    /// Answers in the last minute, such as `9740/min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub rate: Option<String>,
    /// How long it will take, such as `6h40m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub eta: Option<String>,
    /// When it will be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub estimated_completion_time: Option<Time>,
    /// When this was heard from the executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_updated_time: Option<Time>,
}

/// What became of the lines of a job. Once it is over they add up to `lines`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All lines of the input, blank ones apart.
    #[schemars(range(min = 0))]
    pub lines: i64,
    /// Answered.
    #[schemars(range(min = 0))]
    pub succeeded: i64,
    /// Refused for good, or tried too often.
    #[schemars(range(min = 0))]
    pub failed: i64,
    /// Invalid.
    #[schemars(range(min = 0))]
    pub rejected: i64,
    /// Not answered before the completion window was over.
    #[schemars(range(min = 0))]
    pub expired: i64,
    /// Not answered before the job was cancelled.
    #[schemars(range(min = 0))]
    pub cancelled: i64,
    /// Not answered because the job could not be run to its end.
    #[schemars(range(min = 0))]
    pub abandoned: i64,
}

/// Requests of a job so far: lower bounds, since a pod that is killed cannot report its last ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Requests {
    /// Sent.
    #[schemars(range(min = 0))]
    pub sent: i64,
    /// Of these, refused for the rate.
    #[schemars(range(min = 0))]
    pub throttled: i64,
    /// Of these, sent again because the pod that had sent them first was lost.
    #[schemars(range(min = 0))]
    pub resent: i64,
    /// Under way now.
    #[schemars(range(min = 0))]
    pub in_flight: i64,
}

/// Tokens of the answers of a job so far, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Of requests.
    #[schemars(range(min = 0))]
    pub input: i64,
    /// Of these, tokens that the provider had cached.
    #[schemars(range(min = 0))]
    pub cached_input: i64,
    /// Of answers.
    #[schemars(range(min = 0))]
    pub output: i64,
}

/// What validation found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ValidationSummary {
    /// The generation of the input that was validated, and that is read.
    #[schemars(length(max = 253))]
    pub generation: String,
    /// Its lines, blank ones apart.
    #[schemars(range(min = 0))]
    pub lines: i64,
    /// How many of them are invalid.
    #[schemars(range(min = 0))]
    pub rejected: i64,
    /// The report.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub report_uri: Option<String>,
}
