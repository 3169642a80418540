//! The response bodies of OpenAI's endpoints, with their usage filled in.

use bytes::Bytes;
use rand::{Rng, RngExt};
use serde::Serialize;

use crate::{
    answer::{End, Written, json},
    question::{Form, Question},
};

/// The length of an embedding for which the request names none.
const DIMENSIONS: u32 = 256;

/// The longest embedding that is computed.
const MOST_DIMENSIONS: u32 = 4_096;

/// Wraps a text as its endpoint does.
pub(super) fn text(question: &Question, form: Form, written: &Written, created: u64) -> Bytes {
    let usage = Usage::of(question, written);
    let finish_reason = match written.end {
        End::Stop => "stop",
        End::Length => "length",
        End::Filtered | End::Recited => "content_filter",
    };
    let (model, hash) = (question.model.as_str(), question.prompt_hash);
    match form {
        Form::Completion => json(&Completion {
            id: format!("cmpl-{hash}"),
            object: "text_completion",
            created,
            model,
            choices: [Choice {
                index: 0,
                text: Some(&written.text),
                message: None,
                logprobs: (),
                finish_reason,
            }],
            usage,
        }),
        Form::Response => json(&response(question, written, created, usage)),
        Form::Chat => json(&Completion {
            id: format!("chatcmpl-{hash}"),
            object: "chat.completion",
            created,
            model,
            choices: [Choice {
                index: 0,
                text: None,
                message: Some(Message { role: "assistant", content: &written.text, refusal: () }),
                logprobs: (),
                finish_reason,
            }],
            usage,
        }),
    }
}

#[derive(Serialize)]
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    usage: Usage,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    refusal: (),
}

#[derive(Clone, Copy, Serialize)]
struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<Details>,
}

/// What an answer's tokens were spent on. Left out where nothing was thought.
#[derive(Clone, Copy, Serialize)]
struct Details {
    reasoning_tokens: u32,
}

impl Usage {
    fn of(question: &Question, written: &Written) -> Self {
        let reasoning_tokens = written.thought_tokens;
        Self {
            prompt_tokens: question.input_tokens,
            completion_tokens: written.output_tokens(),
            total_tokens: question.input_tokens.saturating_add(written.output_tokens()),
            completion_tokens_details: (reasoning_tokens > 0).then_some(Details { reasoning_tokens }),
        }
    }
}

fn response(question: &Question, written: &Written, created: u64, usage: Usage) -> impl Serialize {
    let (status, incomplete_details) = match written.end {
        End::Stop => ("completed", serde_json::Value::Null),
        End::Length => ("incomplete", serde_json::json!({ "reason": "max_output_tokens" })),
        End::Filtered | End::Recited => ("incomplete", serde_json::json!({ "reason": "content_filter" })),
    };
    serde_json::json!({
        "id": format!("resp_{}", question.prompt_hash),
        "object": "response",
        "created_at": created,
        "status": status,
        "error": null,
        "incomplete_details": incomplete_details,
        "model": question.model,
        "output": [{
            "type": "message",
            "id": format!("msg_{}", question.prompt_hash),
            "status": status,
            "role": "assistant",
            "content": [{ "type": "output_text", "text": written.text, "annotations": [] }],
        }],
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": { "reasoning_tokens": written.thought_tokens },
            "total_tokens": usage.total_tokens,
        },
    })
}

/// Vectors of length 1 for the inputs of a question.
pub(crate) fn embeddings(question: &Question, random: &mut impl Rng) -> Bytes {
    let dimensions = question.dimensions.unwrap_or(DIMENSIONS).clamp(1, MOST_DIMENSIONS);
    let data: Vec<_> = (0..question.inputs)
        .map(|index| {
            let vector: Vec<f32> = (0..dimensions).map(|_| random.random_range(-1.0..1.0)).collect();
            let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            let embedding: Vec<f32> = vector.iter().map(|part| part / length).collect();
            serde_json::json!({ "object": "embedding", "index": index, "embedding": embedding })
        })
        .collect();
    let usage = serde_json::json!({
        "prompt_tokens": question.input_tokens, "total_tokens": question.input_tokens,
    });
    json(&serde_json::json!({ "object": "list", "data": data, "model": question.model, "usage": usage }))
}

/// A verdict on each input of a question.
pub(crate) fn moderations(question: &Question, random: &mut impl Rng) -> Bytes {
    const CATEGORIES: [&str; 5] = ["harassment", "hate", "self-harm", "sexual", "violence"];
    let results: Vec<_> = (0..question.inputs)
        .map(|_| {
            let scores: Vec<(&str, f64)> =
                CATEGORIES.iter().map(|&category| (category, random.random::<f64>().powi(8))).collect();
            let flags = scores.iter().map(|&(category, score)| (category.to_owned(), (score > 0.9).into()));
            let flags: serde_json::Map<String, serde_json::Value> = flags.collect();
            let scores = scores.iter().map(|&(category, score)| (category.to_owned(), score.into()));
            let category_scores: serde_json::Map<String, serde_json::Value> = scores.collect();
            serde_json::json!({
                "flagged": flags.values().any(|flag| flag == true),
                "categories": flags,
                "category_scores": category_scores,
            })
        })
        .collect();
    json(&serde_json::json!({
        "id": format!("modr-{}", question.prompt_hash), "model": question.model, "results": results,
    }))
}

/// The list of the models that exist. Where every model exists, one stands for them.
pub(crate) fn models(models: Option<&[String]>) -> Bytes {
    let any = ["simulated".to_owned()];
    let data: Vec<_> = models
        .unwrap_or(&any)
        .iter()
        .map(|id| serde_json::json!({ "id": id, "object": "model", "created": 0, "owned_by": "penstock" }))
        .collect();
    json(&serde_json::json!({ "object": "list", "data": data }))
}
