//! The request body of the Messages API. A field that it does not have is refused, as the service refuses it: a client
//! that misplaces a parameter is to be noticed.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{
    dialect::{OtherFields, openai::Content, unknown_field},
    draw::PromptHash,
    question::{Question, Task, tokens},
    refusal::Refusal,
};

/// Fields of a request beside those of [`Body`]: those of
/// <https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/types/message_create_params.py>.
const OTHER_FIELDS: [&str; 15] = [
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "output_config",
    "service_tier",
    "stop_sequences",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// The fields that change the answer, and the others.
#[derive(Debug, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    max_tokens: Option<u32>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    system: Option<Content<'a>>,
    stream: Option<bool>,
    #[serde(borrow, flatten)]
    others: OtherFields<'a>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// Reads the body of a request.
pub(super) fn read(task: Task, body: &[u8]) -> Result<Question, Refusal> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::UnreadableBody(error.to_string()))?;
    if let Some(name) = unknown_field(&body.others, &OTHER_FIELDS) {
        return Err(Refusal::Unsupported {
            param: name.to_owned().into(),
            message: "Extra inputs are not permitted",
        });
    }
    let model = body.model.ok_or(Refusal::Missing("model"))?.into_owned();
    let most_output_tokens = Some(body.max_tokens.ok_or(Refusal::Missing("max_tokens"))?);
    if body.messages.is_empty() {
        return Err(Refusal::Missing("messages"));
    }
    if body.stream == Some(true) {
        return Err(Refusal::Unsupported {
            param: "stream".into(),
            message: "This server does not stream: leave `stream` out.",
        });
    }
    let mut prompt = String::new();
    let mut bytes = body.system.map_or(0, |system| system.into_text().len());
    for message in body.messages {
        let text = message.content.map(Content::into_text).unwrap_or_default();
        bytes += text.len();
        match message.role.as_ref() {
            "user" => prompt = text,
            "assistant" => {}
            _ => {
                return Err(Refusal::Unsupported {
                    param: "messages".into(),
                    message: "Unexpected role. The Messages API accepts a top-level `system` parameter, and the \
                              roles \"user\" and \"assistant\".",
                });
            }
        }
    }
    Ok(Question {
        task,
        model,
        prompt_hash: PromptHash::of(&prompt),
        prompt,
        input_tokens: tokens(bytes),
        most_output_tokens,
        inputs: 1,
        dimensions: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Form;

    fn parse(body: &str) -> Result<Question, Refusal> {
        read(Task::Write(Form::Chat), body.as_bytes())
    }

    #[test]
    fn texts_and_blocks_are_read_alike() {
        for body in [
            r#"{"model":"c","max_tokens":9,"system":"be kind","messages":[{"role":"user","content":"hello"}]}"#,
            r#"{"model":"c","max_tokens":9,"system":[{"type":"text","text":"be kind"}],
                "messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}"#,
        ] {
            let question = parse(body).unwrap();
            assert_eq!((question.prompt.as_str(), question.model.as_str()), ("hello", "c"));
            assert_eq!((question.most_output_tokens, question.input_tokens), (Some(9), 3));
        }
    }

    #[test]
    fn what_is_missing_or_misplaced_is_named() {
        for (body, refusal) in [
            (r#"{"max_tokens":9,"messages":[]}"#, Refusal::Missing("model")),
            (r#"{"model":"c","messages":[]}"#, Refusal::Missing("max_tokens")),
            (r#"{"model":"c","max_tokens":9}"#, Refusal::Missing("messages")),
        ] {
            assert_eq!(parse(body), Err(refusal), "{body}");
        }
        for (body, misplaced) in [
            (
                r#"{"model":"c","max_tokens":9,"messages":[{"role":"system","content":"be kind"}]}"#,
                "messages",
            ),
            (r#"{"model":"c","max_tokens":9,"max_output_tokens":9}"#, "max_output_tokens"),
        ] {
            assert!(
                matches!(parse(body), Err(Refusal::Unsupported { param, .. }) if param == misplaced),
                "{body}"
            );
        }
    }
}
