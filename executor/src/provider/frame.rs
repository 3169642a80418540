//! What stands around a prompt in the body of a request. Pure.
//!
//! A dialect makes one frame for a job; each prompt is put into it as its own JSON string token, which is never decoded.

use bytes::Bytes;
use serde_json::{Map, Value};

/// What stands around a prompt's token.
#[derive(Debug)]
pub(super) struct Frame {
    before: String,
    /// Whether `before` ends within the string that the prompt continues.
    is_open: bool,
    after: String,
}

impl Frame {
    /// A frame in which the prompt is a string of its own.
    pub(super) fn around(before: String, after: String) -> Self {
        Self { before, is_open: false, after }
    }

    /// A frame whose `before` ends with the beginning of a string that the prompt continues.
    pub(super) fn continued(before: String, after: String) -> Self {
        Self { before, is_open: true, after }
    }

    /// The body for a prompt, given as its JSON string token.
    pub(super) fn with(&self, prompt: &str) -> Bytes {
        let token = if self.is_open { prompt.strip_prefix('"').unwrap_or(prompt) } else { prompt };
        [self.before.as_str(), token, self.after.as_str()].concat().into()
    }
}

/// A text as JSON.
pub(super) fn json(text: &str) -> String {
    serde_json::to_string(text).expect("invariant: a string has a JSON form")
}

/// The end of an object that has members already: these ones and the closing brace.
pub(super) fn closed_with(members: Map<String, Value>) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    let object = Value::Object(members).to_string();
    format!("{comma}{}", object.strip_prefix('{').unwrap_or(&object))
}
