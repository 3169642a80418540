//! An input and an output in a bucket, the doubles with their logs, and runs of the real binary.

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use penstock_gcs_double::{BucketName, FaultRule, StorageServer, StorageSettings};
use penstock_s3_double::S3Double;
use penstock_simulator::{Distribution, ProviderSettings, Server};
use penstock_storage::{ErrorKind, StorageError};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    outside::{self, BUCKET},
    witness::{Contents, Line, Moment, Output, Published, Witness},
};

/// Requests in flight of every run.
pub(crate) const IN_FLIGHT: usize = 16;
/// No run of these tests takes longer.
const PATIENCE: Duration = Duration::from_mins(3);
/// Where the input is.
pub(crate) const INPUT: &str = "in/input.jsonl";

pub(crate) struct Place {
    folder: TempDir,
    /// Google Cloud Storage with the one bucket, which holds the input.
    pub(crate) storage: StorageServer,
    /// Amazon S3 with the same.
    pub(crate) s3: S3Double,
    pub(crate) provider: Server,
    pub(crate) witness: Witness,
}

/// What a process said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A process of the binary.
pub(crate) struct Run {
    child: Child,
    said: [PathBuf; 2],
}

impl Place {
    /// A job of so many prompts, each answered after `latency_ms`.
    pub(crate) async fn new(lines: usize, latency_ms: f64) -> Self {
        Self::with(lines, latency_ms, StorageSettings::default()).await
    }

    /// The same with a storage service of some kind.
    pub(crate) async fn with(lines: usize, latency_ms: f64, settings: StorageSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let buckets = vec![BucketName::parse(BUCKET).unwrap()];
        let settings = StorageSettings { buckets, keep_history: true, ..settings };
        let storage = StorageServer::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let mut settings = ProviderSettings::default();
        settings.latency.start_ms = Distribution::Constant(latency_ms);
        settings.log.entries_in_memory = 100_000;
        let provider = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let mut text = String::new();
        let lines = (0..lines)
            .map(|ordinal| {
                let (id, prompt) = (Value::from(10 * ordinal), format!("question {ordinal}"));
                writeln!(text, r#"{{"prompt_id":{id},"prompt":"{prompt}"}}"#).unwrap();
                Line { id, prompt, rejected: false }
            })
            .collect();
        outside::put(&storage.url(), INPUT, text.as_bytes()).await;
        let s3 = S3Double::start(&[BUCKET]).await.unwrap();
        s3.put(BUCKET, INPUT, text, None);
        // A run that was superseded learns it at its next checkpoint.
        fs::write(folder.path().join("job.yaml"), "limits:\n  checkpoint_seconds: 1\n").unwrap();
        let witness = Witness::of(output_in(&storage), lines);
        Self { folder, storage, s3, provider, witness }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `penstock` with these arguments.
    pub(crate) fn penstock(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("STORAGE_EMULATOR_HOST", self.storage.url());
        command.env("AWS_ENDPOINT_URL", self.s3.endpoint()).env("AWS_REGION", "eu-west-1");
        command.env("AWS_ACCESS_KEY_ID", self.s3.access_key_id());
        command.env("AWS_SECRET_ACCESS_KEY", self.s3.secret_access_key());
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    /// `penstock run` from bucket to bucket.
    pub(crate) fn run(&self) -> Command {
        self.run_from_to(&format!("gs://{BUCKET}/{INPUT}"), &format!("gs://{BUCKET}/out/"))
    }

    /// `penstock run` from anywhere to anywhere.
    pub(crate) fn run_from_to(&self, input: &str, output: &str) -> Command {
        let url = self.provider.base_url();
        let mut command = self.penstock(&["run", input, "--output", output, "--job", "job.yaml"]);
        command.args(["--provider", "simulated", "--base-url", &url]);
        command.args(["--max-in-flight", &IN_FLIGHT.to_string()]);
        command
    }

    pub(crate) fn start(&self, mut command: Command) -> Run {
        let file =
            || tempfile::NamedTempFile::new_in(self.folder.path()).unwrap().into_temp_path().keep().unwrap();
        let said = [file(), file()];
        let [stdout, stderr] = said.each_ref().map(|path| fs::File::create(path).unwrap());
        let child =
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).kill_on_drop(true).spawn().unwrap();
        Run { child, said }
    }

    /// Runs a command to its end.
    pub(crate) async fn say(&self, command: Command) -> Said {
        self.start(command).end().await
    }

    /// Waits until the provider has answered so many requests, or the run has ended.
    pub(crate) async fn answered(&self, count: u64, run: &mut Run) {
        let wait = async {
            while self.provider.requests().succeeded < count && run.child.try_wait().unwrap().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the run makes no progress");
    }

    /// Waits until the bucket holds the answers to so many lines, or the run has ended.
    pub(crate) async fn stored(&self, count: u64, run: &mut Run) {
        let wait = async {
            while self.held() < count && run.child.try_wait().unwrap().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the run stores nothing");
    }

    /// Which faults requests to the bucket meet from now on.
    pub(crate) fn set_faults(&self, rules: Vec<FaultRule>) {
        self.storage.set_faults(rules).unwrap();
    }

    /// What is safe now; a run that lives may make more so.
    pub(crate) fn moment(&self) -> Moment {
        self.witness.moment(&self.provider.log())
    }

    /// How many lines are safe now.
    pub(crate) fn held(&self) -> u64 {
        self.moment().held.len().try_into().unwrap()
    }

    /// No line that was safe at `moment` was asked again (T5).
    pub(crate) fn assert_nothing_safe_was_asked_since(&self, moment: &Moment) {
        let again = self.witness.requests(&self.provider.log()).asked_again_since(moment);
        assert!(again.is_empty(), "T5: durable, and asked again: {again:?}");
    }

    /// How many requests were sent again.
    pub(crate) fn repeated(&self) -> usize {
        self.witness.requests(&self.provider.log()).repeats()
    }

    /// What lies in the output now.
    pub(crate) fn contents(&self) -> Box<dyn Contents> {
        output_in(&self.storage).now()
    }

    /// Makes a change as soon as the bucket takes it: it takes one of a name in a second.
    pub(crate) async fn when_it_may_change<T>(&self, change: impl AsyncFn() -> Result<T, StorageError>) -> T {
        loop {
            match change().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => tokio::task::yield_now().await,
                changed => return changed.unwrap(),
            }
        }
    }

    /// The names of everything below the output.
    pub(crate) async fn names(&self) -> Vec<String> {
        let objects = outside::list(&self.storage.url(), "out/").await;
        objects.into_keys().map(|name| name["out/".len()..].to_owned()).collect()
    }

    /// What is published, after every check of a witness.
    pub(crate) async fn finish(self) -> Published {
        self.storage.shutdown().await;
        self.provider.shutdown().await;
        self.witness.finish()
    }
}

fn output_in(storage: &StorageServer) -> Output {
    Output::Bucket { history: storage.history(), below: "out/".to_owned() }
}

impl Run {
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// It does nothing more until it is thawed.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.child.id() {
            kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
        }
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Said {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let [stdout, stderr] = self.said.each_ref().map(|path: &PathBuf| read(path));
        let status = ended.unwrap_or_else(|_| panic!("the run does not end: {stderr}")).unwrap();
        Said { status, stdout, stderr }
    }
}

impl Said {
    /// It has ended with this code.
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{}: {}", self.status, self.stderr);
        self
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
