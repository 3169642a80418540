//! What all runs of one replay share: an input, an output in memory, a scratch folder, and writes that may still land.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use penstock_executor::{Job, Steps, provider};
use penstock_intake::{Reading, validate};
use penstock_job::{
    CanonicalSpec, Epoch, Identity, Incarnation, JobSpec,
    layout::PartName,
    spec::{CanonicalInput, ProviderKind},
};
use penstock_storage::{
    FileInput, Input, MemoryStore,
    faults::{FaultyStore, Write},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{gate::Gate, process::Process, provider::Provider};

/// Far longer than any replay lets pass between two steps that bring time about.
pub(crate) const CHECKPOINT: Duration = Duration::from_secs(1_000);

/// Far longer than a whole replay lets pass.
const REQUEST: Duration = Duration::from_secs(10_000_000);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    folder: TempDir,
    input: FileInput,
    spec: JobSpec,
    canonical: CanonicalSpec,
    kept: Arc<Mutex<Vec<Kept>>>,
}

/// A write that was reported as failed and has not landed.
#[derive(Debug)]
struct Kept {
    process: u8,
    object: String,
    write: Write,
}

impl World {
    /// A validated job of so many lines.
    pub(crate) async fn new(lines: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for line in 0..lines {
            writeln!(text, r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#).unwrap();
        }
        let path = folder.path().join("input.jsonl");
        fs::write(&path, text).unwrap();
        let mut spec = JobSpec { model: Some("model".to_owned()), ..JobSpec::default() };
        spec.provider.kind = ProviderKind::Simulated;
        spec.provider.base_url = Some("http://127.0.0.1:1".to_owned());
        spec.limits.checkpoint_seconds = CHECKPOINT.as_secs().try_into().unwrap();
        spec.limits.request_timeout_seconds = REQUEST.as_secs().try_into().unwrap();
        let input = FileInput::open(&path).await.unwrap();
        let detected =
            penstock_intake::detect(&input, spec.max_line_bytes, spec.format.named()).await.unwrap();
        let named = CanonicalInput {
            uri: input.uri().to_owned(),
            generation: input.generation().as_str().to_owned(),
        };
        let canonical = spec.canonical(named, detected).unwrap();
        let world = Self { store: MemoryStore::new(), folder, input, spec, canonical, kept: Arc::default() };
        fs::create_dir_all(world.scratch()).unwrap();
        let reading = Reading {
            input: &world.input,
            scratch: &world.scratch(),
            progress: &|_| {},
            stop: &CancellationToken::new(),
        };
        validate(&reading, &world.store, &world.canonical).await.unwrap();
        world
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    /// Starts an incarnation, whose completion window is over so long after it began to answer.
    pub(crate) fn start(&self, process: u8, window: Option<Duration>) -> Process {
        let provider = Provider::start();
        let mut spec = self.spec.clone();
        spec.provider.base_url = Some(provider.base_url());
        spec.limits.deadline_seconds = window.map(|window| window.as_secs().try_into().unwrap());
        let gate = Arc::new(Gate::default());
        let (planner, kept) = (Arc::clone(&gate), Arc::clone(&self.kept));
        let keep = move |write: Write| {
            let object = match &write {
                Write::Create(name, _)
                | Write::Replace(name, ..)
                | Write::Compose(name, _)
                | Write::Delete(name, _) => name,
            };
            let object = object.to_string();
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(Kept { process, object, write });
        };
        // Another run may write as soon as a read is taken for made.
        let reader = Arc::clone(&gate);
        let store = FaultyStore::new(self.store.clone(), move |call| planner.fault(call))
            .keeping(keep)
            .watching(move |object| reader.has_read(object));
        let job = Job {
            provider: Some(
                provider::Provider::connect(&self.canonical, &spec.provider, REQUEST, 16).unwrap(),
            ),
            spec,
            canonical: self.canonical.clone(),
            identity: Identity::of(&self.canonical),
            incarnation: Incarnation::draw(),
            store: Arc::new(store),
            input: Some(Arc::new(self.input.clone())),
            scratch: self.scratch(),
            ending: None,
            steps: Steps::seen_by(Arc::<Gate>::clone(&gate)),
            fail_fast: false,
            participation: None,
            reporting: None,
            // Of the model a process claims once; who claims again is another one.
            claims: 1,
        };
        Process::start(job, gate, provider)
    }

    /// Lets a kept write land: of this process, if one is named.
    pub(crate) async fn land(&self, process: Option<u8>, object: &str) -> bool {
        let found = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let wanted = |kept: &Kept| kept.object == object && process.is_none_or(|one| kept.process == one);
            // The newest one: an older one of the same process has the same bytes, or can never be applied.
            kept.iter().rposition(wanted).map(|place| kept.remove(place).write)
        };
        match found {
            Some(write) => write.apply(&self.store).await.is_ok(),
            None => false,
        }
    }

    /// Loses the files in scratch but those of these epochs, whose runs live.
    pub(crate) fn lose_scratch(&self, living: &[Epoch]) {
        if !self.scratch().exists() {
            // A run that has finished has removed it.
            return;
        }
        for entry in fs::read_dir(self.scratch()).unwrap() {
            let entry = entry.unwrap();
            let part = entry.file_name().to_str().and_then(|name| name.parse::<PartName>().ok());
            if part.is_some_and(|part| !living.contains(&part.epoch)) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}
