//! The request bodies of OpenAI's endpoints.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{
    draw::PromptHash,
    question::{Form, Question, Target, Task, tokens},
    refusal::Refusal,
};

/// The union of the request bodies of all endpoints; what an endpoint requires is checked after parsing.
/// Fields that do not change the answer are ignored.
#[derive(Debug, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    instructions: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<Input<'a>>,
    #[serde(borrow)]
    prompt: Option<Input<'a>>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
    #[serde(default)]
    stream: Option<bool>,
    dimensions: Option<u32>,
    #[serde(borrow)]
    encoding_format: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// A text, or the texts among parts of other kinds.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::dialect) enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Part<'a>>),
}

#[derive(Debug, Deserialize)]
pub(in crate::dialect) struct Part<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Texts(#[serde(borrow)] Vec<Cow<'a, str>>),
    Messages(#[serde(borrow)] Vec<Message<'a>>),
}

impl Content<'_> {
    pub(in crate::dialect) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Parts(parts) => {
                let texts: Vec<_> = parts.into_iter().filter_map(|part| part.text).collect();
                texts.join("\n")
            }
        }
    }
}

/// The texts of a request: the one that counts as its prompt, how many inputs there are, and the size of all.
struct Texts {
    prompt: String,
    inputs: usize,
    bytes: usize,
}

impl Texts {
    fn of_messages(messages: Vec<Message<'_>>) -> Self {
        let mut texts = Self { prompt: String::new(), inputs: 1, bytes: 0 };
        for message in messages {
            let text = message.content.map(Content::into_text).unwrap_or_default();
            texts.bytes += text.len();
            if message.role == "user" {
                texts.prompt = text;
            }
        }
        texts
    }

    fn of_input(input: Input<'_>) -> Self {
        match input {
            Input::Text(text) => Self { inputs: 1, bytes: text.len(), prompt: text.into_owned() },
            Input::Texts(texts) => Self {
                inputs: texts.len(),
                bytes: texts.iter().map(|text| text.len()).sum(),
                prompt: texts.into_iter().next_back().unwrap_or_default().into_owned(),
            },
            Input::Messages(messages) => Self::of_messages(messages),
        }
    }
}

/// Reads the body of a request. A model that the path names wins over that of the body.
pub(in crate::dialect) fn read(target: Target, body: &[u8]) -> Result<Question, Refusal> {
    let body: Body<'_> =
        serde_json::from_slice(body).map_err(|error| Refusal::UnreadableBody(error.to_string()))?;
    if body.stream == Some(true) {
        return Err(Refusal::Unsupported {
            param: "stream".into(),
            message: "This server does not stream: leave `stream` out.",
        });
    }
    if body.encoding_format.as_deref().is_some_and(|format| format != "float") {
        return Err(Refusal::Unsupported {
            param: "encoding_format".into(),
            message: "This server sends embeddings as `float` only.",
        });
    }
    let Target { task, model } = target;
    let model = match (model.or(body.model.map(Cow::into_owned)), task) {
        (Some(model), _) => model,
        (None, Task::Moderate) => "omni-moderation-latest".to_owned(),
        (None, _) => return Err(Refusal::Missing("model")),
    };
    let texts = match task {
        Task::Write(Form::Chat) if body.messages.is_empty() => {
            return Err(Refusal::Missing("messages"));
        }
        Task::Write(Form::Chat) => Texts::of_messages(body.messages),
        Task::Write(Form::Completion) => Texts::of_input(body.prompt.ok_or(Refusal::Missing("prompt"))?),
        Task::Write(Form::Response) | Task::Embed | Task::Moderate => {
            Texts::of_input(body.input.ok_or(Refusal::Missing("input"))?)
        }
    };
    Ok(Question {
        task,
        model,
        prompt_hash: PromptHash::of(&texts.prompt),
        prompt: texts.prompt,
        input_tokens: tokens(texts.bytes + body.instructions.map_or(0, |text| text.len())),
        most_output_tokens: body.max_completion_tokens.or(body.max_output_tokens).or(body.max_tokens),
        inputs: texts.inputs,
        dimensions: body.dimensions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(task: Task, body: &str) -> Result<Question, Refusal> {
        read(Target { task, model: None }, body.as_bytes())
    }

    const CHAT: Task = Task::Write(Form::Chat);

    #[test]
    fn the_prompt_of_a_chat_is_its_last_user_text() {
        let body = r#"{"model":"m","max_completion_tokens":9,"messages":[{"role":"system","content":"be kind"},
            {"role":"user","content":"first"},{"role":"assistant","content":null},
            {"role":"user","content":[{"type":"text","text":"second \u00fc"},{"type":"image_url"}]}]}"#;
        let question = parse(CHAT, body).unwrap();
        assert_eq!(question.prompt, "second ü");
        assert_eq!(question.most_output_tokens, Some(9));
        assert_eq!(question.input_tokens, tokens("be kindfirstsecond ü".len()));
    }

    #[test]
    fn each_endpoint_reads_its_own_input() {
        let response = Task::Write(Form::Response);
        for (task, body, prompt, inputs) in [
            (response, r#"{"model":"m","input":"hello"}"#, "hello", 1),
            (response, r#"{"model":"m","input":[{"role":"user","content":"hello"}]}"#, "hello", 1),
            (Task::Write(Form::Completion), r#"{"model":"m","prompt":"hello"}"#, "hello", 1),
            (Task::Embed, r#"{"model":"m","input":["one","two"]}"#, "two", 2),
            (Task::Moderate, r#"{"input":"hello"}"#, "hello", 1),
        ] {
            let question = parse(task, body).unwrap();
            assert_eq!((question.prompt.as_str(), question.inputs), (prompt, inputs), "{body}");
        }
    }

    #[test]
    fn a_model_in_the_path_is_enough() {
        let target = Target { task: CHAT, model: Some("deployment".to_owned()) };
        let question = read(target, br#"{"messages":[{"role":"user","content":"x"}]}"#).unwrap();
        assert_eq!(question.model, "deployment");
    }

    #[test]
    fn what_is_missing_or_cannot_be_done_is_named() {
        for (body, refusal) in [
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, Refusal::Missing("model")),
            (r#"{"model":"m"}"#, Refusal::Missing("messages")),
        ] {
            assert_eq!(parse(CHAT, body), Err(refusal));
        }
        let streamed = parse(CHAT, r#"{"model":"m","stream":true,"messages":[]}"#);
        assert!(matches!(streamed, Err(Refusal::Unsupported { param, .. }) if param == "stream"));
        assert!(matches!(parse(CHAT, r#"{"model":"#), Err(Refusal::UnreadableBody(_))));
    }
}
