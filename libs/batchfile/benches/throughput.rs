//! How fast the hot path is: `cargo bench -p penstock-batchfile` prints megabytes per second for each step.

use std::{hint::black_box, ops::ControlFlow, time::Instant};

use penstock_batchfile::{
    Body, Content, Endpoint, Format, Json, LineName, LineSplitter, Ordinal, Position, RecordWriter, Rules,
    Success, Tokens, parse, parse_validated, read_record, splice_model,
};
use serde_json::value::RawValue;

/// Bytes of input that each step works on.
const SIZE: usize = 256 << 20;
/// What is fed to the splitter at once.
const CHUNK: usize = 1 << 20;
const RULES: Rules =
    Rules { format: Format::OpenAi, endpoint: Endpoint::ChatCompletions, has_model: true, strict: false };

fn main() {
    for words in [5, 40, 400] {
        let text = "Where is my order? ".repeat(words);
        let body = format!(
            r#"{{"messages":[{{"role":"system","content":"You answer\nbriefly."}},{{"role":"user","content":"{text}"}}]}}"#
        );
        let line = format!(
            r#"{{"custom_id":"request-1234567","method":"POST","url":"/v1/chat/completions","body":{body}}}"#
        );
        println!("lines of {} bytes", line.len());
        let input = format!("{line}\n").repeat(SIZE / (line.len() + 1));
        measure("split", input.len(), || split(input.as_bytes(), |_| ()));
        measure("split and parse", input.len(), || {
            split(input.as_bytes(), |line| {
                black_box(parse(line, &RULES).expect("the line is valid"));
            });
        });
        measure("split and read again", input.len(), || {
            split(input.as_bytes(), |line| {
                black_box(parse_validated(line, &RULES).expect("the line is valid"));
            });
        });
        splicing(&line);
        measure("check and read an object", input.len(), || {
            split(input.as_bytes(), |line| {
                let text = str::from_utf8(line).expect("the line is text");
                black_box(
                    Json::object(text, &["custom_id", "body", "error"]).expect("the line is an object"),
                );
            });
        });
        measure("parse an object, then read it", input.len(), || {
            split(input.as_bytes(), |line| {
                let parsed: &RawValue = serde_json::from_slice(line).expect("the line is JSON");
                black_box(Json::from(parsed).members(&["custom_id", "body", "error"]));
            });
        });
        records(&line, &body);
    }
}

fn split(input: &[u8], mut visit: impl FnMut(&[u8])) {
    let mut splitter = LineSplitter::new(Position::START, 8 << 20);
    for chunk in input.chunks(CHUNK) {
        let _ = splitter.feed(chunk, |line| {
            match line.content {
                Content::Whole(bytes) => visit(bytes),
                Content::TooLong { bytes } => panic!("a line of {bytes} bytes"),
            }
            ControlFlow::Continue(())
        });
    }
}

fn splicing(line: &str) {
    let request = parse(line.as_bytes(), &RULES).expect("the line is valid");
    let Body::OpenAi(body) = request.body else { panic!("an OpenAI line") };
    let mut out = Vec::new();
    measure("splice", SIZE, || {
        for _ in 0..SIZE / line.len() {
            out.clear();
            splice_model(body, "a-model", &mut out);
            black_box(&out);
        }
    });
}

fn records(line: &str, body: &str) {
    let request = parse(line.as_bytes(), &RULES).expect("the line is valid");
    let (response, []) = Json::object(body, &[]).expect("the body is a JSON object");
    let success = Success {
        response,
        status_code: 200,
        request_id: Some("req_0123456789abcdef"),
        tokens: Tokens::default(),
        latency_ms: 812,
        attempt: 1,
    };
    let writer = RecordWriter::new(Format::OpenAi, "0123456789abcdef", 1);
    let mut records = Vec::with_capacity(2 * SIZE);
    measure("write records", SIZE, || {
        for ordinal in (0..).take(SIZE / line.len()) {
            let name = LineName { ordinal: Ordinal::new(ordinal), id: Some(request.id.token()) };
            writer.succeeded(name, &success, &mut records);
        }
    });
    measure("read records", records.len(), || {
        split(&records, |record| {
            black_box(read_record(record, Format::OpenAi).expect("the record is whole"));
        });
    });
}

fn measure(step: &str, bytes: usize, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let microseconds = start.elapsed().as_micros().max(1);
    println!("  {step:<20} {:>6} MB/s", bytes as u128 / microseconds);
}
