//! One line of an input: what validation lets through can be sent and recorded, and what it refuses it can name.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use penstock_batchfile::{
    Affinity, Body, DecodedId, Endpoint, Format, Json, LineName, Ordinal, OutcomeKind, Position, RawId,
    RecordHead, RecordWriter, Rejection, RejectionCode, Request, Rules, SYSTEM_PROMPT_PREFIX_BYTES, Undone,
    parse, parse_validated, read_record, splice_model,
};
use penstock_executor::provider::Provider;
use penstock_job::{
    JobSpec,
    spec::{CanonicalInput, ProviderKind},
};
use serde_json::{Map, Value, value::RawValue};

use crate::bounded;

/// The job's model, where it has one.
const MODEL: &str = "model \"of\" the job";

/// The line that the records are about.
const ORDINAL: Ordinal = Ordinal::new(7);

/// A job, as far as it matters for one line.
struct Job {
    rules: Rules,
    provider: Provider,
}

/// Jobs of both formats, with a model and without.
static JOBS: LazyLock<Vec<Job>> = LazyLock::new(|| {
    [
        (Format::Prompts, Endpoint::ChatCompletions, true),
        (Format::Prompts, Endpoint::Completions, true),
        (Format::OpenAi, Endpoint::ChatCompletions, true),
        (Format::OpenAi, Endpoint::ChatCompletions, false),
        (Format::OpenAi, Endpoint::Responses, true),
        (Format::OpenAi, Endpoint::Embeddings, false),
    ]
    .map(|(format, endpoint, has_model)| job(format, endpoint, has_model))
    .into()
});

fn job(format: Format, endpoint: Endpoint, has_model: bool) -> Job {
    let mut spec = JobSpec {
        model: has_model.then(|| MODEL.to_owned()),
        endpoint: Some(endpoint),
        system_prompt: (format == Format::Prompts).then(|| "Be \"brief\".".to_owned()),
        ..JobSpec::default()
    };
    spec.provider.kind = ProviderKind::Simulated;
    spec.provider.base_url = Some("http://127.0.0.1:9".to_owned());
    let input = CanonicalInput { uri: "/in.jsonl".to_owned(), generation: "1-1".to_owned() };
    let canonical = spec.canonical(input, format).expect("the job makes sense");
    let provider = Provider::connect(&canonical, &spec.provider, Duration::from_secs(1), 1);
    Job {
        rules: Rules { format, endpoint, has_model, strict: false },
        provider: provider.expect("no key and no certificate is read"),
    }
}

/// The bytes up to the first newline are the line.
pub fn line_validation(data: &[u8]) {
    let line = bounded(data, 16 << 10).split(|byte| *byte == b'\n').next().unwrap_or_default();
    for job in JOBS.iter() {
        let lenient = parse(line, &job.rules);
        let strict = parse(line, &Rules { strict: true, ..job.rules });
        match (&lenient, &strict) {
            (Ok(lenient), Ok(strict)) => {
                assert_eq!((lenient.id.raw(), token(lenient)), (strict.id.raw(), token(strict)));
            }
            (Ok(_), Err(strict)) => assert_eq!(strict.code, RejectionCode::UnknownField),
            (Err(_), Ok(_)) => panic!("strict lets through what is refused otherwise"),
            (Err(lenient), Err(strict)) => {
                assert!(strict.code == lenient.code || strict.code == RejectionCode::UnknownField);
            }
        }
        match lenient {
            Ok(request) => accepted(line, &request, job),
            Err(rejection) => refused(line, &rejection, job.rules),
        }
    }
}

fn token<'a>(request: &Request<'a>) -> &'a str {
    match request.body {
        Body::Prompt(token) | Body::OpenAi(token) => token,
    }
}

fn accepted(line: &[u8], request: &Request<'_>, job: &Job) {
    let text = str::from_utf8(line).expect("an accepted line is text");
    let id = request.id.raw();
    assert!(text.contains(id) && text.contains(token(request)), "id and body are copied as they stand");
    let found = RawId::find(line, job.rules.format).expect("the id of an accepted line is found");
    assert_eq!((found.raw(), found.decoded()), (id, request.id.decoded()));
    match request.id.decoded() {
        DecodedId::Integer(integer) => assert_eq!(id.parse(), Ok(*integer)),
        DecodedId::Text(text) => {
            assert_eq!(serde_json::from_str::<String>(id).ok().as_deref(), Some(&**text));
        }
    }
    recorded(line, request.id.token(), job.rules.format);
    sent(line, request, job);
    let again = parse_validated(line, &job.rules).expect("an accepted line can be read again");
    assert_eq!(format!("{again:?}"), format!("{request:?}"), "the second reader agrees with the first");
    let affinity = Affinity::of(line, &job.rules);
    assert_eq!(affinity.model, request.model, "a line is sorted by the model that it names");
    assert!(affinity.system_prompt.is_none_or(|prompt| prompt.len() <= SYSTEM_PROMPT_PREFIX_BYTES));
    if let (Body::OpenAi(body), None) = (request.body, &request.model) {
        spliced(body);
    }
}

/// The record of a line carries its id as it stands in the line.
fn recorded(line: &[u8], id: Json<'_>, format: Format) {
    let writer = RecordWriter::new(format, "0123456789abcdef", 3);
    let name = LineName { ordinal: ORDINAL, id: Some(id) };
    let mut record = Vec::new();
    writer.undone(name, Undone::Expired, &String::from_utf8_lossy(line), &[], &mut record);
    let expected = RecordHead { ordinal: ORDINAL, outcome: OutcomeKind::Expired, id: Some(id.get()) };
    assert_eq!(read_record(&record, format).ok(), Some(expected));
}

/// The executor sends what validation accepted: a JSON object that names the model and holds what was asked.
fn sent(line: &[u8], request: &Request<'_>, job: &Job) {
    let prepared = job.provider.prepare(&Bytes::copy_from_slice(line)).expect("an accepted line can be sent");
    let body = str::from_utf8(&prepared.body).expect("a body is text");
    // Nesting deeper than the parser of values follows is not compared.
    if let Ok(members) = serde_json::from_str::<Map<String, Value>>(body) {
        assert_eq!(members["model"], request.model.as_deref().unwrap_or(MODEL));
    }
    assert!(serde_json::from_str::<&RawValue>(body).is_ok_and(|body| body.get().starts_with('{')), "{body}");
    let asked = token(request);
    match request.body {
        Body::OpenAi(_) if request.model.is_some() => assert_eq!(body, asked),
        // Behind the opening brace or quote, which a system prompt or the model may stand before.
        Body::OpenAi(_) | Body::Prompt(_) => assert!(body.contains(&asked[1..]), "{body}"),
    }
}

/// A model that is put into a body is its only change.
fn spliced(body: &str) {
    let mut bytes = Vec::new();
    splice_model(body, MODEL, &mut bytes);
    // Nesting deeper than the parser of values follows is not compared.
    let Ok(before) = serde_json::from_str::<Map<String, Value>>(body) else { return };
    let mut after: Map<String, Value> = serde_json::from_slice(&bytes).expect("still an object");
    assert_eq!(after.remove("model"), Some(MODEL.into()));
    assert_eq!(after, before);
}

/// A refused line has a short reason, and a record that carries its id where that can be read.
fn refused(line: &[u8], rejection: &Rejection, rules: Rules) {
    assert!(!rejection.message.is_empty() && rejection.message.len() < 1024, "{}", rejection.message);
    let id = RawId::find(line, rules.format);
    let id = id.as_ref().map(RawId::token);
    let position = Position { ordinal: ORDINAL, ..Position::START };
    let mut record = Vec::new();
    RecordWriter::new(rules.format, "", 0).rejected(position, id, rejection, &mut record);
    let expected = RecordHead { ordinal: ORDINAL, outcome: OutcomeKind::Rejected, id: id.map(Json::get) };
    assert_eq!(read_record(&record, rules.format).ok(), Some(expected));
}
