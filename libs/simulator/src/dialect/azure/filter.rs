//! The content filter of Azure OpenAI: what it says of a prompt and of an answer.
//!
//! Source: <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter>.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    answer::{End, json as bytes},
    question::Form,
};

/// Adds the results of the filter to an answer in OpenAI's shape. Responses have none.
pub(super) fn with_results(answer: &[u8], form: Form, end: End) -> Bytes {
    if form == Form::Response {
        return Bytes::copy_from_slice(answer);
    }
    let mut answer: Value = serde_json::from_slice(answer).expect("invariant: our own JSON can be read");
    answer["prompt_filter_results"] = json!([{ "prompt_index": 0, "content_filter_results": prompt(false) }]);
    answer["choices"][0]["content_filter_results"] = results(end);
    bytes(&answer)
}

/// What the filter found in a prompt.
pub(super) fn prompt(is_rejected: bool) -> Value {
    json!({
        "hate": severity(false),
        "jailbreak": { "filtered": is_rejected, "detected": is_rejected },
        "self_harm": severity(false),
        "sexual": severity(false),
        "violence": severity(is_rejected),
    })
}

/// What the filter found in an answer.
fn results(end: End) -> Value {
    let recited = end == End::Recited;
    json!({
        "hate": severity(false),
        "protected_material_code": { "filtered": false, "detected": false },
        "protected_material_text": { "filtered": recited, "detected": recited },
        "self_harm": severity(false),
        "sexual": severity(false),
        "violence": severity(end == End::Filtered),
    })
}

fn severity(filtered: bool) -> Value {
    json!({ "filtered": filtered, "severity": if filtered { "medium" } else { "safe" } })
}
