//! Reads back what a record says about its line, and that the record is whole.

use thiserror::Error;

use crate::{Format, Json, Ordinal, OutcomeKind, members::Members};

/// What a record says about its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHead<'a> {
    /// Which line it is.
    pub ordinal: Ordinal,
    /// What became of it.
    pub outcome: OutcomeKind,
    /// The raw token of the line's id, `None` when none was known.
    pub id: Option<&'a str>,
}

/// Why a line of a part is no record. A part with such a line is damaged.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Bytes that are no text.
    #[error("read the record as text: it is not UTF-8, so the part is damaged")]
    Utf8(#[from] std::str::Utf8Error),
    /// Torn or damaged.
    #[error("read the record as a JSON object, so the part is damaged: {0}")]
    Json(#[from] serde_json::Error),
    /// A member is absent, stands twice, or has no sense.
    #[error(
        "read `{0}` of the record: it is absent, double or malformed, so the part is damaged or of another job"
    )]
    Member(&'static str),
}

/// Reads one record; its `\n` may be there or not. All of the line must be well-formed JSON.
pub fn read_record(line: &[u8], format: Format) -> Result<RecordHead<'_>, RecordError> {
    let text = str::from_utf8(line)?;
    match format {
        Format::Prompts => {
            let [id, ordinal, outcome, response] =
                members(text, &["prompt_id", "ordinal", "outcome", "response"])?;
            let ordinal = ordinal.and_then(number).ok_or(RecordError::Member("ordinal"))?;
            head(ordinal, id, Format::Prompts, outcome, response)
        }
        Format::OpenAi => {
            let [name, id, outcome, ordinal, response] =
                members(text, &["id", "custom_id", "outcome", "ordinal", "response"])?;
            let named = name.and_then(ordinal_in_name).ok_or(RecordError::Member("id"))?;
            match (outcome, ordinal) {
                (None, None) => {}
                (Some(_), Some(ordinal)) if number(ordinal) == Some(named) => {}
                _ => return Err(RecordError::Member("ordinal")),
            }
            head(named, id, Format::OpenAi, outcome, response)
        }
    }
}

/// Reads one record whose bytes are known to be those that a [`RecordWriter`](crate::RecordWriter) wrote: the caller
/// compares their checksum with the one taken when they were written. What stands behind the head is then not parsed
/// again. Whatever does not begin as the writer begins is read by [`read_record`].
pub fn read_written_record(line: &[u8], format: Format) -> Result<RecordHead<'_>, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let head = match format {
        Format::Prompts => written_prompt(line),
        Format::OpenAi => written_openai(line),
    };
    head.map_or_else(|| read_record(line, format), Ok)
}

/// `{"prompt_id":7,"ordinal":6,"response":`
fn written_prompt(line: &[u8]) -> Option<RecordHead<'_>> {
    let (id, rest) = token(line.strip_prefix(br#"{"prompt_id":"#)?)?;
    let (ordinal, rest) = token(rest.strip_prefix(br#","ordinal":"#)?)?;
    let is_success = rest.starts_with(br#","response":"#);
    is_success.then_some(succeeded(ordinal.parse().ok()?, id))
}

/// `{"id":"batch_req_<identity>_<epoch>_6","custom_id":"a","response":` and, at the end, `,"error":null}`
fn written_openai(line: &[u8]) -> Option<RecordHead<'_>> {
    let (name, rest) = token(line.strip_prefix(br#"{"id":"#)?)?;
    let (_, ordinal) = name.strip_prefix("\"batch_req_")?.strip_suffix('"')?.rsplit_once('_')?;
    let (id, rest) = token(rest.strip_prefix(br#","custom_id":"#)?)?;
    let is_success = rest.starts_with(br#","response":"#) && rest.ends_with(br#","error":null}"#);
    is_success.then_some(succeeded(ordinal.parse().ok()?, id))
}

fn succeeded(ordinal: u32, id: &str) -> RecordHead<'_> {
    let id = Some(id).filter(|id| *id != "null");
    RecordHead { ordinal: Ordinal::new(ordinal), outcome: OutcomeKind::Succeeded, id }
}

/// A string with its quotes, or what comes before the next comma; and what follows.
fn token(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = if text.first() == Some(&b'"') {
        let mut at = 1;
        loop {
            at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
            if text[at] == b'"' {
                break at + 1;
            }
            at += 2;
        }
    } else {
        memchr::memchr(b',', text)?
    };
    let (token, rest) = text.split_at(end);
    Some((str::from_utf8(token).ok()?, rest))
}

/// Only successes are without `outcome`; they have a response instead.
fn head<'a>(
    ordinal: Ordinal,
    id: Option<Json<'a>>,
    format: Format,
    outcome: Option<Json<'_>>,
    response: Option<Json<'_>>,
) -> Result<RecordHead<'a>, RecordError> {
    let id = id.ok_or(RecordError::Member(format.id_name()))?;
    let outcome = match (outcome, response) {
        (None, Some(_)) => OutcomeKind::Succeeded,
        (None, None) => return Err(RecordError::Member("response")),
        (Some(outcome), _) => match serde_json::from_str(outcome.get()) {
            Ok(OutcomeKind::Succeeded) | Err(_) => return Err(RecordError::Member("outcome")),
            Ok(outcome) => outcome,
        },
    };
    Ok(RecordHead { ordinal, outcome, id: Some(id.get()).filter(|id| *id != "null") })
}

fn members<'a, const N: usize>(
    text: &'a str,
    names: &'static [&'static str; N],
) -> Result<[Option<Json<'a>>; N], RecordError> {
    let members = Members::read(text, names)?;
    match members.duplicate {
        Some(name) => Err(RecordError::Member(name)),
        None => Ok(members.values),
    }
}

fn number(value: Json<'_>) -> Option<Ordinal> {
    value.get().parse().ok().map(Ordinal::new)
}

/// The ordinal at the end of `batch_req_<identity>_<epoch>_<ordinal>`.
fn ordinal_in_name(name: Json<'_>) -> Option<Ordinal> {
    let (_, ordinal) = name.string_content()?.strip_prefix("batch_req_")?.rsplit_once('_')?;
    ordinal.parse().ok().map(Ordinal::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Failure, HttpAnswer, Json, LineName, Position, RecordWriter, Rejection, Success, Tokens, Undone,
    };

    fn prompts(line: &str) -> Result<RecordHead<'_>, RecordError> {
        read_record(line.as_bytes(), Format::Prompts)
    }

    fn openai(line: &str) -> Result<RecordHead<'_>, RecordError> {
        read_record(line.as_bytes(), Format::OpenAi)
    }

    #[test]
    fn a_record_that_lacks_what_its_outcome_needs_is_refused() {
        for (line, member) in [
            (r#"{"ordinal":6,"response":"a"}"#, "prompt_id"),
            (r#"{"prompt_id":7,"response":"a"}"#, "ordinal"),
            (r#"{"prompt_id":7,"ordinal":4294967296,"response":"a"}"#, "ordinal"),
            (r#"{"prompt_id":7,"ordinal":6}"#, "response"),
            (r#"{"prompt_id":7,"ordinal":6,"outcome":"lost"}"#, "outcome"),
            (r#"{"prompt_id":7,"ordinal":6,"outcome":"succeeded"}"#, "outcome"),
            (r#"{"prompt_id":7,"ordinal":6,"ordinal":6,"response":"a"}"#, "ordinal"),
        ] {
            assert!(matches!(prompts(line), Err(RecordError::Member(found)) if found == member), "{line}");
        }
        for (line, member) in [
            (r#"{"id":"batch_req_0_1_x","custom_id":"a","response":{}}"#, "id"),
            (r#"{"id":"batch_req_0_1_6","response":{}}"#, "custom_id"),
            (r#"{"id":"batch_req_0_1_6","custom_id":"a","outcome":"failed"}"#, "ordinal"),
            (r#"{"id":"batch_req_0_1_6","custom_id":"a","outcome":"failed","ordinal":7}"#, "ordinal"),
        ] {
            assert!(matches!(openai(line), Err(RecordError::Member(found)) if found == member), "{line}");
        }
    }

    #[test]
    fn a_record_that_begins_as_no_writer_begins_is_read_whole() {
        for (line, format) in [
            (r#"{"ordinal":6,"prompt_id":7,"response":"a"}"#, Format::Prompts),
            (r#"{ "prompt_id":7,"ordinal":6,"response":"a"}"#, Format::Prompts),
            (r#"{"id":"batch_req_0_1_6","custom_id":"a","error":null,"response":{}}"#, Format::OpenAi),
        ] {
            let read = read_written_record(line.as_bytes(), format).unwrap();
            assert_eq!(read, read_record(line.as_bytes(), format).unwrap(), "{line}");
        }
        for line in [r#"{"prompt_id":"a"#, r#"{"prompt_id":"a\"#, r#"{"prompt_id":7"#, ""] {
            assert!(read_written_record(line.as_bytes(), Format::Prompts).is_err(), "{line}");
        }
    }

    #[test]
    fn a_record_without_an_id_is_read() {
        let head = prompts(r#"{"prompt_id":null,"ordinal":6,"outcome":"rejected"}"#).unwrap();
        assert_eq!(head, RecordHead { ordinal: Ordinal::new(6), outcome: OutcomeKind::Rejected, id: None });
    }

    fn any_format() -> impl Strategy<Value = Format> {
        prop_oneof![Just(Format::Prompts), Just(Format::OpenAi)]
    }

    fn written(
        format: Format,
        line: LineName<'_>,
        outcome: OutcomeKind,
        text: &str,
        request_id: Option<&str>,
    ) -> Vec<u8> {
        let writer = RecordWriter::new(format, "0123456789abcdef", 1);
        let mut out = Vec::new();
        let undone = |undone: Undone, out: &mut Vec<u8>| writer.undone(line, undone, text, &[], out);
        match outcome {
            OutcomeKind::Succeeded => {
                let response = serde_json::value::to_raw_value(&[text]).unwrap();
                let success = Success {
                    response: Json::from(&*response),
                    status_code: 200,
                    request_id,
                    tokens: Tokens::default(),
                    latency_ms: 1,
                    attempt: 1,
                };
                writer.succeeded(line, &success, &mut out);
            }
            OutcomeKind::Failed => {
                let answer = HttpAnswer { status_code: 500, request_id, body: text.as_bytes() };
                let failure = Failure { code: "failed", message: text, answer: Some(answer), attempts: &[] };
                writer.failed(line, &failure, &mut out);
            }
            OutcomeKind::Rejected => {
                let position = Position { ordinal: line.ordinal, ..Position::START };
                writer.rejected(position, line.id, &Rejection::duplicate_id(1), &mut out);
            }
            OutcomeKind::Expired => undone(Undone::Expired, &mut out),
            OutcomeKind::Cancelled => undone(Undone::Cancelled, &mut out),
            OutcomeKind::Abandoned => undone(Undone::Abandoned, &mut out),
        }
        out
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_a_torn_record_never_is(
            format in any_format(),
            ordinal: u32,
            id in prop::option::of(".{1,9}"),
            outcome in prop::sample::select(&OutcomeKind::ALL),
            text in prop_oneof![any::<String>(), Just("{\r\n \"a\": [\n1]}\n".to_owned())],
            request_id in prop::option::of(".{0,9}"),
            cut in any::<prop::sample::Index>(),
        ) {
            let id = id.map(|id| serde_json::value::to_raw_value(&id).unwrap());
            let line = LineName { ordinal: Ordinal::new(ordinal), id: id.as_deref().map(Json::from) };
            let record = written(format, line, outcome, &text, request_id.as_deref());
            prop_assert_eq!(record.iter().position(|byte| *byte == b'\n'), Some(record.len() - 1));
            let head = RecordHead { ordinal: line.ordinal, outcome, id: line.id.map(Json::get) };
            prop_assert_eq!(read_record(&record, format).unwrap(), head);
            prop_assert_eq!(read_written_record(&record, format).unwrap(), head);
            let torn = &record[..cut.index(record.len() - 1)];
            prop_assert!(read_record(torn, format).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_no_record(line in prop::collection::vec(any::<u8>(), 0..60), format in any_format()) {
            prop_assert!(read_record(&line, format).is_err());
        }
    }
}
