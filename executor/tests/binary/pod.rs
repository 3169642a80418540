//! A validated job and its provider double, and the executor as a pod runs it.

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use penstock_batchfile::{Detected, Format};
use penstock_intake::{Reading, validate};
use penstock_job::{
    JobSpec, LastWord, State, document,
    spec::{CanonicalInput, text},
};
use penstock_simulator::{Distribution, ProviderSettings, Server};
use penstock_storage::{FileInput, FileStore, Input};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::witness::{Line, Output, Witness};

/// Lines of each job.
pub(crate) const LINES: u64 = 30;
/// No run takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A validated job and its provider double.
pub(crate) struct Pod {
    pub(crate) folder: TempDir,
    pub(crate) server: Server,
    pub(crate) witness: Witness,
}

impl Pod {
    /// A pod whose provider answers at once.
    pub(crate) async fn new() -> Self {
        Self::answered_after(5.0).await
    }

    /// A pod whose provider takes so many milliseconds for an answer.
    pub(crate) async fn answered_after(milliseconds: f64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<Line> = (0..LINES)
            .map(|line| Line {
                id: Value::from(7 * line),
                prompt: format!("question {line}"),
                rejected: false,
            })
            .collect();
        let mut text = String::new();
        for Line { id, prompt, .. } in &lines {
            writeln!(text, r#"{{"prompt_id":{id},"prompt":"{prompt}"}}"#).unwrap();
        }
        fs::write(folder.path().join("input.jsonl"), text).unwrap();
        let mut settings = ProviderSettings::default();
        settings.latency.start_ms = Distribution::Constant(milliseconds);
        settings.log.entries_in_memory = 10_000;
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let witness = Witness::of(Output::Folder(folder.path().join("out")), lines);
        let pod = Self { folder, server, witness };
        pod.validate().await;
        pod
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    pub(crate) fn job(&self, model: &str) -> Value {
        json!({
            "input": self.folder.path().join("input.jsonl"),
            "output": self.output(),
            "model": model,
            "provider": {"kind": "simulated", "base_url": self.server.base_url()},
            "limits": {"max_in_flight": 4},
        })
    }

    /// What the validation pod does.
    async fn validate(&self) {
        let spec: JobSpec = text::parse(&self.job("model").to_string()).unwrap();
        let input = FileInput::open(&self.folder.path().join("input.jsonl")).await.unwrap();
        let (uri, generation) = (input.uri().to_owned(), input.generation().as_str().to_owned());
        let detected = Detected { format: Format::Prompts, endpoint: None };
        let canonical = spec.canonical(CanonicalInput { uri, generation }, detected).unwrap();
        let store = FileStore::open(self.output()).await.unwrap();
        let (scratch, stop) = (self.folder.path().to_owned(), CancellationToken::new());
        let reading = Reading { input: &input, scratch: &scratch, progress: &|_| {}, stop: &stop };
        validate(&reading, &store, &canonical).await.unwrap();
    }

    /// Runs an executor to its end; its exit code, or the signal that ended it below zero.
    pub(crate) async fn execute(&self, model: &str, more: &[&str], inject: &str) -> i32 {
        self.execute_job(&self.job(model), more, inject).await
    }

    pub(crate) async fn execute_job(&self, job: &Value, more: &[&str], inject: &str) -> i32 {
        let mut command = self.command(job, more);
        command.env("PENSTOCK_INJECT", inject);
        finish(command.spawn().unwrap()).await
    }

    /// Starts an executor that leaves its last word.
    pub(crate) fn start(&self, job: &Value) -> Child {
        self.command(job, &[]).spawn().unwrap()
    }

    /// The last word of the executor that ended last.
    pub(crate) fn last_word(&self) -> LastWord {
        document::read(&fs::read(self.folder.path().join("last-word")).unwrap()).unwrap()
    }

    /// A file with a token for the operator.
    pub(crate) fn token_file(&self) -> PathBuf {
        let file = self.folder.path().join("token");
        fs::write(&file, "word").unwrap();
        file
    }

    /// The state as it is stored now.
    pub(crate) fn state(&self) -> State {
        document::read(&fs::read(self.output().join("state.json")).unwrap()).unwrap()
    }

    fn command(&self, job: &Value, more: &[&str]) -> Command {
        let file = self.folder.path().join("job.json");
        fs::write(&file, job.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-executor"));
        command.arg("--job").arg(file).arg("--scratch").arg(self.scratch()).args(more);
        command.arg("--termination-message").arg(self.folder.path().join("last-word"));
        command.stderr(Stdio::null());
        command
    }

    pub(crate) fn asked(&self) -> usize {
        self.server.log().len()
    }
}

/// Waits for an executor to end; its exit code, or the signal that ended it below zero.
pub(crate) async fn finish(mut executor: Child) -> i32 {
    let ended = timeout(PATIENCE, spawn_blocking(move || executor.wait())).await;
    let status = ended.expect("the executor does not end").unwrap().unwrap();
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}
