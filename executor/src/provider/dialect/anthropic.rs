//! Anthropic's API: Messages for prompts, its OpenAI-compatible endpoint for OpenAI lines.
//!
//! At Messages the key stands in the header `x-api-key` and the version of the API beside it; at the OpenAI-compatible
//! endpoint it is a bearer token. Body and answer: <https://platform.claude.com/docs/en/api/messages>.

mod answer;
mod refusal;

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use penstock_job::{CanonicalSpec, spec::BaseUrl};
use penstock_rate::{Hint, Hints};
use url::Url;

pub(super) use self::{
    answer::read,
    refusal::{error_body, judge},
};
use super::url_of;
use crate::provider::{
    frame::{Frame, closed_with, json},
    key::KeyHeader,
};

/// Where Anthropic's own tools read the key from.
pub(super) const KEYS: &[&str] = &["ANTHROPIC_API_KEY"];

/// Where the key goes.
pub(super) const KEY_HEADER: KeyHeader = KeyHeader::plain(HeaderName::from_static("x-api-key"));

/// The version that is asked for; the answers that are read here are its own.
pub(super) const VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// `BASE/v1/messages`
pub(super) fn url(base: &BaseUrl) -> Url {
    url_of(base, ["v1", "messages"])
}

/// What is the same for every prompt. The job's parameters follow as they are; `max_tokens` among them takes the place
/// of the job's bound.
pub(super) fn frame(spec: &CanonicalSpec) -> Frame {
    let model = json(spec.model.as_deref().unwrap_or_default());
    let system = |text| format!(r#""system":{},"#, json(text));
    let system = spec.system_prompt.as_deref().map(system).unwrap_or_default();
    let before = format!(r#"{{"model":{model},{system}"messages":[{{"role":"user","content":"#);
    let mut members = spec.parameters.clone();
    if let Some(bound) = spec.max_output_tokens {
        members.entry("max_tokens").or_insert(bound.into());
    }
    Frame::around(before, format!("}}]{}", closed_with(members)))
}

/// The headers of one limit: how much it allows, what is left, and when nothing of it is used.
struct Names {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

const REQUESTS: Names = Names {
    limit: HeaderName::from_static("anthropic-ratelimit-requests-limit"),
    remaining: HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
    reset: HeaderName::from_static("anthropic-ratelimit-requests-reset"),
};

/// Of the several limits on tokens these describe the one that binds most.
const TOKENS: Names = Names {
    limit: HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
    remaining: HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
    reset: HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
};

/// What the headers of an answer say about the limits (<https://platform.claude.com/docs/en/api/rate-limits>). Their
/// times are taken relative to the answer's own `date`, since the two clocks may differ, and to `now` where it has none.
pub(super) fn hints(headers: &HeaderMap, now: SystemTime) -> Hints {
    Hints { requests: hint(headers, &REQUESTS, now), tokens: hint(headers, &TOKENS, now), ..Hints::default() }
}

fn hint(headers: &HeaderMap, names: &Names, now: SystemTime) -> Hint {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let answered = || {
        let date = text(&header::DATE).and_then(|date| httpdate::parse_http_date(date).ok());
        date.unwrap_or(now)
    };
    let until = text(&names.reset).and_then(|reset| humantime::parse_rfc3339(reset).ok());
    Hint {
        limit: text(&names.limit).and_then(|limit| limit.parse().ok()),
        remaining: text(&names.remaining).and_then(|remaining| remaining.parse().ok()),
        reset: until.map(|until| until.duration_since(answered()).unwrap_or_default()),
        period: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use penstock_job::{JobSpec, spec::ProviderKind};
    use serde_json::{Value, json};

    use super::{super::body_of_hello, *};

    fn body(change: impl FnOnce(&mut JobSpec)) -> Value {
        body_of_hello(ProviderKind::Anthropic, change)
    }

    #[test]
    fn a_prompt_becomes_one_message_with_a_bound_on_its_answer() {
        let messages = json!([{"role": "user", "content": "hello"}]);
        assert_eq!(body(|_| ()), json!({"model": "m", "messages": messages, "max_tokens": 4096}));
        let with_all = body(|spec| {
            spec.system_prompt = Some("be \"brief\"".to_owned());
            spec.max_output_tokens = 9.try_into().ok();
            spec.parameters.insert("temperature".to_owned(), json!(0.5));
        });
        assert_eq!(
            with_all,
            json!({
                "model": "m", "system": "be \"brief\"", "messages": messages, "temperature": 0.5, "max_tokens": 9,
            })
        );
    }

    #[test]
    fn the_limits_in_headers_are_read_relative_to_the_clock_of_the_answer() {
        let headers: HeaderMap = [
            ("date", "Sat, 21 Nov 2026 13:00:00 GMT"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-21T13:00:01Z"),
            ("anthropic-ratelimit-tokens-limit", "40000"),
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "soon"),
        ]
        .into_iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
        let hints = hints(&headers, SystemTime::UNIX_EPOCH);
        let requests =
            Hint { limit: Some(50), remaining: Some(49), reset: Some(Duration::from_secs(1)), period: None };
        assert_eq!(hints.requests, requests);
        assert_eq!(hints.tokens, Hint { limit: Some(40_000), remaining: Some(0), ..Hint::default() });
    }
}
