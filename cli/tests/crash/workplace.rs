//! An input, an output, a provider double with its log, and runs of the real binary.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use penstock_simulator::{Distribution, ProviderSettings, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Requests in flight of every run.
pub(crate) const IN_FLIGHT: usize = 16;
/// No run of these tests takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Workplace {
    folder: TempDir,
    pub(crate) server: Server,
    lines: usize,
}

/// One run of the binary; what it says goes to a file.
pub(crate) struct Run {
    child: Child,
    id: u32,
    errors: PathBuf,
}

impl Workplace {
    pub(crate) async fn new(lines: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = String::new();
        for line in 0..lines {
            writeln!(text, r#"{{"prompt_id":{},"prompt":"question {line}"}}"#, 10 * line).unwrap();
        }
        fs::write(folder.path().join("input.jsonl"), text).unwrap();
        // A zombie learns at its next checkpoint that it is one.
        fs::write(folder.path().join("job.yaml"), "limits:\n  checkpoint_seconds: 1\n").unwrap();
        let mut settings = ProviderSettings::default();
        settings.latency.start_ms = Distribution::Constant(5.0);
        settings.log.entries_in_memory = 100_000;
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        Self { folder, server, lines }
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    pub(crate) fn start(&self, more: &[&str]) -> Run {
        let errors =
            tempfile::NamedTempFile::new_in(self.folder.path()).unwrap().into_temp_path().keep().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_penstock"))
            .arg("run")
            .arg(self.folder.path().join("input.jsonl"))
            .arg("--output")
            .arg(self.output())
            .arg("--job")
            .arg(self.folder.path().join("job.yaml"))
            .args(["--provider", "simulated", "--base-url", &self.server.base_url()])
            .args(["--max-in-flight", &IN_FLIGHT.to_string()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = child.id().unwrap();
        Run { child, id, errors }
    }

    /// Waits until the double has answered so many requests, over all runs.
    pub(crate) async fn wait_until_answered(&self, count: u64, run: &mut Run) {
        self.wait_for(|| self.server.requests().succeeded >= count, run).await;
    }

    pub(crate) async fn wait_for_file(&self, name: &str, run: &mut Run) {
        let path = self.output().join(name);
        self.wait_for(|| path.exists(), run).await;
    }

    async fn wait_for(&self, mut condition: impl FnMut() -> bool, run: &mut Run) {
        let wait = async {
            while !condition() {
                if let Some(status) = run.child.try_wait().unwrap() {
                    panic!("the run ended too early with {status}: {}", run.errors());
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the run makes no progress");
    }

    /// How many requests were sent beyond one for each line.
    pub(crate) fn repeated(&self) -> usize {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for entry in self.server.log() {
            *counts.entry(entry.prompt).or_default() += 1;
        }
        counts.values().map(|count| count - 1).sum()
    }

    /// The names and digests of everything that was published.
    pub(crate) fn published(&self) -> BTreeMap<String, Vec<u8>> {
        fs::read_dir(self.output())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_file() && entry.file_name() != "state.json")
            .map(|entry| {
                let digest = Sha256::digest(fs::read(entry.path()).unwrap()).to_vec();
                (entry.file_name().into_string().unwrap(), digest)
            })
            .collect()
    }

    /// Reads the published files without any code of Penstock: each line once, under its own id, and the receipt's
    /// digests are theirs.
    pub(crate) fn assert_conserved(&self) {
        let receipt: Value =
            serde_json::from_slice(&fs::read(self.output().join("receipt.json")).unwrap()).unwrap();
        let mut ids: BTreeMap<u64, u64> = BTreeMap::new();
        for output in receipt["outputs"].as_array().unwrap() {
            let bytes = fs::read(self.output().join(output["name"].as_str().unwrap())).unwrap();
            let mut digest = String::new();
            for byte in Sha256::digest(&bytes) {
                write!(digest, "{byte:02x}").unwrap();
            }
            assert_eq!(output["sha256"], digest);
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let record: Value = serde_json::from_slice(line).unwrap();
                let (ordinal, id) =
                    (record["ordinal"].as_u64().unwrap(), record["prompt_id"].as_u64().unwrap());
                assert!(ids.insert(ordinal, id).is_none(), "line {ordinal} is published twice");
                assert!(record["response"].as_str().is_some_and(|text| !text.is_empty()), "{record}");
            }
        }
        assert!(
            ids.iter()
                .enumerate()
                .all(|(line, (ordinal, id))| line as u64 == *ordinal && 10 * ordinal == *id)
        );
        assert_eq!(ids.len(), self.lines, "every line is published");
        assert_eq!(receipt["outcomes"]["succeeded"], self.lines as u64);
        assert_eq!(receipt["identity"]["expected"], receipt["identity"]["found"]);
    }
}

impl Run {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The exit code; `None` for a process that was killed.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        let status =
            tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("the run does not end").unwrap();
        status.code()
    }

    /// What it has said on stderr.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }
}
