//! Why an input line is refused: the codes, and messages that say what to write instead.
//!
//! Codes are those of the OpenAI Batch API where it has one. Finding the fault belongs to `request` and `id`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Endpoint;

/// The kind of fault of a line, a stable word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionCode {
    /// The line is longer than the job allows.
    LineTooLong,
    /// The line is not UTF-8.
    InvalidUtf8,
    /// The line is not JSON.
    InvalidJsonLine,
    /// The line is JSON, but no object.
    NotAnObject,
    /// A field that a line must have is absent.
    MissingRequiredParameter,
    /// A field has the wrong JSON type.
    InvalidType,
    /// A field stands twice in one object.
    DuplicateKey,
    /// A field that the format does not know, in a strict job.
    UnknownField,
    /// The id is empty, out of range or no text.
    InvalidId,
    /// An earlier line has the same id.
    DuplicateId,
    /// The method is not `POST`.
    InvalidMethod,
    /// The url is not the path of an endpoint.
    InvalidUrl,
    /// The url names an endpoint that batches do not support.
    UnsupportedEndpoint,
    /// The url names another endpoint than the job's.
    UrlMismatch,
    /// The body asks for a streamed answer.
    StreamNotSupported,
    /// Neither the line nor the job names a model.
    MissingModel,
    /// The model's name is empty or no text.
    InvalidModel,
}

impl RejectionCode {
    /// The word that stands in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LineTooLong => "line_too_long",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::InvalidJsonLine => "invalid_json_line",
            Self::NotAnObject => "not_an_object",
            Self::MissingRequiredParameter => "missing_required_parameter",
            Self::InvalidType => "invalid_type",
            Self::DuplicateKey => "duplicate_key",
            Self::UnknownField => "unknown_field",
            Self::InvalidId => "invalid_id",
            Self::DuplicateId => "duplicate_id",
            Self::InvalidMethod => "invalid_method",
            Self::InvalidUrl => "invalid_url",
            Self::UnsupportedEndpoint => "unsupported_endpoint",
            Self::UrlMismatch => "url_mismatch",
            Self::StreamNotSupported => "stream_not_supported",
            Self::MissingModel => "missing_model",
            Self::InvalidModel => "invalid_model",
        }
    }
}

impl fmt::Display for RejectionCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Rejection {
    /// The kind of fault.
    pub code: RejectionCode,
    /// What is wrong and what to write instead, for people. Its length is bounded whatever the line holds.
    pub message: String,
}

/// Longest piece of a line that a message quotes, in characters.
const QUOTED: usize = 100;

impl Rejection {
    fn new(code: RejectionCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The line is longer than the job allows.
    pub fn line_too_long(bytes: u64, max_line_bytes: usize) -> Self {
        Self::new(
            RejectionCode::LineTooLong,
            format!(
                "The line has {bytes} bytes, {max_line_bytes} are allowed. Shorten it or raise the job's limit."
            ),
        )
    }

    /// An earlier line, at physical line `first_line_number`, has the same id.
    pub fn duplicate_id(first_line_number: u64) -> Self {
        Self::new(
            RejectionCode::DuplicateId,
            format!("The id is already used by line {first_line_number}. Give each line an id of its own."),
        )
    }

    pub(crate) fn invalid_utf8(valid_bytes: usize) -> Self {
        Self::new(
            RejectionCode::InvalidUtf8,
            format!("The line is not UTF-8 from its byte {} on. Write the file in UTF-8.", valid_bytes + 1),
        )
    }

    /// `error` is what the JSON reader said about the line.
    pub(crate) fn unreadable(error: &serde_json::Error) -> Self {
        if error.is_data() {
            return Self::new(
                RejectionCode::NotAnObject,
                "The line is JSON but not an object. Write one JSON object, from `{` to `}`, on each line.",
            );
        }
        let place = format!(" at line {} column {}", error.line(), error.column());
        let full = error.to_string();
        let fault = full.strip_suffix(&place).unwrap_or(&full);
        Self::new(
            RejectionCode::InvalidJsonLine,
            format!(
                "This line is not parseable as valid JSON: {fault} at byte {}. Write one JSON object, whole, on each \
                 line.",
                error.column()
            ),
        )
    }

    pub(crate) fn missing(name: &str, example: &str) -> Self {
        Self::new(
            RejectionCode::MissingRequiredParameter,
            format!("Missing required parameter: '{name}'. Write for example {example}."),
        )
    }

    pub(crate) fn invalid_type(name: &str, expected: &str, found: &str) -> Self {
        Self::new(
            RejectionCode::InvalidType,
            format!("Invalid type for '{name}': expected {expected}, but got {found} instead."),
        )
    }

    pub(crate) fn duplicate_key(name: &str) -> Self {
        Self::new(
            RejectionCode::DuplicateKey,
            format!("'{name}' stands twice in one object. Keep one of them."),
        )
    }

    pub(crate) fn unknown_field(name: &str, known: &[&str]) -> Self {
        let known = known.join(", ");
        Self::new(
            RejectionCode::UnknownField,
            format!("Unknown field '{}'. Remove it, or turn strict off; known are {known}.", quoted(name)),
        )
    }

    /// `fault` says what is wrong with the id and what to write.
    pub(crate) fn invalid_id(name: &str, fault: &str) -> Self {
        Self::new(RejectionCode::InvalidId, format!("'{name}' {fault}."))
    }

    pub(crate) fn invalid_method(found: &str) -> Self {
        Self::new(
            RejectionCode::InvalidMethod,
            format!("'method' is \"{}\". Write \"POST\" or leave it out.", quoted(found)),
        )
    }

    pub(crate) fn invalid_url(found: &str) -> Self {
        Self::new(
            RejectionCode::InvalidUrl,
            format!(
                "'url' is \"{}\", not the path of an endpoint. Write one of {}, or leave it out.",
                quoted(found),
                Endpoint::paths()
            ),
        )
    }

    pub(crate) fn unsupported_endpoint(found: &str) -> Self {
        Self::new(
            RejectionCode::UnsupportedEndpoint,
            format!("The endpoint {} is not supported. Write one of {}.", quoted(found), Endpoint::paths()),
        )
    }

    pub(crate) fn url_mismatch(found: Endpoint, expected: Endpoint) -> Self {
        Self::new(
            RejectionCode::UrlMismatch,
            format!(
                "'url' is {found} but the job's endpoint is {expected}. Write {expected} or use another job."
            ),
        )
    }

    pub(crate) fn stream_not_supported() -> Self {
        Self::new(
            RejectionCode::StreamNotSupported,
            "'body.stream' is true, and a batch has nobody to stream to. Remove it or write false.",
        )
    }

    pub(crate) fn missing_model() -> Self {
        Self::new(
            RejectionCode::MissingModel,
            "Neither the line nor the job names a model. Name one for the job, or write 'body.model' on OpenAI lines.",
        )
    }

    pub(crate) fn invalid_model() -> Self {
        Self::new(
            RejectionCode::InvalidModel,
            "'body.model' is empty or no text. Write a model's name, or leave it out where the job names one.",
        )
    }
}

/// The beginning of `text`, at most [`QUOTED`] characters.
fn quoted(text: &str) -> &str {
    text.char_indices().nth(QUOTED).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_and_display_use_the_same_word() {
        for word in [
            "line_too_long",
            "invalid_utf8",
            "invalid_json_line",
            "not_an_object",
            "missing_required_parameter",
            "invalid_type",
            "duplicate_key",
            "unknown_field",
            "invalid_id",
            "duplicate_id",
            "invalid_method",
            "invalid_url",
            "unsupported_endpoint",
            "url_mismatch",
            "stream_not_supported",
            "missing_model",
            "invalid_model",
        ] {
            let code: RejectionCode = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert_eq!(code.to_string(), word);
        }
    }

    #[test]
    fn a_message_is_short_however_long_the_value_that_it_quotes() {
        let long = "\u{e9}".repeat(1_000_000);
        for rejection in [Rejection::invalid_url(&long), Rejection::unknown_field(&long, &["a"])] {
            assert!(rejection.message.len() < 500, "{}", rejection.message.len());
        }
    }

    #[test]
    fn a_duplicate_names_the_line_that_has_the_id() {
        let rejection = Rejection::duplicate_id(17);
        assert_eq!(rejection.code.as_str(), "duplicate_id");
        assert!(rejection.message.contains("line 17"));
    }
}
