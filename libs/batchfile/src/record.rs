//! Writes the record of a line's outcome, in the format of the job's input.
//!
//! Each record is one line of JSON that ends in `\n` and names the line's ordinal. Bodies are copied byte for byte,
//! except that a raw line break, which JSON allows only as white space between tokens, becomes a space: a
//! pretty-printed answer must not break the line. Reading records is `record_head`.

mod shape;

use serde::Serialize;

use self::shape::{OpenAiError, OpenAiErrorCause, OpenAiResponse, PromptError, PromptErrorCause};
use crate::{
    Attempt, Failure, Format, HttpAnswer, Json, LineName, OutcomeKind, Position, Rejection, Success, Undone,
    json::append,
};

/// How much of an answer that is no JSON stands in a message, in characters.
const EXCERPT: usize = 500;

/// Appends the records of one job and epoch to buffers.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    format: Format,
    /// What the `id` of every OpenAI record begins with.
    id_prefix: String,
}

impl RecordWriter {
    /// A writer for the job with this identity (hex digits, of which the first 8 are used) and the epoch that writes.
    /// What is written before any epoch, by validation, has epoch 0.
    pub fn new(format: Format, identity: &str, epoch: u32) -> Self {
        let short: String = identity.chars().take(8).collect();
        Self { format, id_prefix: format!("batch_req_{short}_{epoch}_") }
    }

    /// The record of a line that was answered. Every line of a good job has one, so it is put together from its pieces.
    pub fn succeeded(&self, line: LineName<'_>, success: &Success<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let id = line.id.map_or("null", Json::get);
        let response = success.response.get();
        match self.format {
            Format::Prompts => {
                put(out, &["{\"prompt_id\":", id, ",\"ordinal\":"]);
                append(&line.ordinal, out);
                put(out, &[",\"response\":", response, ",\"tokens\":"]);
                append(&success.tokens, out);
                put(out, &[",\"latency_ms\":"]);
                append(&success.latency_ms, out);
                put(out, &[",\"attempt\":"]);
                append(&success.attempt, out);
                put(out, &["}"]);
            }
            Format::OpenAi => {
                put(out, &["{\"id\":\"", &self.id_prefix]);
                append(&line.ordinal, out);
                put(out, &["\",\"custom_id\":", id, ",\"response\":{\"status_code\":"]);
                append(&success.status_code, out);
                put(out, &[",\"request_id\":"]);
                append(&success.request_id, out);
                put(out, &[",\"body\":", response, "},\"error\":null}"]);
            }
        }
        end_line(start, out);
    }

    /// The record of a line that failed for good.
    pub fn failed(&self, line: LineName<'_>, failure: &Failure<'_>, out: &mut Vec<u8>) {
        let body = failure.answer.and_then(|answer| serde_json::from_slice(answer.body).ok());
        let excerpt = failure.answer.filter(|_| body.is_none()).and_then(|answer| excerpt(answer.body));
        let message = excerpt.map(|excerpt| format!("{}; the answer was: {excerpt}", failure.message));
        let error = ErrorRecord {
            line,
            outcome: OutcomeKind::Failed,
            code: failure.code,
            message: message.as_deref().unwrap_or(failure.message),
            response: failure.answer.map(|HttpAnswer { status_code, request_id, .. }| OpenAiResponse {
                status_code,
                request_id,
                body,
            }),
            attempts: failure.attempts,
            place: None,
        };
        self.error(error, out);
    }

    /// The record of the invalid line at `position`, with its id if [`RawId::find`](crate::RawId::find) finds one.
    pub fn rejected(
        &self,
        position: Position,
        id: Option<Json<'_>>,
        rejection: &Rejection,
        out: &mut Vec<u8>,
    ) {
        let error = ErrorRecord {
            line: LineName { ordinal: position.ordinal, id },
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
        let ErrorRecord { line, outcome, code, message, response, attempts, place } = error;
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

fn append_line(record: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    append(record, out);
    end_line(start, out);
}

fn put(out: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Ends the record that begins at `start`.
fn end_line(start: usize, out: &mut Vec<u8>) {
    flatten(&mut out[start..]);
    out.push(b'\n');
}

/// Turns raw line breaks into spaces. In a record they stand only between the tokens of a body: everywhere else,
/// strings included, JSON writes them as escapes.
fn flatten(record: &mut [u8]) {
    for byte in record {
        *byte = if matches!(*byte, b'\n' | b'\r') { b' ' } else { *byte };
    }
}

/// The beginning of an answer that is no JSON, `None` when there is nothing to show.
fn excerpt(body: &[u8]) -> Option<String> {
    let start = &body[..body.len().min(4 * EXCERPT)];
    let text: String = String::from_utf8_lossy(start).trim().chars().take(EXCERPT).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ordinal, Tokens};

    const IDENTITY: &str = "0123456789abcdef";

    fn token(text: &str) -> Json<'_> {
        Json::parse(text).unwrap()
    }

    fn written(format: Format, write: impl FnOnce(&RecordWriter, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&RecordWriter::new(format, IDENTITY, 3), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn line(id: Json<'_>) -> LineName<'_> {
        LineName { ordinal: Ordinal::new(6), id: Some(id) }
    }

    fn success(response: Json<'_>) -> Success<'_> {
        Success {
            response,
            status_code: 200,
            request_id: Some("req_1"),
            tokens: Tokens { input: Some(9), ..Tokens::default() },
            latency_ms: 812,
            attempt: 1,
        }
    }

    fn attempts() -> [Attempt; 1] {
        [Attempt { at_ms: 1, status: Some(400), code: "bad_request".to_owned(), latency_ms: 5 }]
    }

    #[test]
    fn a_prompt_that_was_answered_has_text_tokens_and_timing() {
        let record = written(Format::Prompts, |writer, out| {
            writer.succeeded(line(token("7")), &success(token(r#""the \u0074ext""#)), out);
        });
        let expected = concat!(
            r#"{"prompt_id":7,"ordinal":6,"response":"the \u0074ext","tokens":{"input":9,"output":null},"#,
            r#""latency_ms":812,"attempt":1}"#,
            "\n"
        );
        assert_eq!(record, expected);
    }

    #[test]
    fn an_openai_line_that_was_answered_has_the_body_as_it_came_on_one_line() {
        let record = written(Format::OpenAi, |writer, out| {
            writer.succeeded(
                line(token(r#""\u0061""#)),
                &success(token("{\r\n  \"a\": 1.50e0,\n\"b\":\"\\n\"}")),
                out,
            );
        });
        let expected = concat!(
            r#"{"id":"batch_req_01234567_3_6","custom_id":"\u0061","response":{"status_code":200,"#,
            r#""request_id":"req_1","body":{    "a": 1.50e0, "b":"\n"}},"error":null}"#,
            "\n"
        );
        assert_eq!(record, expected);
    }

    fn failed(format: Format, id: &str, body: &[u8]) -> String {
        let answer = HttpAnswer { status_code: 400, request_id: None, body };
        let attempts = attempts();
        let failure =
            Failure { code: "bad_request", message: "refused", answer: Some(answer), attempts: &attempts };
        written(format, |writer, out| {
            writer.failed(line(token(id)), &failure, out);
        })
    }

    #[test]
    fn a_failure_keeps_an_answer_that_is_json() {
        let expected = concat!(
            r#"{"id":"batch_req_01234567_3_6","custom_id":"a","response":{"status_code":400,"request_id":null,"#,
            r#""body":{"error":{} }},"error":{"code":"bad_request","message":"refused"},"outcome":"failed","#,
            r#""ordinal":6,"attempts":[{"at_ms":1,"status":400,"code":"bad_request","latency_ms":5}]}"#,
            "\n"
        );
        assert_eq!(failed(Format::OpenAi, "\"a\"", b" {\"error\":{} }\n"), expected);
    }

    #[test]
    fn a_failure_quotes_an_answer_that_is_no_json() {
        let record = failed(Format::OpenAi, "\"a\"", b"<html>\n\xff");
        assert!(
            record.contains(r#""response":{"status_code":400,"request_id":null,"body":null}"#),
            "{record}"
        );
        assert!(record.contains("\"message\":\"refused; the answer was: <html>\\n\u{fffd}\""), "{record}");
        assert!(failed(Format::OpenAi, "\"a\"", b" ").contains(r#""message":"refused""#));
        assert!(failed(Format::OpenAi, "\"a\"", "x".repeat(1_000_000).as_bytes()).len() < 1000);
    }

    #[test]
    fn a_prompt_that_failed_has_status_and_attempts() {
        let expected = concat!(
            r#"{"prompt_id":7,"ordinal":6,"outcome":"failed","error":{"code":"bad_request","message":"refused","#,
            r#""status":400},"attempts":[{"at_ms":1,"status":400,"code":"bad_request","latency_ms":5}]}"#,
            "\n"
        );
        assert_eq!(failed(Format::Prompts, "7", b"{}"), expected);
    }

    #[test]
    fn a_rejected_line_is_named_by_number_and_offset() {
        let position = Position { ordinal: Ordinal::new(6), byte_offset: 1234, line_number: 9 };
        let rejection = Rejection::duplicate_id(2);
        let record = written(Format::Prompts, |writer, out| {
            writer.rejected(position, None, &rejection, out);
        });
        let expected = concat!(
            r#"{"prompt_id":null,"ordinal":6,"outcome":"rejected","error":{"code":"duplicate_id","#,
            r#""message":"The id is already used by line 2. Give each line an id of its own.","status":null},"#,
            r#""attempts":[],"line_number":9,"byte_offset":1234}"#,
            "\n"
        );
        assert_eq!(record, expected);
        let record = written(Format::OpenAi, |writer, out| {
            writer.rejected(position, None, &rejection, out);
        });
        assert!(record.ends_with("\"attempts\":[],\"line_number\":9,\"byte_offset\":1234}\n"), "{record}");
    }

    #[test]
    fn an_undone_line_says_why_the_job_ended() {
        let record = written(Format::OpenAi, |writer, out| {
            writer.undone(line(token("\"a\"")), Undone::Cancelled, "The job was cancelled.", &[], out);
        });
        let expected = concat!(
            r#"{"id":"batch_req_01234567_3_6","custom_id":"a","response":null,"#,
            r#""error":{"code":"batch_cancelled","message":"The job was cancelled."},"outcome":"cancelled","#,
            r#""ordinal":6,"attempts":[]}"#,
            "\n"
        );
        assert_eq!(record, expected);
    }
}
