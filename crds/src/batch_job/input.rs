//! What a BatchJob reads and writes, and where its lines are sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The file of requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// An object in a bucket: `gs://bucket/path` or `s3://bucket/path`.
    #[schemars(schema_with = "schema::object_uri")]
    pub uri: String,
    /// The format of its lines; `Auto` looks at the first of them.
    #[serde(default)]
    pub format: InputFormat,
    /// `Skip` records invalid lines as rejected and answers the others; `Fail` sends nothing if one is invalid.
    #[serde(default)]
    pub on_invalid: OnInvalid,
    /// `Reject` takes a line for invalid that has a field which its format does not have.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
    /// The longest line that is accepted, in bytes.
    #[serde(default = "default_max_line_bytes")]
    #[schemars(range(min = 1024, max = 67_108_864))]
    pub max_line_bytes: i32,
}

fn default_max_line_bytes() -> i32 {
    8 << 20
}

/// The format of an input's lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InputFormat {
    /// The format of the first lines.
    #[default]
    Auto,
    /// `{"prompt_id": 7, "prompt": "..."}`.
    Prompts,
    /// `{"custom_id": "a", "method": "POST", "url": "/v1/...", "body": {...}}`.
    OpenAI,
}

/// What an invalid line means for the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnInvalid {
    /// The line is recorded as rejected, the others are answered.
    #[default]
    Skip,
    /// The job fails before anything is sent.
    Fail,
}

/// What a field of a line means that its format does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnknownFields {
    /// Nothing.
    #[default]
    Ignore,
    /// The line is invalid.
    Reject,
}

/// Where results, errors and the receipt go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// A path in a bucket for this job alone: `gs://bucket/path` or `s3://bucket/path`.
    #[schemars(schema_with = "schema::object_uri")]
    pub uri: String,
    /// `Keep` leaves the parts of the results beside the published files, `Delete` removes them at the end.
    #[serde(default)]
    pub partial_results: PartialResults,
}

/// What becomes of the parts once they are published as files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PartialResults {
    /// They are deleted.
    #[default]
    Delete,
    /// They stay beside the files.
    Keep,
}

/// The endpoint of all lines; by default that of the first line, else `ChatCompletions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Endpoint {
    /// `/v1/chat/completions`.
    ChatCompletions,
    /// `/v1/responses`.
    Responses,
    /// `/v1/completions`.
    Completions,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/moderations`.
    Moderations,
}
