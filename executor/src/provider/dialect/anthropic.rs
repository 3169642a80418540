//! Anthropic's API: Messages for prompts, its OpenAI-compatible endpoint for OpenAI lines.
//!
//! At Messages the key stands in the header `x-api-key` and the version of the API beside it; at the OpenAI-compatible
//! endpoint it is a bearer token. Body and answer: <https://platform.claude.com/docs/en/api/messages>.

mod answer;
mod refusal;

use http::{HeaderName, HeaderValue};
use penstock_job::{CanonicalSpec, spec::BaseUrl};
use url::Url;

pub(super) use self::{
    answer::{read, used},
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

#[cfg(test)]
mod tests {
    use penstock_job::{JobSpec, spec::ProviderKind};
    use serde_json::{Value, json};

    use super::super::body_of_hello;

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
}
