//! What a request asks for.
//!
//! Owns the endpoints and their request bodies, parsed once into a [`Question`]; reading bytes from a
//! connection is the server's business.

use std::borrow::Cow;

use http::Method;
use serde::Deserialize;

use crate::{draw::PromptHash, refusal::Refusal};

/// The endpoints that answer prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    ChatCompletions,
    Responses,
    Completions,
    Embeddings,
    Moderations,
}

/// What a path and a method lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A request with a prompt.
    Ask(Endpoint),
    /// The list of models.
    Models,
}

/// Where a request goes. Exactly one `/v1` is accepted.
pub(crate) fn route(method: &Method, path: &str) -> Result<Route, Refusal> {
    let (expected, route) = match path {
        "/v1/chat/completions" => (Method::POST, Route::Ask(Endpoint::ChatCompletions)),
        "/v1/responses" => (Method::POST, Route::Ask(Endpoint::Responses)),
        "/v1/completions" => (Method::POST, Route::Ask(Endpoint::Completions)),
        "/v1/embeddings" => (Method::POST, Route::Ask(Endpoint::Embeddings)),
        "/v1/moderations" => (Method::POST, Route::Ask(Endpoint::Moderations)),
        "/v1/models" => (Method::GET, Route::Models),
        _ => return Err(Refusal::unknown_path(method, path)),
    };
    if *method == expected { Ok(route) } else { Err(Refusal::wrong_method(method, path)) }
}

/// A request, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: String,
    /// The last user text; for the other endpoints the last input.
    pub(crate) prompt: String,
    pub(crate) prompt_hash: PromptHash,
    /// Tokens of everything that was sent, by the four-characters rule of thumb.
    pub(crate) input_tokens: u32,
    /// The most tokens that the request allows its answer.
    pub(crate) most_output_tokens: Option<u32>,
    /// How many inputs are to be embedded or moderated.
    pub(crate) inputs: usize,
    /// The length of an embedding, where the request names it.
    pub(crate) dimensions: Option<u32>,
}

/// Tokens of a text, by the rule of thumb that a token is four characters (bytes here).
pub(crate) fn tokens(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
}

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

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(#[serde(borrow)] Vec<Part<'a>>),
}

#[derive(Debug, Deserialize)]
struct Part<'a> {
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
    fn into_text(self) -> String {
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

impl Question {
    /// Reads the body of a request to `endpoint`.
    pub(crate) fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, Refusal> {
        let body: Body<'_> =
            serde_json::from_slice(body).map_err(|error| Refusal::unreadable_body(&error))?;
        if body.stream == Some(true) {
            return Err(Refusal::unsupported("stream", "This server does not stream: leave `stream` out."));
        }
        if body.encoding_format.as_deref().is_some_and(|format| format != "float") {
            return Err(Refusal::unsupported(
                "encoding_format",
                "This server sends embeddings as `float` only.",
            ));
        }
        let model = match (body.model, endpoint) {
            (Some(model), _) => model.into_owned(),
            (None, Endpoint::Moderations) => "omni-moderation-latest".to_owned(),
            (None, _) => return Err(Refusal::missing("model")),
        };
        let texts = match endpoint {
            Endpoint::ChatCompletions if body.messages.is_empty() => {
                return Err(Refusal::missing("messages"));
            }
            Endpoint::ChatCompletions => Texts::of_messages(body.messages),
            Endpoint::Completions => Texts::of_input(body.prompt.ok_or_else(|| Refusal::missing("prompt"))?),
            Endpoint::Responses | Endpoint::Embeddings | Endpoint::Moderations => {
                Texts::of_input(body.input.ok_or_else(|| Refusal::missing("input"))?)
            }
        };
        Ok(Self {
            endpoint,
            model,
            prompt_hash: PromptHash::of(&texts.prompt),
            prompt: texts.prompt,
            input_tokens: tokens(texts.bytes + body.instructions.map_or(0, |text| text.len())),
            most_output_tokens: body.max_completion_tokens.or(body.max_output_tokens).or(body.max_tokens),
            inputs: texts.inputs,
            dimensions: body.dimensions,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn status(method: &Method, path: &str) -> Result<Route, StatusCode> {
        route(method, path).map_err(|refusal| refusal.status)
    }

    #[test]
    fn exactly_one_version_prefix_is_accepted() {
        assert_eq!(status(&Method::POST, "/v1/chat/completions"), Ok(Route::Ask(Endpoint::ChatCompletions)));
        assert_eq!(status(&Method::POST, "/v1/v1/chat/completions"), Err(StatusCode::NOT_FOUND));
        assert_eq!(status(&Method::POST, "/chat/completions"), Err(StatusCode::NOT_FOUND));
    }

    #[test]
    fn a_known_path_with_a_wrong_method_is_not_allowed() {
        assert_eq!(status(&Method::GET, "/v1/embeddings"), Err(StatusCode::METHOD_NOT_ALLOWED));
        assert_eq!(status(&Method::POST, "/v1/models"), Err(StatusCode::METHOD_NOT_ALLOWED));
    }

    #[test]
    fn the_prompt_of_a_chat_is_its_last_user_text() {
        let body = r#"{"model":"m","max_completion_tokens":9,"messages":[{"role":"system","content":"be kind"},
            {"role":"user","content":"first"},{"role":"assistant","content":null},
            {"role":"user","content":[{"type":"text","text":"second \u00fc"},{"type":"image_url"}]}]}"#;
        let question = Question::parse(Endpoint::ChatCompletions, body.as_bytes()).unwrap();
        assert_eq!(question.prompt, "second ü");
        assert_eq!(question.most_output_tokens, Some(9));
        assert_eq!(question.input_tokens, tokens("be kindfirstsecond ü".len()));
    }

    #[test]
    fn each_endpoint_reads_its_own_input() {
        for (endpoint, body, prompt, inputs) in [
            (Endpoint::Responses, r#"{"model":"m","input":"hello"}"#, "hello", 1),
            (Endpoint::Responses, r#"{"model":"m","input":[{"role":"user","content":"hello"}]}"#, "hello", 1),
            (Endpoint::Completions, r#"{"model":"m","prompt":"hello"}"#, "hello", 1),
            (Endpoint::Embeddings, r#"{"model":"m","input":["one","two"]}"#, "two", 2),
            (Endpoint::Moderations, r#"{"input":"hello"}"#, "hello", 1),
        ] {
            let question = Question::parse(endpoint, body.as_bytes()).unwrap();
            assert_eq!((question.prompt.as_str(), question.inputs), (prompt, inputs), "{body}");
        }
    }

    #[test]
    fn what_is_missing_or_cannot_be_done_is_named() {
        for (body, named) in [
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, "'model'"),
            (r#"{"model":"m"}"#, "'messages'"),
            (r#"{"model":"m","stream":true,"messages":[]}"#, "stream"),
            (r#"{"model":"#, "JSON"),
        ] {
            let refusal = Question::parse(Endpoint::ChatCompletions, body.as_bytes()).unwrap_err();
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST);
            let text = String::from_utf8(refusal.body().to_vec()).unwrap();
            assert!(text.contains(named), "{text} does not name {named}");
        }
    }
}
