//! What a record is made from: the line's name, and the answer or the failure.
//!
//! Owns no format: each record takes what it has a place for.

use serde::Serialize;

use crate::{Attempt, Json, Ordinal};

/// Which line a record is about.
#[derive(Debug, Clone, Copy)]
pub struct LineName<'a> {
    /// Its identity inside the system.
    pub ordinal: Ordinal,
    /// Its id's token, see [`RawId::token`](crate::RawId::token). `None` when it could not be read or the input is
    /// lost.
    pub id: Option<Json<'a>>,
}

/// An answer to a line. Each format's record takes from it what it has a place for.
#[derive(Debug, Clone, Copy)]
pub struct Success<'a> {
    /// Prompts: the answer's text, as a JSON string. OpenAI: the answer's body.
    pub response: Json<'a>,
    /// HTTP status of the answer.
    pub status_code: u16,
    /// The provider's name for the request.
    pub request_id: Option<&'a str>,
    /// What the provider counted.
    pub tokens: Tokens,
    /// From sending to the end of the answer, in milliseconds.
    pub latency_ms: u64,
    /// Which attempt succeeded; the first is 1.
    pub attempt: u32,
}

/// Tokens of one request, as far as the provider told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Tokens read.
    pub input: Option<u64>,
    /// Of these, tokens that the provider had cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<u64>,
    /// Tokens written.
    pub output: Option<u64>,
}

/// Why a line failed for good.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// A stable word for programs.
    pub code: &'a str,
    /// For people.
    pub message: &'a str,
    /// The last answer, if one came. An answer that is no JSON is quoted, shortened, at the end of the message.
    pub answer: Option<HttpAnswer<'a>>,
    /// Every attempt, in order.
    pub attempts: &'a [Attempt],
}

/// An HTTP answer as it came.
#[derive(Debug, Clone, Copy)]
pub struct HttpAnswer<'a> {
    /// HTTP status.
    pub status_code: u16,
    /// The provider's name for the request.
    pub request_id: Option<&'a str>,
    /// The body, JSON or not.
    pub body: &'a [u8],
}
