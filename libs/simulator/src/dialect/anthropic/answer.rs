//! The answer of the Messages API.
//!
//! Source: <https://docs.claude.com/en/api/messages>; a refusal is an answer without content, see
//! <https://docs.claude.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals>.

use bytes::Bytes;
use serde_json::json;

use crate::{
    answer::{End, Written, json as bytes},
    question::Question,
};

/// The answer to a question.
pub(super) fn text(question: &Question, written: &Written) -> Bytes {
    let (stop_reason, stop_details) = match written.end {
        End::Stop => ("end_turn", json!(null)),
        End::Length => ("max_tokens", json!(null)),
        End::Filtered | End::Recited => (
            "refusal",
            json!({ "type": "refusal", "category": "cyber", "explanation": "Blocked under the Usage Policy." }),
        ),
    };
    let content =
        if written.text.is_empty() { json!([]) } else { json!([{ "type": "text", "text": written.text }]) };
    bytes(&json!({
        "id": format!("msg_{}", question.prompt_hash),
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "stop_details": stop_details,
        "usage": {
            "input_tokens": question.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0 },
            "output_tokens": written.output_tokens(),
            "service_tier": "standard",
        },
    }))
}
