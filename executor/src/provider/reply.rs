//! What an answer says, whatever the dialect in which it came: the text for the record, and the tokens that it used. Pure.
//!
//! Texts are never decoded: what goes into a record is the JSON string token of the answer, byte for byte.

use std::borrow::Cow;

use penstock_batchfile::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An answer that can be recorded.
#[derive(Debug, Clone)]
pub struct Reply<'a> {
    /// Prompts: the answer's text, as a JSON string. OpenAI: the answer's body.
    pub response: Cow<'a, RawValue>,
    /// What the provider counted.
    pub tokens: Tokens,
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

/// One string token of several, `None` of none. A single one is not copied.
pub(super) fn joined<'a>(tokens: &[&'a RawValue]) -> Option<Cow<'a, RawValue>> {
    match tokens {
        [] => None,
        [single] => Some(Cow::Borrowed(*single)),
        several => {
            let inner: String = several.iter().map(|token| unquoted(token)).collect();
            let raw = RawValue::from_string(format!("\"{inner}\""));
            Some(Cow::Owned(
                raw.expect("invariant: string tokens joined inside of their quotes are one string token"),
            ))
        }
    }
}

/// Whether a value is a string.
pub(super) fn is_string(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

/// What stands between the quotes of a string token.
fn unquoted(token: &RawValue) -> &str {
    token.get().strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default()
}
