//! What an answer says, whatever the dialect in which it came: the text for the record, and the tokens that it used. Pure.
//!
//! Texts are never decoded: what goes into a record is the JSON string token of the answer, byte for byte.

use penstock_batchfile::{Json, Tokens};
use serde::Deserialize;
use serde_json::value::RawValue;

/// An answer that can be recorded.
#[derive(Debug, Clone)]
pub struct Reply<'a> {
    /// Prompts: the answer's text, as a JSON string. OpenAI: the answer's body.
    pub response: Response<'a>,
    /// What the provider counted.
    pub tokens: Tokens,
}

/// What a record takes in of an answer.
#[derive(Debug, Clone)]
pub enum Response<'a> {
    /// A part of the answer, as it came.
    AsItCame(Json<'a>),
    /// Several texts of the answer, made one.
    Joined(Box<RawValue>),
}

impl Response<'_> {
    /// As the record takes it.
    pub fn json(&self) -> Json<'_> {
        match self {
            Self::AsItCame(json) => *json,
            Self::Joined(text) => Json::from(&**text),
        }
    }
}

/// Why a body with a status of success is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoReply {
    /// It is no JSON object.
    Invalid,
    /// It is a refusal all the same.
    Refusal,
    /// The provider's filter withheld the answer or its end; the provider's word for why.
    Filtered(String),
    /// It has no text; the provider's word for why the answer ended, where it gives one.
    NoText {
        /// Such as `length`.
        finish: Option<String>,
    },
}

/// Reads the body of an answer, which is an object; an array would be taken for the members in their order.
pub(super) fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, NoReply> {
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(NoReply::Invalid);
    }
    serde_json::from_slice(body).map_err(|_| NoReply::Invalid)
}

/// One string token of several values, of which those that are no strings do not count; `None` of none. A single one is
/// not copied.
pub(super) fn joined<'a>(values: impl IntoIterator<Item = Json<'a>>) -> Option<Response<'a>> {
    let mut strings = values.into_iter().filter_map(|value| Some((value, value.string_content()?)));
    let (single, first) = strings.next()?;
    let Some((_, second)) = strings.next() else { return Some(Response::AsItCame(single)) };
    let rest = strings.map(|(_, content)| content);
    let content: String = [first, second].into_iter().chain(rest).collect();
    let raw = RawValue::from_string(format!("\"{content}\""));
    Some(Response::Joined(
        raw.expect("invariant: string tokens joined inside of their quotes are one string token"),
    ))
}
