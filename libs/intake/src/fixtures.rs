//! What the tests of this crate share: inputs in memory, specs, and a sink that keeps what it is given.

use std::{
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use penstock_batchfile::Format;
use penstock_job::{
    CanonicalSpec, JobSpec,
    spec::{CanonicalInput, OnInvalid},
};
use penstock_storage::{Action, Generation, Input, ObjectName, StorageError, Store};
use tokio_util::sync::CancellationToken;

use crate::{Fault, IntakeError, LineRules, Reading, Summary, Verdict, examine, fault::FaultSink, validate};

/// An input in memory. Once `changed` it fails as a replaced file does.
#[derive(Debug)]
pub(crate) struct TextInput {
    content: Bytes,
    generation: Generation,
    pub(crate) changed: bool,
}

impl TextInput {
    pub(crate) fn new(content: impl Into<Bytes>) -> Self {
        let content = content.into();
        let generation = Generation::new(format!("{}-1", content.len()));
        Self { content, generation, changed: false }
    }

    /// The spec of a job over this input.
    pub(crate) fn spec(&self, format: Format, on_invalid: OnInvalid) -> CanonicalSpec {
        let input = CanonicalInput { uri: self.uri().to_owned(), generation: self.generation.to_string() };
        let job = JobSpec {
            model: Some("model".to_owned()),
            on_invalid,
            max_line_bytes: 1024,
            ..JobSpec::default()
        };
        job.canonical(input, format).unwrap()
    }

    fn unless_changed<T>(&self, value: T) -> Result<T, StorageError> {
        if self.changed { Err(StorageError::changed(Action::Read, self.uri())) } else { Ok(value) }
    }
}

#[async_trait]
impl Input for TextInput {
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
        let bounds = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        self.unless_changed(self.content.slice(bounds))
    }

    async fn verify_unchanged(&self) -> Result<(), StorageError> {
        self.unless_changed(())
    }
}

/// Reads `input` with nobody watching and nobody to stop it.
pub(crate) async fn with_reading<T>(
    input: &dyn Input,
    read: impl AsyncFnOnce(&Reading<'_>, &Path) -> T,
) -> T {
    let scratch = tempfile::tempdir().unwrap();
    let reading =
        Reading { input, scratch: scratch.path(), progress: &|_| (), stop: &CancellationToken::new() };
    let answer = read(&reading, scratch.path()).await;
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0, "something was left in scratch");
    answer
}

/// Validates `input` for a job without rules of its own.
pub(crate) async fn validate_for(
    input: &TextInput,
    store: &dyn Store,
    spec: &CanonicalSpec,
) -> Result<Verdict, IntakeError> {
    with_reading(input, async |reading, _| validate(reading, store, spec).await).await
}

/// A fault as a test looks at it: line number, id, code, message.
pub(crate) type Reported = (u64, Option<String>, String, String);

/// Keeps the faults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Reported>>>);

impl Kept {
    pub(crate) fn faults(&self) -> Vec<Reported> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn keep(&self, fault: &Fault<'_>) {
        self.0.lock().unwrap().push((
            fault.position.line_number,
            fault.id.map(|id| id.get().to_owned()),
            fault.rejection.code.to_string(),
            fault.rejection.message.clone(),
        ));
    }
}

impl FaultSink for Kept {
    fn take(&mut self, fault: &Fault<'_>) -> Result<(), IntakeError> {
        self.keep(fault);
        Ok(())
    }

    fn end_of_series(&mut self) -> Result<(), IntakeError> {
        Ok(())
    }
}

/// Examines `content` with a method that the caller may change.
pub(crate) async fn examine_with(
    content: &[u8],
    format: Format,
    change: impl FnOnce(&mut examine::Method),
) -> (Summary, Vec<Reported>) {
    let input = TextInput::new(content.to_vec());
    let kept = Kept::default();
    let rules = LineRules::from(&input.spec(format, OnInvalid::Skip));
    let summary = with_reading(&input, async |reading, _| {
        let mut method = examine::Method::new(rules, reading);
        change(&mut method);
        examine::examine(reading, method, kept.clone()).await.unwrap()
    })
    .await;
    (summary, kept.faults())
}

/// The names of all objects below `prefix`.
pub(crate) async fn names(store: &dyn Store, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut start_after = None;
    loop {
        let page = store.list(prefix, start_after.as_deref()).await.unwrap();
        names.extend(page.objects.iter().map(|object| object.name.to_string()));
        match page.next {
            Some(next) => start_after = Some(next),
            None => return names,
        }
    }
}

/// The content of an object.
pub(crate) async fn content(store: &dyn Store, name: &str) -> Bytes {
    let (_, content) = store.get(&ObjectName::parse(name).unwrap(), u64::MAX).await.unwrap().unwrap();
    content
}
