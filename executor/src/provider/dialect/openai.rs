//! OpenAI's own API, which vLLM, gateways and the provider double speak too.
//!
//! | endpoint | prompt | system prompt | bound on the answer |
//! |---|---|---|---|
//! | chat completions | the user's message | a message before it | `max_completion_tokens` for OpenAI and Azure, `max_tokens`, which every server knows, for others |
//! | responses | `input` | `instructions` | `max_output_tokens` |
//! | completions | `prompt` | at the start of `prompt`, with an empty line behind it | `max_tokens` |
//!
//! The job's parameters follow as they are. One that bounds the answer by itself takes the place of the job's bound.

mod answer;
mod refusal;

use penstock_batchfile::Endpoint;
use penstock_job::{CanonicalSpec, spec::ProviderKind};
use serde_json::{Map, Value};

pub(super) use self::{
    answer::{read, used},
    refusal::{judge, of_rate},
};
use crate::provider::frame::{Frame, closed_with, json};

/// The members that bound the length of an answer, at any endpoint.
const BOUNDS: &[&str] = &["max_completion_tokens", "max_output_tokens", "max_tokens"];

/// What is the same for every prompt.
pub(super) fn frame(spec: &CanonicalSpec) -> Frame {
    let start = format!(r#"{{"model":{}"#, json(spec.model.as_deref().unwrap_or_default()));
    let end = closed_with(further_members(spec));
    match (spec.endpoint, spec.system_prompt.as_deref()) {
        (Endpoint::Responses, None) => Frame::around(format!(r#"{start},"input":"#), end),
        (Endpoint::Responses, Some(system)) => {
            Frame::around(format!(r#"{start},"instructions":{},"input":"#, json(system)), end)
        }
        (Endpoint::Completions, None) => Frame::around(format!(r#"{start},"prompt":"#), end),
        (Endpoint::Completions, Some(system)) => {
            let closed = json(&format!("{system}\n\n"));
            let open = closed.strip_suffix('"').unwrap_or(&closed);
            Frame::continued(format!(r#"{start},"prompt":{open}"#), end)
        }
        // A job's spec refuses prompts for embeddings and moderations.
        (Endpoint::ChatCompletions | Endpoint::Embeddings | Endpoint::Moderations, system) => {
            let message = |system| format!(r#"{{"role":"system","content":{}}},"#, json(system));
            let system = system.map(message).unwrap_or_default();
            let before = format!(r#"{start},"messages":[{system}{{"role":"user","content":"#);
            Frame::around(before, format!("}}]{end}"))
        }
    }
}

/// The job's parameters, and its bound on the answer unless one of them is one.
fn further_members(spec: &CanonicalSpec) -> Map<String, Value> {
    let mut members = spec.parameters.clone();
    if let Some(bound) = spec.max_output_tokens
        && !BOUNDS.iter().any(|name| members.contains_key(*name))
    {
        members.insert(bound_name(spec).to_owned(), bound.into());
    }
    members
}

fn bound_name(spec: &CanonicalSpec) -> &'static str {
    match (spec.endpoint, spec.provider.kind) {
        (Endpoint::Responses, _) => "max_output_tokens",
        (Endpoint::ChatCompletions, ProviderKind::OpenAi | ProviderKind::AzureOpenAi) => {
            "max_completion_tokens"
        }
        _ => "max_tokens",
    }
}
