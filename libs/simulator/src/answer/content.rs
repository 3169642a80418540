//! The response bodies of the endpoints, with their usage filled in.

use bytes::Bytes;
use rand::{Rng, RngExt};
use serde::Serialize;

use super::{
    json,
    text::{End, write},
};
use crate::{
    draw::{Purpose, draw},
    question::{Endpoint, Question, tokens},
    settings::OutputLength,
};

/// The length of an embedding for which the request names none.
const DIMENSIONS: u32 = 256;

/// The longest embedding that is computed.
const MOST_DIMENSIONS: u32 = 4_096;

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    pub(crate) output_tokens: u32,
}

/// The answer to a question. `created` is in seconds since the epoch.
pub(crate) fn answer(seed: u64, length: OutputLength, question: &Question, created: u64) -> Answer {
    let mut content = draw(seed, question.prompt_hash, 0, Purpose::Content);
    match question.endpoint {
        Endpoint::Embeddings => embeddings(question, &mut content),
        Endpoint::Moderations => moderations(question, &mut content),
        Endpoint::ChatCompletions | Endpoint::Responses | Endpoint::Completions => {
            let wanted = length.tokens.sample(&mut draw(seed, question.prompt_hash, 0, Purpose::Length));
            let most = question.most_output_tokens.unwrap_or(u32::MAX).min(length.most_tokens);
            let (text, end) = write(&mut content, whole_tokens(wanted), most);
            written(question, &text, end, created)
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, as it should"
)]
fn whole_tokens(wanted: f64) -> u32 {
    wanted.round() as u32
}

/// Wraps a text as its endpoint does.
fn written(question: &Question, text: &str, end: End, created: u64) -> Answer {
    let output_tokens = tokens(text.len());
    let usage = Usage {
        prompt_tokens: question.input_tokens,
        completion_tokens: output_tokens,
        total_tokens: question.input_tokens.saturating_add(output_tokens),
    };
    let finish_reason = match end {
        End::Stop => "stop",
        End::Length => "length",
    };
    let (model, hash) = (question.model.as_str(), question.prompt_hash);
    let body = match question.endpoint {
        Endpoint::Completions => json(&Completion {
            id: format!("cmpl-{hash}"),
            object: "text_completion",
            created,
            model,
            choices: [Choice { index: 0, text: Some(text), message: None, logprobs: (), finish_reason }],
            usage,
        }),
        Endpoint::Responses => json(&response(question, text, end, created, usage)),
        _ => json(&Completion {
            id: format!("chatcmpl-{hash}"),
            object: "chat.completion",
            created,
            model,
            choices: [Choice {
                index: 0,
                text: None,
                message: Some(Message { role: "assistant", content: text, refusal: () }),
                logprobs: (),
                finish_reason,
            }],
            usage,
        }),
    };
    Answer { body, output_tokens }
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
#[expect(clippy::struct_field_names, reason = "the names of the API")]
struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
}

fn response(question: &Question, text: &str, end: End, created: u64, usage: Usage) -> impl Serialize {
    let (status, incomplete_details) = match end {
        End::Stop => ("completed", serde_json::Value::Null),
        End::Length => ("incomplete", serde_json::json!({ "reason": "max_output_tokens" })),
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
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }],
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage.total_tokens,
        },
    })
}

fn embeddings(question: &Question, random: &mut impl Rng) -> Answer {
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
    let body = serde_json::json!({ "object": "list", "data": data, "model": question.model, "usage": usage });
    Answer { body: json(&body), output_tokens: 0 }
}

fn moderations(question: &Question, random: &mut impl Rng) -> Answer {
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
    let body = serde_json::json!({
        "id": format!("modr-{}", question.prompt_hash), "model": question.model, "results": results,
    });
    Answer { body: json(&body), output_tokens: 0 }
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::distribution::Distribution;

    const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"Where is my parcel?"}]"#;

    fn ask(seed: u64, endpoint: Endpoint, body: &str) -> (Value, u32) {
        let question = Question::parse(endpoint, body.as_bytes()).unwrap();
        let answer = answer(seed, OutputLength::default(), &question, 1_700_000_000);
        (serde_json::from_slice(&answer.body).unwrap(), answer.output_tokens)
    }

    #[test]
    fn the_same_prompt_and_seed_get_the_same_answer() {
        let chat = format!("{CHAT}}}");
        let first = ask(1, Endpoint::ChatCompletions, &chat);
        assert_eq!(first, ask(1, Endpoint::ChatCompletions, &chat));
        assert_ne!(first, ask(2, Endpoint::ChatCompletions, &chat));
    }

    #[test]
    fn a_chat_answer_has_a_text_and_its_usage() {
        let (body, output_tokens) = ask(1, Endpoint::ChatCompletions, &format!("{CHAT}}}"));
        let text = body["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(!text.is_empty());
        assert_eq!(body["choices"][0]["finish_reason"], "stop");
        assert_eq!(body["usage"]["prompt_tokens"], 5);
        assert_eq!(body["usage"]["completion_tokens"], output_tokens);
        assert_eq!(body["usage"]["total_tokens"], 5 + output_tokens);
    }

    #[test]
    fn the_limit_of_the_request_cuts_the_answer() {
        let (body, output_tokens) =
            ask(1, Endpoint::ChatCompletions, &format!("{CHAT},\"max_completion_tokens\":3}}"));
        assert_eq!(output_tokens, 3);
        assert_eq!(body["choices"][0]["finish_reason"], "length");
    }

    #[test]
    fn lengths_follow_their_distribution() {
        let length = OutputLength { tokens: Distribution::Constant(200.0), most_tokens: 2_048 };
        let question = Question::parse(Endpoint::ChatCompletions, format!("{CHAT}}}").as_bytes()).unwrap();
        let tokens = answer(1, length, &question, 0).output_tokens;
        assert!((200..230).contains(&tokens), "{tokens} tokens");
    }

    #[test]
    fn each_endpoint_answers_in_its_own_shape() {
        let (body, _) = ask(1, Endpoint::Responses, r#"{"model":"m","input":"Hello"}"#);
        assert!(body["output"][0]["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
        assert_eq!(body["usage"]["input_tokens"], 2);

        let (body, _) = ask(1, Endpoint::Completions, r#"{"model":"m","prompt":"Hello"}"#);
        assert!(body["choices"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));

        let (body, _) = ask(1, Endpoint::Embeddings, r#"{"model":"m","input":["a","b"],"dimensions":3}"#);
        assert_eq!(body["data"][1]["embedding"].as_array().map(Vec::len), Some(3));

        let (body, _) = ask(1, Endpoint::Moderations, r#"{"input":"Hello"}"#);
        assert!(body["results"][0]["flagged"].is_boolean());
    }
}
