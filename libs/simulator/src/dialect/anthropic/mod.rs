//! Anthropic's dialect, the Messages API.
//!
//! Source: <https://docs.claude.com/en/api/messages>. Its OpenAI-compatible endpoint, `/v1/chat/completions`, answers
//! as OpenAI's does.

mod answer;
mod date;
mod error;
mod limits;
mod request;

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, request::Parts};

use super::{Context, Dialect, RequestId, Told, header_text, openai::allowed, value};
use crate::{
    answer::Written,
    limit::Claims,
    question::{Form, Question, Route, Target, Task},
    refusal::Refusal,
};

/// `POST /v1/messages`.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    /// Each request names the version that it was written for.
    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        let route = Route::Ask(Target { task: Task::Write(Form::Chat), model: None });
        let route = allowed(&head.method, head.uri.path(), Some(route))?;
        header_text(head, "anthropic-version").map(|_| route).ok_or(Refusal::MissingVersion)
    }

    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str> {
        header_text(head, "x-api-key")
    }

    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal> {
        request::read(target.task, body)
    }

    fn text(&self, question: &Question, _form: Form, written: &Written, _created: u64) -> Bytes {
        answer::text(question, written)
    }

    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told {
        error::told(refusal, context)
    }

    fn write_limits(&self, headers: &mut HeaderMap, claims: &Claims, now: SystemTime) {
        limits::write(headers, claims, now);
    }

    fn write_name(&self, headers: &mut HeaderMap, id: RequestId) {
        headers.insert(HeaderName::from_static("request-id"), value(&id.to_string()));
    }
}
