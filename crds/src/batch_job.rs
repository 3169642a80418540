//! `BatchJob`: one file of LLM requests that is answered by one provider, and how far it is.

mod executor;
mod input;
mod parameters;
mod rate;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{bounds::Retries, schema};

pub use executor::{Effect, Executor, Resources, Toleration, TolerationOperator};
pub use input::{Endpoint, Input, InputFormat, OnInvalid, Output, PartialResults, UnknownFields};
pub use parameters::Parameters;
pub use rate::{Rate, RateMode};
pub use status::{BatchJobStatus, Counts, Progress, Requests, Tokens, ValidationSummary};

/// What a user asks for. Only `suspend`, `cancel`, `priority` and `ttlSecondsAfterFinished` may change later.
#[expect(clippy::duplicated_attributes, reason = "columns of one type, each with attributes of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "penstock.dev",
    version = "v1alpha1",
    kind = "BatchJob",
    namespaced,
    status = "BatchJobStatus",
    shortname = "bj",
    category = "penstock",
    doc = "One file of LLM requests that is answered by one provider, with one outcome for each line.",
    derive = "PartialEq",
    selectable = ".spec.providerRef.name",
    selectable = ".status.state",
    selectable = ".status.reason",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Progress", type_ = "integer", json_path = ".status.progress.percent"),
    printcolumn(name = "Done", type_ = "string", json_path = ".status.progress.done"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.counts.failed"),
    printcolumn(name = "Rate", type_ = "string", json_path = ".status.progress.rate"),
    printcolumn(name = "ETA", type_ = "string", json_path = ".status.progress.eta"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason", priority = 1),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.providerRef.name", priority = 1),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".status.tenant", priority = 1),
    printcolumn(name = "Cost", type_ = "string", json_path = ".status.cost", priority = 1),
    printcolumn(name = "Resent", type_ = "integer", json_path = ".status.requests.resent", priority = 1),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.epoch", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::rules::batch_job_spec)]
pub struct BatchJobSpec {
    /// The file of requests.
    pub input: Input,
    /// Where results, errors and the receipt go.
    pub output: Output,
    /// The Provider that answers, in the same namespace.
    pub provider_ref: ProviderReference,
    /// The model of lines that name none. Lines of the format Prompts name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub model: Option<String>,
    /// The endpoint of all lines; by default that of the first line, else `ChatCompletions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// What each request asks for beside its prompt. For the format Prompts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// Any text. Another text makes this another job: change it, and the output, to have the same work done again.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub run: String,
    /// How fast requests are sent.
    #[serde(default)]
    pub rate: Rate,
    /// How often a line is tried; by default what the Provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Seconds from the first start until lines that are not answered are recorded as expired. Without it there is no
    /// deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31_536_000))]
    pub completion_window_seconds: Option<i64>,
    /// Among the jobs that wait for their turn, one with a higher number goes first. No job waits yet: Penstock has no queue of
    /// its own so far, and one that is validated starts.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    pub priority: i32,
    /// What the job may use up before it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Hold the job: nothing is sent until it is false again. No answer is lost.
    #[serde(default)]
    pub suspend: bool,
    /// End the job: what was answered is published, the other lines are recorded as cancelled. Cannot be taken back.
    #[serde(default)]
    pub cancel: bool,
    /// Seconds after its end until the BatchJob is deleted; unset, it stays. Results are never deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// The pod that runs the job.
    #[serde(default)]
    pub executor: Executor,
}

/// A Provider in the namespace of the BatchJob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderReference {
    /// Its name.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// What a job may use up. One of the two must be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = crate::rules::budget)]
pub struct Budget {
    /// Tokens, of requests and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_i64))]
    pub tokens: Option<i64>,
    /// Money, in the currency of the Provider's prices, such as "12.50". Needs prices for every model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::money")]
    pub cost: Option<String>,
}
