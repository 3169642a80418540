//! The request body of the Messages API.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{
    dialect::openai::Content,
    draw::PromptHash,
    question::{Question, Task, tokens},
    refusal::Refusal,
};

/// The fields that change the answer; the others are ignored.
#[derive(Debug, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    max_tokens: Option<u32>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    system: Option<Content<'a>>,
    #[serde(default)]
    stream: Option<bool>,
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
    let model = body.model.ok_or(Refusal::Missing("model"))?.into_owned();
    let most_output_tokens = Some(body.max_tokens.ok_or(Refusal::Missing("max_tokens"))?);
    if body.messages.is_empty() {
        return Err(Refusal::Missing("messages"));
    }
    if body.stream == Some(true) {
        return Err(Refusal::Unsupported {
            param: "stream",
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
                    param: "messages",
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
        let misplaced = r#"{"model":"c","max_tokens":9,"messages":[{"role":"system","content":"be kind"}]}"#;
        assert!(matches!(parse(misplaced), Err(Refusal::Unsupported { param: "messages", .. })));
    }
}
