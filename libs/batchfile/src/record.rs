//! Writes the record of a line's outcome, in the format of the job's input.
//!
//! Each record is one line of JSON that ends in `\n` and names the line's ordinal. Bodies are copied byte for byte,
//! except that a raw line break, which JSON allows only as white space between tokens, becomes a space: a
//! pretty-printed answer must not break the line. Reading records is `record_head`.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Attempt, Format, Ordinal, OutcomeKind, Position, Rejection, Undone, json::append};

/// How much of an answer that is no JSON stands in a message, in characters.
const EXCERPT: usize = 500;

/// Appends the records of one job and epoch to buffers.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    format: Format,
    /// What the `id` of every OpenAI record begins with.
    id_prefix: String,
}

/// Which line a record is about.
#[derive(Debug, Clone, Copy)]
pub struct LineName<'a> {
    /// Its identity inside the system.
    pub ordinal: Ordinal,
    /// Its id's token, see [`RawId::token`](crate::RawId::token). `None` when it could not be read or the input is
    /// lost.
    pub id: Option<&'a RawValue>,
}

/// An answer to a line. Each format's record takes from it what it has a place for.
#[derive(Debug, Clone, Copy)]
pub struct Success<'a> {
    /// Prompts: the answer's text, as a JSON string. OpenAI: the answer's body.
    pub response: &'a RawValue,
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

impl RecordWriter {
    /// A writer for the job with this identity (hex digits, of which the first 8 are used) and the epoch that writes.
    /// What is written before any epoch, by validation, has epoch 0.
    pub fn new(format: Format, identity: &str, epoch: u32) -> Self {
        let short: String = identity.chars().take(8).collect();
        Self {
            format,
            id_prefix: format!("batch_req_{short}_{epoch}_"),
        }
    }

    /// The record of a line that was answered.
    pub fn succeeded(&self, line: LineName<'_>, success: &Success<'_>, out: &mut Vec<u8>) {
        match self.format {
            Format::Prompts => append_line(
                &PromptSuccess {
                    prompt_id: line.id,
                    ordinal: line.ordinal,
                    response: success.response,
                    tokens: success.tokens,
                    latency_ms: success.latency_ms,
                    attempt: success.attempt,
                },
                out,
            ),
            Format::OpenAi => append_line(
                &OpenAiSuccess {
                    id: format_args!("{}{}", self.id_prefix, line.ordinal),
                    custom_id: line.id,
                    response: OpenAiResponse {
                        status_code: success.status_code,
                        request_id: success.request_id,
                        body: Some(success.response),
                    },
                    error: (),
                },
                out,
            ),
        }
    }

    /// The record of a line that failed for good.
    pub fn failed(&self, line: LineName<'_>, failure: &Failure<'_>, out: &mut Vec<u8>) {
        let body = failure
            .answer
            .and_then(|answer| serde_json::from_slice(answer.body).ok());
        let excerpt = failure
            .answer
            .filter(|_| body.is_none())
            .and_then(|answer| excerpt(answer.body));
        let message = excerpt.map(|excerpt| format!("{}; the answer was: {excerpt}", failure.message));
        let error = ErrorRecord {
            line,
            outcome: OutcomeKind::Failed,
            code: failure.code,
            message: message.as_deref().unwrap_or(failure.message),
            response: failure.answer.map(
                |HttpAnswer {
                     status_code,
                     request_id,
                     ..
                 }| OpenAiResponse {
                    status_code,
                    request_id,
                    body,
                },
            ),
            attempts: failure.attempts,
            place: None,
        };
        self.error(error, out);
    }

    /// The record of the invalid line at `position`, with its id if [`RawId::find`](crate::RawId::find) finds one.
    pub fn rejected(
        &self,
        position: Position,
        id: Option<&RawValue>,
        rejection: &Rejection,
        out: &mut Vec<u8>,
    ) {
        let error = ErrorRecord {
            line: LineName {
                ordinal: position.ordinal,
                id,
            },
            outcome: OutcomeKind::Rejected,
            code: rejection.code.as_str(),
            message: &rejection.message,
            response: None,
            attempts: &[],
            place: Some(position),
        };
        self.error(error, out);
    }

    /// The record of a line that the early end of the job left undone; `message` says why the job ended.
    pub fn undone(
        &self,
        line: LineName<'_>,
        undone: Undone,
        message: &str,
        attempts: &[Attempt],
        out: &mut Vec<u8>,
    ) {
        let error = ErrorRecord {
            line,
            outcome: undone.into(),
            code: undone.code(),
            message,
            response: None,
            attempts,
            place: None,
        };
        self.error(error, out);
    }

    fn error(&self, error: ErrorRecord<'_>, out: &mut Vec<u8>) {
        let ErrorRecord {
            line,
            outcome,
            code,
            message,
            response,
            attempts,
            place,
        } = error;
        let line_number = place.map(|position| position.line_number);
        let byte_offset = place.map(|position| position.byte_offset);
        match self.format {
            Format::Prompts => append_line(
                &PromptError {
                    prompt_id: line.id,
                    ordinal: line.ordinal,
                    outcome,
                    error: PromptErrorCause {
                        code,
                        message,
                        status: response.map(|response| response.status_code),
                    },
                    attempts,
                    line_number,
                    byte_offset,
                },
                out,
            ),
            Format::OpenAi => append_line(
                &OpenAiError {
                    id: format_args!("{}{}", self.id_prefix, line.ordinal),
                    custom_id: line.id,
                    response,
                    error: OpenAiErrorCause { code, message },
                    outcome,
                    ordinal: line.ordinal,
                    attempts,
                    line_number,
                    byte_offset,
                },
                out,
            ),
        }
    }
}

/// What the records of all outcomes but success are made of.
struct ErrorRecord<'a> {
    line: LineName<'a>,
    outcome: OutcomeKind,
    code: &'a str,
    message: &'a str,
    response: Option<OpenAiResponse<'a>>,
    attempts: &'a [Attempt],
    place: Option<Position>,
}

#[derive(Serialize)]
struct PromptSuccess<'a> {
    prompt_id: Option<&'a RawValue>,
    ordinal: Ordinal,
    response: &'a RawValue,
    tokens: Tokens,
    latency_ms: u64,
    attempt: u32,
}

#[derive(Serialize)]
struct PromptError<'a> {
    prompt_id: Option<&'a RawValue>,
    ordinal: Ordinal,
    outcome: OutcomeKind,
    error: PromptErrorCause<'a>,
    attempts: &'a [Attempt],
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_offset: Option<u64>,
}

#[derive(Serialize)]
struct PromptErrorCause<'a> {
    code: &'a str,
    message: &'a str,
    status: Option<u16>,
}

#[derive(Serialize)]
struct OpenAiSuccess<'a> {
    id: fmt::Arguments<'a>,
    custom_id: Option<&'a RawValue>,
    response: OpenAiResponse<'a>,
    /// Always `null`.
    error: (),
}

#[derive(Serialize)]
struct OpenAiError<'a> {
    id: fmt::Arguments<'a>,
    custom_id: Option<&'a RawValue>,
    response: Option<OpenAiResponse<'a>>,
    error: OpenAiErrorCause<'a>,
    outcome: OutcomeKind,
    ordinal: Ordinal,
    attempts: &'a [Attempt],
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte_offset: Option<u64>,
}

#[derive(Serialize)]
struct OpenAiErrorCause<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct OpenAiResponse<'a> {
    status_code: u16,
    request_id: Option<&'a str>,
    body: Option<&'a RawValue>,
}

fn append_line(record: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    append(record, out);
    flatten(&mut out[start..]);
    out.push(b'\n');
}

/// Turns raw line breaks into spaces. In a record they stand only between the tokens of a body: everywhere else,
/// strings included, JSON writes them as escapes.
fn flatten(record: &mut [u8]) {
    for byte in record {
        *byte = if matches!(*byte, b'\n' | b'\r') {
            b' '
        } else {
            *byte
        };
    }
}

/// The beginning of an answer that is no JSON, `None` when there is nothing to show.
fn excerpt(body: &[u8]) -> Option<String> {
    let start = &body[..body.len().min(4 * EXCERPT)];
    let text: String = String::from_utf8_lossy(start)
        .trim()
        .chars()
        .take(EXCERPT)
        .collect();
    (!text.is_empty()).then_some(text)
}
