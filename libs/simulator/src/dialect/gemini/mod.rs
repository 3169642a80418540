//! Gemini's dialect, `generateContent`, and its OpenAI-compatible endpoint.
//!
//! Source: <https://ai.google.dev/api/generate-content> and <https://ai.google.dev/gemini-api/docs/openai>.

mod answer;
mod error;
mod request;

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, request::Parts};

use super::{
    Context, Dialect, RequestId, Told, bearer, header_text,
    openai::{OpenAi, allowed, task},
    parameter,
};
use crate::{
    answer::{End, Written},
    limit::Claims,
    question::{Form, Question, Route, Target, Task},
    refusal::Refusal,
};

/// `POST /v1beta/models/{model}:generateContent`.
#[derive(Debug)]
pub(crate) struct Gemini;

/// `/v1beta/openai/...`: OpenAI's requests and answers, Google's errors.
#[derive(Debug)]
pub(crate) struct Compatible;

impl Dialect for Gemini {
    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        let path = head.uri.path();
        let model = path
            .strip_prefix("/v1beta/models/")
            .and_then(|rest| rest.strip_suffix(":generateContent"))
            .filter(|model| !model.is_empty() && !model.contains(['/', ':']));
        let route = model
            .map(|model| Route::Ask(Target { task: Task::Write(Form::Chat), model: Some(model.to_owned()) }));
        allowed(&head.method, path, route)
    }

    /// The header that Google's own clients send, else the parameter of the URL.
    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str> {
        header_text(head, "x-goog-api-key").or_else(|| parameter(&head.uri, "key"))
    }

    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal> {
        request::read(target, body)
    }

    fn text(&self, question: &Question, _form: Form, written: &Written, _created: u64) -> Bytes {
        answer::text(question, written)
    }

    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told {
        match refusal {
            Refusal::RejectedPrompt => answer::blocked(context),
            _ => error::told(refusal, context),
        }
    }

    /// Gemini says nothing about its limits until it refuses.
    fn write_limits(&self, _headers: &mut HeaderMap, _claims: &Claims, _now: SystemTime) {}

    /// The answer names itself, in `responseId`.
    fn write_name(&self, _headers: &mut HeaderMap, _id: RequestId) {}
}

impl Dialect for Compatible {
    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        let path = head.uri.path();
        let route = match path.strip_prefix("/v1beta/openai/") {
            Some("models") => Some(Route::Models),
            Some(rest @ ("chat/completions" | "embeddings")) => {
                task(rest).map(|task| Route::Ask(Target { task, model: None }))
            }
            _ => None,
        };
        allowed(&head.method, path, route)
    }

    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str> {
        bearer(head)
    }

    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal> {
        OpenAi.question(target, body)
    }

    fn text(&self, question: &Question, form: Form, written: &Written, created: u64) -> Bytes {
        OpenAi.text(question, form, written, created)
    }

    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told {
        match (refusal, context.question) {
            (Refusal::RejectedPrompt, Some(question)) => blocked_chat(question, context),
            _ => error::told_in_array(refusal, context),
        }
    }

    fn write_limits(&self, _headers: &mut HeaderMap, _claims: &Claims, _now: SystemTime) {}

    fn write_name(&self, _headers: &mut HeaderMap, _id: RequestId) {}
}

/// A blocked prompt, for which no body of the compatible endpoint is published: told as OpenAI tells of a filter.
fn blocked_chat(question: &Question, context: &Context<'_>) -> Told {
    let created = context.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let body = OpenAi.text(question, Form::Chat, &Written::nothing(End::Filtered), created);
    Told::new(200, "application/json", body)
}
