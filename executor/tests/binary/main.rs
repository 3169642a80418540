//! The executor's own binary, as a pod runs it: on a validated job, with a job file, and with an ending where no executor
//! was able to finish the job (T11). Checked from outside, by the witness of the crash tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../cli/tests/witness/mod.rs"]
#[expect(dead_code, reason = "the crash tests of `penstock` use the rest")]
mod witness;

use std::{
    collections::BTreeMap, fmt::Write as _, fs, net::Ipv4Addr, os::unix::process::ExitStatusExt,
    path::PathBuf, process::Command, time::Duration,
};

use penstock_batchfile::{Detected, Format};
use penstock_intake::{Reading, validate};
use penstock_job::{
    JobSpec,
    spec::{CanonicalInput, text},
};
use penstock_simulator::{Distribution, ProviderSettings, Server};
use penstock_storage::{FileInput, FileStore, Input};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;
use witness::{Line, Witness, folder::names};

/// Lines of each job.
const LINES: u64 = 30;
/// No run takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// A validated job and its provider double.
struct Pod {
    folder: TempDir,
    server: Server,
    witness: Witness,
}

impl Pod {
    async fn new() -> Self {
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
        settings.latency.start_ms = Distribution::Constant(5.0);
        settings.log.entries_in_memory = 10_000;
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let witness = Witness::of(&folder.path().join("out"), lines);
        let pod = Self { folder, server, witness };
        pod.validate().await;
        pod
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    fn job(&self, model: &str) -> Value {
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
    async fn execute(&self, model: &str, more: &[&str], inject: &str) -> i32 {
        self.execute_job(&self.job(model), more, inject).await
    }

    async fn execute_job(&self, job: &Value, more: &[&str], inject: &str) -> i32 {
        let file = self.folder.path().join("job.json");
        fs::write(&file, job.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-executor"));
        command.arg("--job").arg(file).arg("--scratch").arg(self.scratch()).args(more);
        command.env("PENSTOCK_INJECT", inject);
        let output = timeout(PATIENCE, spawn_blocking(move || command.output())).await;
        let output = output.expect("the executor does not end").unwrap().unwrap();
        output.status.code().unwrap_or_else(|| -output.status.signal().unwrap())
    }

    fn asked(&self) -> usize {
        self.server.log().len()
    }
}

/// SIGKILL.
const KILLED: i32 = -9;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_before_any_executor_could_start_records_every_line() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &["--ending", "cancelled"], "").await, 0);
    assert_eq!(pod.asked(), 0);
    let published = pod.witness.finish();
    assert_eq!(published.count("cancelled"), LINES);
    assert_eq!(published.receipt["ending"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_after_the_executors_died_keeps_what_is_durable_and_asks_for_nothing() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    assert_eq!(pod.execute("model", &[], "kill@list").await, KILLED);
    // A new pod has an empty scratch folder.
    fs::remove_dir_all(pod.scratch()).unwrap();
    let (asked, held) = (pod.asked(), pod.witness.moment(&pod.server.log()).held.len() as u64);
    assert!(held > 0);
    for kill in ["kill@end", "kill@record-undone:3", "kill@upload", "kill@freeze", "kill@write-receipt"] {
        assert_eq!(pod.execute("model", &["--ending", "expired"], kill).await, KILLED, "{kill}");
    }
    assert_eq!(pod.execute("model", &["--ending", "expired"], "").await, 0);
    assert_eq!(pod.asked(), asked);
    let published = pod.witness.finish();
    assert_eq!((published.count("succeeded"), published.count("expired")), (held, LINES - held));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_input_is_lost_publishes_what_was_answered() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    fs::remove_file(pod.folder.path().join("input.jsonl")).unwrap();
    let asked = pod.asked();
    assert_eq!(pod.execute("model", &[], "").await, 0);
    assert_eq!(pod.asked(), asked);
    let published = pod.witness.finish();
    assert!(published.count("succeeded") > 0);
    assert_eq!(published.count("succeeded") + published.count("abandoned"), LINES);
    assert_eq!(published.receipt["ending"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_job_over_the_same_output_is_refused_and_the_same_one_sends_nothing_twice() {
    let pod = Pod::new().await;
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    let files = || -> BTreeMap<String, Vec<u8>> {
        let named = |name: String| Some((name.clone(), fs::read(pod.output().join(name)).ok()?));
        names(&pod.output()).into_iter().filter_map(named).collect()
    };
    let before = files();
    assert_eq!(pod.execute("another", &[], "").await, 65);
    assert_eq!(files(), before);
    assert_eq!(pod.execute("model", &[], "").await, 0);
    let (asked, published) = (pod.asked(), files());
    assert_eq!(pod.execute("model", &[], "").await, 0);
    assert_eq!(pod.execute("another", &[], "").await, 65);
    assert_eq!((pod.asked(), files()), (asked, published));
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_gone_stops_a_job_that_asks_and_not_one_that_is_decided() {
    let pod = Pod::new().await;
    let mut keyless = pod.job("model");
    keyless["provider"]["api_key"] = json!({"file": pod.folder.path().join("gone")});
    assert_eq!(pod.execute("model", &[], "kill@send:12").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "").await, 64);
    assert_eq!(pod.execute("model", &[], "kill@freeze").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "kill@write-receipt").await, KILLED);
    assert_eq!(pod.execute_job(&keyless, &[], "").await, 0);
    assert_eq!(pod.witness.finish().count("succeeded"), LINES);
}
