//! OpenAI's dialect, which the compatible endpoints of others follow.
//!
//! Source: <https://github.com/openai/openai-openapi>, and bodies quoted in public issues.

mod answer;
mod error;
mod request;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, request::Parts};

pub(crate) use answer::{embeddings, models, moderations};
pub(super) use error::{Envelope, retry};
pub(super) use request::{Content, read};

use super::{Context, Dialect, RequestId, Told, bearer, value};
use crate::{
    answer::Written,
    limit::{Claim, Claims, rounded_up},
    question::{Form, Question, Route, Target, Task},
    refusal::Refusal,
};

/// The dialect itself.
#[derive(Debug)]
pub(crate) struct OpenAi;

const REQUEST_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];

const TOKEN_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

impl Dialect for OpenAi {
    /// Exactly one `/v1` is accepted.
    fn route(&self, head: &Parts) -> Result<Route, Refusal> {
        let (method, path) = (&head.method, head.uri.path());
        let route = match path.strip_prefix("/v1/") {
            Some("models") => Some(Route::Models),
            Some(rest) => task(rest).map(|task| Route::Ask(Target { task, model: None })),
            None => None,
        };
        allowed(method, path, route)
    }

    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str> {
        bearer(head)
    }

    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal> {
        read(target, body)
    }

    fn text(&self, question: &Question, form: Form, written: &Written, created: u64) -> Bytes {
        answer::text(question, form, written, created)
    }

    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told {
        error::told(refusal, context)
    }

    fn write_limits(&self, headers: &mut HeaderMap, claims: &Claims, _now: SystemTime) {
        write_limits(headers, claims, go_duration);
    }

    fn write_name(&self, headers: &mut HeaderMap, id: RequestId) {
        headers.insert(HeaderName::from_static("x-request-id"), value(&id.to_string()));
    }
}

/// The task behind the end of a path.
pub(super) fn task(path: &str) -> Option<Task> {
    match path {
        "chat/completions" => Some(Task::Write(Form::Chat)),
        "responses" => Some(Task::Write(Form::Response)),
        "completions" => Some(Task::Write(Form::Completion)),
        "embeddings" => Some(Task::Embed),
        "moderations" => Some(Task::Moderate),
        _ => None,
    }
}

/// The route, if there is one and the method is its own.
pub(super) fn allowed(method: &Method, path: &str, route: Option<Route>) -> Result<Route, Refusal> {
    let expected = match route {
        Some(Route::Ask(_)) => Method::POST,
        Some(Route::Models) => Method::GET,
        None => return Err(Refusal::UnknownPath { method: method.clone(), path: path.to_owned() }),
    };
    route
        .filter(|_| *method == expected)
        .ok_or_else(|| Refusal::WrongMethod { method: method.clone(), path: path.to_owned() })
}

/// Writes the `x-ratelimit-*` headers, with the resets as `written`.
pub(super) fn write_limits(headers: &mut HeaderMap, claims: &Claims, written: fn(Duration) -> String) {
    for (names, claim) in [(REQUEST_HEADERS, claims.requests), (TOKEN_HEADERS, claims.tokens)] {
        let Some(Claim { limit: most, remaining: left, reset: until }) = claim else {
            continue;
        };
        let [limit, remaining, reset] = names;
        headers.insert(limit, most.into());
        headers.insert(remaining, left.into());
        headers.insert(reset, value(&written(until)));
    }
}

/// A duration as OpenAI writes it: `120ms`, `9.816s`, `6m0s`.
fn go_duration(duration: Duration) -> String {
    let milliseconds = rounded_up(duration, 1);
    let (minutes, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    #[expect(clippy::cast_precision_loss, reason = "below 60,000")]
    let seconds = rest as f64 / 1_000.0;
    match milliseconds {
        0..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{seconds}s"),
        60_000.. => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_version_prefix_is_accepted() {
        let route = |method: Method, path: &str| {
            let request = http::Request::builder().method(method).uri(path).body(()).unwrap();
            OpenAi.route(&request.into_parts().0)
        };
        let chat = Target { task: Task::Write(Form::Chat), model: None };
        assert_eq!(route(Method::POST, "/v1/chat/completions"), Ok(Route::Ask(chat)));
        for unknown in ["/v1/v1/chat/completions", "/chat/completions"] {
            assert!(matches!(route(Method::POST, unknown), Err(Refusal::UnknownPath { .. })), "{unknown}");
        }
        for (method, path) in [(Method::GET, "/v1/embeddings"), (Method::POST, "/v1/models")] {
            assert!(matches!(route(method, path), Err(Refusal::WrongMethod { .. })), "{path}");
        }
    }

    #[test]
    fn honest_headers_are_those_a_provider_was_seen_to_send() {
        let claim = |reset| Some(Claim { limit: 500, remaining: 499, reset });
        let written = |claims: &Claims| {
            let mut headers = HeaderMap::new();
            OpenAi.write_limits(&mut headers, claims, SystemTime::UNIX_EPOCH);
            headers.values().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let requests = claim(Duration::from_millis(120));
        assert_eq!(written(&Claims { requests, tokens: None }), ["500", "499", "120ms"]);
        let tokens = claim(Duration::from_mins(3));
        assert_eq!(written(&Claims { requests: None, tokens }), ["500", "499", "3m0s"]);
        assert_eq!(written(&Claims::default()), [""; 0]);
    }
}
