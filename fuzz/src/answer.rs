//! An answer of a provider: whatever it says, its line gets a disposition that can be acted on and recorded.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use penstock_batchfile::{
    Endpoint, Failure, Format, HttpAnswer, LineName, Ordinal, OutcomeKind, RecordHead, RecordWriter, Success,
    read_record,
};
use penstock_executor::provider::{Answer, Cause, Dialect, Disposition, Reply, classify, in_words};
use penstock_job::spec::ProviderKind;
use penstock_rate::{Hints, Verdict};
use serde_json::value::RawValue;

use crate::bounded;

/// The longest wait that an answer may bring about for one line, and for the whole job.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// One kind of provider for each way to be spoken to.
const KINDS: [ProviderKind; 4] =
    [ProviderKind::OpenAi, ProviderKind::Gemini, ProviderKind::Anthropic, ProviderKind::AzureOpenAi];

/// The line that the records are about.
const LINE: LineName<'_> = LineName { ordinal: Ordinal::new(7), id: None };

/// An answer like one of HTTP: a line with the status, a line per header, an empty line, the body.
pub fn provider_answer(data: &[u8]) {
    let data = bounded(data, 32 << 10);
    for kind in KINDS {
        for endpoint in Endpoint::ALL {
            for format in [Format::Prompts, Format::OpenAi] {
                let dialect = Dialect::new(kind, format, endpoint);
                let Some(answer) = read(dialect, data) else { return };
                assert!(answer.retry_after.is_none_or(|wait| wait <= LONGEST_WAIT));
                are_bounded(answer.hints);
                let outcome = Ok(answer.clone());
                holds(&answer, format, classify(&outcome, dialect));
            }
        }
    }
}

fn read(dialect: Dialect, data: &[u8]) -> Option<Answer> {
    let (status, mut rest) = split_line(data)?;
    let status = StatusCode::from_bytes(status).ok()?;
    let mut headers = HeaderMap::new();
    while let Some((line, behind)) = split_line(rest) {
        rest = behind;
        if line.is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let body = Bytes::copy_from_slice(rest);
    Some(Answer::new(dialect, status, &headers, body, Duration::from_millis(80), now()))
}

/// When every answer came.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)
}

/// What is said about limits never speaks of more than a day.
fn are_bounded(hints: Hints) {
    for hint in [hints.requests, hints.tokens, hints.input_tokens, hints.output_tokens] {
        assert!(hint.reset.is_none_or(|reset| reset <= LONGEST_WAIT), "{hint:?}");
    }
}

fn split_line(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    Some((&data[..end], &data[end + 1..]))
}

fn holds(answer: &Answer, format: Format, disposition: Disposition<'_>) {
    match disposition {
        Disposition::Succeeded(reply) => {
            assert!(answer.status.is_success(), "{} is no success", answer.status);
            succeeded(answer, format, &reply);
        }
        Disposition::Failed(cause) => failed(answer, format, &cause),
        Disposition::Retry { cause, after, verdict } => {
            assert!(after.is_none_or(|wait| wait <= LONGEST_PAUSE));
            assert!(matches!(verdict, Verdict::Lost | Verdict::Overloaded { .. }), "{verdict:?}");
            failed(answer, format, &cause);
        }
        Disposition::Throttled { cause, after, verdict } => {
            assert!(after.is_none_or(|wait| wait <= LONGEST_PAUSE));
            failed(answer, format, &cause);
            match verdict {
                Verdict::Refused { retry_after, hints, .. } => {
                    assert_eq!(retry_after, after);
                    are_bounded(hints);
                }
                Verdict::SlowDown { retry_after } | Verdict::Overloaded { retry_after } => {
                    assert_eq!(retry_after, after);
                }
                other => panic!("{other:?} is no refusal for the load"),
            }
        }
        Disposition::Blocked { resumes, cause, .. } => {
            if let Some(at) = resumes.moment(now()) {
                assert!(at >= now() && in_words(at, now()).ends_with(" UTC"));
            }
            failed(answer, format, &cause);
        }
    }
}

fn succeeded(answer: &Answer, format: Format, reply: &Reply<'_>) {
    let body: &RawValue = serde_json::from_slice(&answer.body).expect("a success is JSON");
    assert!(body.get().starts_with('{'), "a success is an object");
    match format {
        Format::OpenAi => assert_eq!(reply.response.json().get(), body.get(), "a body passes as it came"),
        Format::Prompts => {
            assert!(reply.response.json().get().starts_with('"'), "an answer to a prompt is text");
        }
    }
    let success = Success {
        response: reply.response.json(),
        status_code: answer.status.as_u16(),
        request_id: answer.request_id.as_deref(),
        tokens: reply.tokens,
        latency_ms: 80,
        attempt: 1,
    };
    is_read_back(format, OutcomeKind::Succeeded, |writer, record| writer.succeeded(LINE, &success, record));
}

fn failed(answer: &Answer, format: Format, cause: &Cause) {
    assert!(!cause.code.is_empty() && !cause.message.is_empty());
    assert!(cause.code.chars().count() <= 1_000 && cause.message.chars().count() <= 1_200, "{cause:?}");
    let answer = HttpAnswer {
        status_code: answer.status.as_u16(),
        request_id: answer.request_id.as_deref(),
        body: &answer.body,
    };
    let failure = Failure { code: &cause.code, message: &cause.message, answer: Some(answer), attempts: &[] };
    is_read_back(format, OutcomeKind::Failed, |writer, record| writer.failed(LINE, &failure, record));
}

/// A record is one line, and says what became of its line.
fn is_read_back(format: Format, outcome: OutcomeKind, write: impl FnOnce(&RecordWriter, &mut Vec<u8>)) {
    let mut record = Vec::new();
    write(&RecordWriter::new(format, "0123456789abcdef", 3), &mut record);
    assert_eq!(record.iter().position(|byte| *byte == b'\n'), Some(record.len() - 1), "one line");
    let expected = RecordHead { ordinal: LINE.ordinal, outcome, id: None };
    assert_eq!(read_record(&record, format).ok(), Some(expected));
}
