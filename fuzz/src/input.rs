//! The validation of a whole input against one that keeps everything in memory.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{ControlFlow, Range},
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use penstock_batchfile::{
    Content, DecodedId, Endpoint, Format, Line, LineSplitter, Ordinal, Position, RawId, Rejection,
    RejectionCode, Rules, parse,
};
use penstock_intake::{LineRules, Reading, check};
use penstock_job::{OrdinalSet, identity_sum::IdentitySum};
use penstock_storage::{Generation, Input, StorageError};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::bounded;

/// What the checks of all inputs share: making it takes longer than a check.
struct Workplace {
    runtime: Runtime,
    scratch: TempDir,
}

static WORKPLACE: LazyLock<Workplace> = LazyLock::new(|| Workplace {
    runtime: Builder::new_current_thread().enable_time().build().expect("a runtime on this thread"),
    scratch: TempDir::new().expect("a folder for temporary files"),
});

/// An input in memory.
#[derive(Debug)]
struct Text {
    content: Bytes,
    generation: Generation,
}

#[async_trait]
impl Input for Text {
    fn uri(&self) -> &'static str {
        "/in.jsonl"
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn size_bytes(&self) -> u64 {
        self.content.len() as u64
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let place = |offset| usize::try_from(offset).expect("an offset lies in the input");
        Ok(self.content.slice(place(range.start)..place(range.end)))
    }

    async fn verify_unchanged(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

/// A refused line: its number, its id, and why.
type Refused = (u64, Option<String>, RejectionCode);

/// What a validation finds.
#[derive(Debug, Default, PartialEq)]
struct Found {
    lines: u64,
    rejected: OrdinalSet,
    codes: BTreeMap<String, u64>,
    models: BTreeMap<String, u64>,
    token_estimate: u64,
    identity_sum: IdentitySum,
    /// Lines at fault by themselves, then those whose id repeats.
    refused: Vec<Refused>,
}

/// The first byte says what the job asks of its lines; the rest is the input.
pub fn whole_input(data: &[u8]) {
    let Some((settings, input)) = bounded(data, 4096).split_first() else { return };
    let has = |bit: u8| settings >> bit & 1 == 1;
    let rules = LineRules {
        format: if has(0) { Format::OpenAi } else { Format::Prompts },
        endpoint: if has(1) { Endpoint::Embeddings } else { Endpoint::ChatCompletions },
        model: has(2).then(|| "m".to_owned()),
        strict: has(3),
        max_line_bytes: if has(4) { 48 } else { 1 << 20 },
    };
    let plain = examined_in_memory(input, &rules);
    let found = WORKPLACE.runtime.block_on(examined(input, rules, WORKPLACE.scratch.path()));
    assert_eq!(found, plain);
}

async fn examined(input: &[u8], rules: LineRules, scratch: &Path) -> Found {
    let generation = Generation::new("1-1".to_owned());
    let input = Text { content: Bytes::copy_from_slice(input), generation };
    let stop = CancellationToken::new();
    let reading = Reading { input: &input, scratch, progress: &|_| (), stop: &stop };
    let refused = Arc::new(Mutex::new(Vec::new()));
    let report = {
        let refused = Arc::clone(&refused);
        move |fault: &penstock_intake::Fault<'_>| {
            let id = fault.id.map(|id| id.get().to_owned());
            let mut refused = refused.lock().expect("no report panics");
            refused.push((fault.position.line_number, id, fault.rejection.code));
        }
    };
    let summary = check(&reading, rules, report).await.expect("nothing fails in memory");
    assert_eq!(summary.input.size_bytes, input.size_bytes());
    let refused = std::mem::take(&mut *refused.lock().expect("no report panics"));
    Found {
        lines: summary.lines,
        rejected: summary.rejected,
        codes: summary.rejected_codes,
        models: summary.models,
        token_estimate: summary.token_estimate,
        identity_sum: summary.identity_sum,
        refused,
    }
}

/// The same, line by line, with the ids of all valid lines in a map.
fn examined_in_memory(input: &[u8], rules: &LineRules) -> Found {
    let mut book = Book::default();
    let mut splitter = LineSplitter::new(Position::START, rules.max_line_bytes);
    let mut visit = |line: Line<'_>| {
        book.enter(&line, rules);
        ControlFlow::Continue(())
    };
    let _ = splitter.feed(input, &mut visit);
    let _ = splitter.finish(&mut visit);
    book.found.token_estimate = book.valid_bytes / 4;
    book.found.refused.append(&mut book.repeated);
    book.found
}

#[derive(Default)]
struct Book {
    found: Found,
    ids: HashMap<DecodedId<'static>, u64>,
    repeated: Vec<Refused>,
    valid_bytes: u64,
}

impl Book {
    fn enter(&mut self, line: &Line<'_>, rules: &LineRules) {
        let Position { ordinal, line_number, .. } = line.position;
        let Content::Whole(text) = line.content else {
            self.count(ordinal, None);
            self.refuse(ordinal, RejectionCode::LineTooLong);
            self.found.refused.push((line_number, None, RejectionCode::LineTooLong));
            return;
        };
        let LineRules { format, endpoint, ref model, strict, .. } = *rules;
        match parse(text, &Rules { format, endpoint, has_model: model.is_some(), strict }) {
            Err(Rejection { code, .. }) => {
                let id = RawId::find(text, format).map(|id| id.raw().to_owned());
                self.count(ordinal, id.as_deref());
                self.refuse(ordinal, code);
                self.found.refused.push((line_number, id, code));
            }
            Ok(request) => {
                self.count(ordinal, Some(request.id.raw()));
                if self.ids.insert(owned(request.id.decoded()), line_number).is_some() {
                    self.refuse(ordinal, RejectionCode::DuplicateId);
                    let id = Some(request.id.raw().to_owned());
                    self.repeated.push((line_number, id, RejectionCode::DuplicateId));
                } else {
                    let name =
                        request.model.as_deref().or(model.as_deref()).expect("a valid line has a model");
                    let name = if name.len() > 256 { "other" } else { name };
                    *self.found.models.entry(name.to_owned()).or_default() += 1;
                    self.valid_bytes += text.len() as u64;
                }
            }
        }
    }

    fn count(&mut self, ordinal: Ordinal, raw_id: Option<&str>) {
        self.found.lines += 1;
        self.found.identity_sum.add(ordinal, raw_id);
    }

    fn refuse(&mut self, ordinal: Ordinal, code: RejectionCode) {
        self.found.rejected.insert(ordinal);
        *self.found.codes.entry(code.to_string()).or_default() += 1;
    }
}

fn owned(id: &DecodedId<'_>) -> DecodedId<'static> {
    match id {
        DecodedId::Integer(integer) => DecodedId::Integer(*integer),
        DecodedId::Text(text) => DecodedId::Text(text.clone().into_owned().into()),
    }
}
