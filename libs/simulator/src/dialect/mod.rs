//! The dialects: how each provider is asked, how it answers, and in which words it refuses.
//!
//! They are served side by side on one address and told apart by the path, over the same limits, latencies,
//! faults and log:
//!
//! | path | dialect |
//! |---|---|
//! | `/v1beta/openai/...` | Gemini's OpenAI-compatible endpoint |
//! | `/v1beta/...` | Gemini |
//! | `/v1/messages` | Anthropic |
//! | `/openai/...` | Azure OpenAI |
//! | any other | OpenAI |
//!
//! The bodies are those that the providers publish or were seen to send; each names its source.

mod anthropic;
mod azure;
mod gemini;
pub(crate) mod openai;

use std::{borrow::Cow, collections::HashMap, fmt, time::SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use serde::Serialize;

use crate::{
    answer::{Written, json},
    limit::{Claims, LimitSettings},
    question::{Form, Question, Route, Target},
    refusal::Refusal,
};

/// One provider's way to be asked and to answer.
pub(crate) trait Dialect: fmt::Debug + Send + Sync {
    /// Where a request goes.
    fn route(&self, head: &Parts) -> Result<Route, Refusal>;

    /// The key that a request carries.
    fn key<'a>(&self, head: &'a Parts) -> Option<&'a str>;

    /// Reads the body of a request.
    fn question(&self, target: Target, body: &[u8]) -> Result<Question, Refusal>;

    /// The body that wraps a text. `created` is in seconds since the epoch.
    fn text(&self, question: &Question, form: Form, written: &Written, created: u64) -> Bytes;

    /// The answer that a refusal gets.
    fn refusal(&self, refusal: &Refusal, context: &Context<'_>) -> Told;

    /// Writes what every answer says about the limits.
    fn write_limits(&self, headers: &mut HeaderMap, claims: &Claims, now: SystemTime);

    /// Writes the headers that name an answer.
    fn write_name(&self, headers: &mut HeaderMap, id: RequestId);
}

/// The dialect of a path.
pub(crate) fn spoken_at(path: &str) -> &'static dyn Dialect {
    if path.starts_with("/v1beta/openai/") {
        &gemini::Compatible
    } else if path.starts_with("/v1beta/") {
        &gemini::Gemini
    } else if path == "/v1/messages" {
        &anthropic::Anthropic
    } else if path.starts_with("/openai/") {
        &azure::Azure
    } else {
        &openai::OpenAi
    }
}

/// What a refusal can know beside its reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The path and query that were asked.
    pub(crate) uri: &'a http::Uri,
    pub(crate) question: Option<&'a Question>,
    pub(crate) limits: &'a LimitSettings,
    pub(crate) id: RequestId,
    pub(crate) now: SystemTime,
}

impl Context<'_> {
    /// The model that was asked, empty where none was understood.
    fn model(&self) -> &str {
        self.question.map_or("", |question| question.model.as_str())
    }
}

/// An answer without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Told {
    fn json(status: u16, body: &impl Serialize) -> Self {
        Self::new(status, "application/json", json(body))
    }

    fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let status =
            StatusCode::from_u16(status).expect("invariant: the statuses written here have three digits");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self { status, headers, body: body.into() }
    }
}

/// What names one request: the server's seed and how many requests came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId {
    pub(crate) seed: u64,
    pub(crate) sequence: u64,
}

impl RequestId {
    fn as_uuid(self) -> String {
        let Self { seed, sequence } = self;
        let parts =
            (seed >> 32, seed >> 16 & 0xffff, seed & 0xffff, sequence >> 48, sequence & 0xffff_ffff_ffff);
        format!("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", parts.0, parts.1, parts.2, parts.3, parts.4)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "req_{:016x}{:016x}", self.seed, self.sequence)
    }
}

/// The key of an `Authorization: Bearer KEY`.
fn bearer(head: &Parts) -> Option<&str> {
    header_text(head, "authorization")?.strip_prefix("Bearer ")
}

fn header_text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

/// The value of a parameter of the URL, as it stands there.
fn parameter<'a>(uri: &'a http::Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query()?.split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|&(found, _)| found == name).map(|(_, value)| value)
}

/// The fields that a body has beside those that are read.
type OtherFields<'a> = HashMap<Cow<'a, str>, serde_json::Value>;

/// A field that an API does not know, where it refuses such fields. Case and underscores do not matter.
fn unknown_field<'a>(fields: &'a OtherFields<'_>, known: &[&str]) -> Option<&'a str> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let known: Vec<String> = known.iter().map(|name| plain(name)).collect();
    fields.keys().map(AsRef::as_ref).find(|field| !known.contains(&plain(field)))
}

/// A value of our own as a header.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text)
        .expect("invariant: numbers, durations, dates and identifiers are visible ASCII")
}
