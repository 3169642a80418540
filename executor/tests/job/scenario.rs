//! A job with everything around it: an input file, a provider double, an output, and the checks from outside.

use std::{
    collections::BTreeMap, fmt::Write as _, fs, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration,
};

use penstock_batchfile::{OutcomeKind, read_record};
use penstock_executor::{
    Board, EndingRequest, Finished, Job, Reporting, RunError, Steps, Stop, provider::Provider, run,
};
use penstock_intake::{Reading, Verdict, validate};
use penstock_job::{
    Identity, Incarnation, JobSpec, Receipt, State, document,
    receipt::ReceiptEnding,
    spec::{CanonicalInput, ProviderKind},
};
use penstock_simulator::{LogEntry, ProviderSettings, Server};
use penstock_storage::{FileInput, Input, MemoryStore, ObjectName, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// No job of these tests takes longer; whatever does is stuck.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Scenario {
    pub(crate) folder: TempDir,
    pub(crate) server: Server,
    pub(crate) spec: JobSpec,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) lines: Vec<String>,
}

/// What was published, as somebody without Penstock's own counters finds it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) receipt: Receipt,
    /// Outcome and id by ordinal.
    pub(crate) records: BTreeMap<u32, (OutcomeKind, Option<String>)>,
}

impl Scenario {
    /// `count` prompts with ids that are not their ordinals.
    pub(crate) async fn prompts(count: u32) -> Self {
        let lines =
            (0..count).map(|line| format!(r#"{{"prompt_id":{},"prompt":"question {line}"}}"#, line + 1000));
        Self::new(lines.collect(), quick()).await
    }

    /// `count` OpenAI lines that alternate between two models.
    pub(crate) async fn openai(count: u32) -> Self {
        let lines = (0..count).map(|line| {
            let model = if line % 2 == 0 { "even" } else { "odd" };
            format!(
                r#"{{"custom_id":"id-{line}","method":"POST","url":"/v1/chat/completions","body":{{"model":"{model}","messages":[{{"role":"user","content":"question {line}"}}]}}}}"#
            )
        });
        Self::new(lines.collect(), quick()).await
    }

    pub(crate) async fn new(lines: Vec<String>, settings: ProviderSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for line in &lines {
            writeln!(text, "{line}").unwrap();
        }
        fs::write(folder.path().join("input.jsonl"), text).unwrap();
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let mut spec = JobSpec { model: Some("model".to_owned()), ..JobSpec::default() };
        spec.provider.kind = ProviderKind::Simulated;
        spec.provider.base_url = Some(server.base_url());
        spec.limits.retry.base_ms = 20;
        spec.limits.retry.cap_ms = 100;
        Self { folder, server, spec, store: Arc::new(MemoryStore::new()), lines }
    }

    pub(crate) fn input_path(&self) -> PathBuf {
        self.folder.path().join("input.jsonl")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    /// The job, validated, ready to be run over `store`.
    pub(crate) async fn job_over(&self, store: Arc<dyn Store>) -> Job {
        let input = FileInput::open(self.input_path()).await.unwrap();
        let limit = self.spec.max_line_bytes;
        let detected = penstock_intake::detect(&input, limit, self.spec.format.named()).await.unwrap();
        let named = CanonicalInput {
            uri: input.uri().to_owned(),
            generation: input.generation().as_str().to_owned(),
        };
        let canonical = self.spec.canonical(named, detected).unwrap();
        let identity = Identity::of(&canonical);
        fs::create_dir_all(self.scratch()).unwrap();
        let provider = Provider::connect(&canonical, &self.spec.provider, PATIENCE, 64).unwrap();
        Job {
            spec: self.spec.clone(),
            canonical,
            identity,
            incarnation: Incarnation::draw(),
            store,
            input: Some(Arc::new(input)),
            provider: Some(provider),
            scratch: self.scratch(),
            ending: None,
            steps: Steps::default(),
            fail_fast: true,
            participation: None,
            reporting: Reporting::of(&self.spec).unwrap(),
            claims: Job::CLAIMS,
        }
    }

    pub(crate) async fn job(&self) -> Job {
        self.job_over(Arc::clone(&self.store)).await
    }

    /// Validates the input as `penstock run` does before its first run.
    pub(crate) async fn validate(&self) -> Verdict {
        let job = self.job().await;
        let reading = Reading {
            input: &**job.input.as_ref().unwrap(),
            scratch: &self.scratch(),
            progress: &|_| {},
            stop: &CancellationToken::new(),
        };
        validate(&reading, &*self.store, &job.canonical).await.unwrap()
    }

    /// Runs the job from the start to wherever it goes.
    pub(crate) async fn run(&self) -> Result<Finished, RunError> {
        run_within(self.job().await, Stop::new()).await
    }

    /// Runs the job with an ending that the caller asks for.
    pub(crate) async fn end(&self, request: EndingRequest) -> Result<Finished, RunError> {
        run_within(Job { ending: Some(request), ..self.job().await }, Stop::new()).await
    }

    pub(crate) async fn state(&self) -> State {
        document::read(&self.object("state.json").await.unwrap()).unwrap()
    }

    pub(crate) async fn object(&self, name: &str) -> Option<Vec<u8>> {
        let name = ObjectName::parse(name).unwrap();
        self.store.get(&name, u64::MAX).await.unwrap().map(|(_, bytes)| bytes.to_vec())
    }

    /// Names of everything below the output.
    pub(crate) async fn names(&self) -> Vec<String> {
        let page = self.store.list("", None).await.unwrap();
        assert!(page.next.is_none(), "these outputs are small");
        page.objects.iter().map(|object| object.name.to_string()).collect()
    }

    /// Reads what was published and checks conservation: each line once, under its own id, counts as in the receipt.
    pub(crate) async fn published(&self) -> Published {
        let receipt: Receipt =
            document::read(&self.object("receipt.json").await.expect("a receipt")).unwrap();
        let mut records = BTreeMap::new();
        for output in &receipt.outputs {
            let bytes = self.object(&output.name).await.expect("a published file");
            assert_eq!(bytes.len() as u64, output.size_bytes);
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\n").expect("whole records");
                let head = read_record(line, receipt.job.spec.format).unwrap();
                let id = head.id.map(str::to_owned);
                assert!(
                    records.insert(head.ordinal.get(), (head.outcome, id)).is_none(),
                    "one record for each line"
                );
            }
        }
        assert_eq!(records.len(), self.lines.len());
        assert_eq!(receipt.lines, records.len() as u64);
        assert_eq!(receipt.outcomes.total(), receipt.lines);
        let count = |kind| records.values().filter(|(outcome, _)| *outcome == kind).count() as u64;
        assert_eq!(receipt.outcomes.succeeded, count(OutcomeKind::Succeeded));
        assert_eq!(receipt.outcomes.failed, count(OutcomeKind::Failed));
        assert_eq!(receipt.outcomes.rejected, count(OutcomeKind::Rejected));
        for (ordinal, (_, id)) in &records {
            if let Some(id) = id {
                let line = &self.lines[*ordinal as usize];
                assert!(
                    line.contains(&format!("_id\":{id}")),
                    "line {ordinal} is {line}, its record says {id}"
                );
            }
        }
        if receipt.identity.found.is_some() {
            assert_eq!(receipt.identity.found, Some(receipt.identity.expected));
        }
        Published { receipt, records }
    }

    /// Requests that the double saw, by prompt.
    pub(crate) fn requests(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for LogEntry { prompt, .. } in self.server.log() {
            *counts.entry(prompt).or_default() += 1;
        }
        counts
    }
}

impl Published {
    pub(crate) fn assert_completed(&self) {
        assert_eq!(self.receipt.ending, ReceiptEnding::Completed);
    }
}

/// Runs a job and fails the test when it is stuck.
pub(crate) async fn run_within(job: Job, stop: Stop) -> Result<Finished, RunError> {
    tokio::time::timeout(PATIENCE, run(job, Arc::new(Board::default()), stop))
        .await
        .expect("the job is stuck")
}

/// A double that answers at once and remembers everything.
pub(crate) fn quick() -> ProviderSettings {
    let mut settings = ProviderSettings::default();
    settings.latency.start_ms = penstock_simulator::Distribution::Constant(1.0);
    settings.log.entries_in_memory = 100_000;
    settings
}
