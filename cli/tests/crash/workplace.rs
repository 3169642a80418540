//! A job in a folder or in a bucket, with its witness, a provider double with its log, and runs of the real binary.

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use penstock_executor::injection::land;
use penstock_simulator::{Distribution, ProviderSettings, Server};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    site::{Kind, Site},
    witness::{Line, Moment, Published, Witness},
};

/// Requests in flight of every run.
pub(crate) const IN_FLIGHT: usize = 16;
/// No run of these tests takes longer.
const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) struct Workplace {
    folder: TempDir,
    pub(crate) site: Site,
    pub(crate) server: Server,
    pub(crate) witness: Witness,
    in_flight: usize,
    compose_limit: Option<usize>,
}

/// A command that is about to be run.
pub(crate) struct Launch<'a> {
    place: &'a Workplace,
    command: Command,
}

/// What makes a job the one that a test needs.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) latency_ms: f64,
    pub(crate) in_flight: usize,
    pub(crate) deadline_seconds: Option<u32>,
    pub(crate) compose_limit: Option<usize>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { latency_ms: 5.0, in_flight: IN_FLIGHT, deadline_seconds: None, compose_limit: None }
    }
}

/// One run of the binary; what it says goes to a file.
pub(crate) struct Run {
    child: Child,
    id: u32,
    errors: PathBuf,
}

impl Workplace {
    /// A job of so many valid lines in a folder.
    pub(crate) async fn new(lines: usize) -> Self {
        Self::of(Kind::Folder, (0..lines).map(valid).collect(), &Terms::default()).await
    }

    /// A job of these lines, each with its text.
    pub(crate) async fn of(kind: Kind, lines: Vec<(String, Line)>, terms: &Terms) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (texts, lines): (Vec<String>, Vec<Line>) = lines.into_iter().unzip();
        let site = Site::new(kind, folder.path().to_owned(), texts.concat().as_bytes()).await;
        // A zombie learns at its next checkpoint that it is one.
        let mut limits = "limits:\n  checkpoint_seconds: 1\n".to_owned();
        if let Some(seconds) = terms.deadline_seconds {
            writeln!(limits, "  deadline_seconds: {seconds}").unwrap();
        }
        fs::write(folder.path().join("job.yaml"), limits).unwrap();
        let mut settings = ProviderSettings::default();
        settings.latency.start_ms = Distribution::Constant(terms.latency_ms);
        settings.log.entries_in_memory = 100_000;
        let server = Server::start(settings, (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let witness = Witness::of(site.seen(), lines);
        Self { folder, site, server, witness, in_flight: terms.in_flight, compose_limit: terms.compose_limit }
    }

    /// A document of the output, if it is there.
    pub(crate) fn document(&self, name: &str) -> Option<Value> {
        self.site.seen().document(name)
    }

    /// `penstock run`, with these further arguments.
    pub(crate) fn run(&self, more: &[&str]) -> Launch<'_> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command
            .arg("run")
            .arg(self.site.input())
            .arg("--output")
            .arg(self.site.output())
            .arg("--job")
            .arg(self.folder.path().join("job.yaml"))
            .args(["--provider", "simulated", "--base-url", &self.server.base_url()])
            .args(["--max-in-flight", &self.in_flight.to_string()])
            .args(more);
        self.launch(command)
    }

    /// `penstock cancel`.
    pub(crate) fn cancel(&self) -> Launch<'_> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command.arg("cancel").arg(self.site.output());
        self.launch(command)
    }

    fn launch(&self, mut command: Command) -> Launch<'_> {
        self.site.lead(&mut command);
        if let Some(limit) = self.compose_limit {
            command.env("PENSTOCK_INJECT_COMPOSE_LIMIT", limit.to_string());
        }
        Launch { place: self, command }
    }

    /// The folder for a write that is to land later.
    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    /// Lets the write that a run has kept land now; whether it was applied.
    pub(crate) async fn land(&self) -> bool {
        land(&self.kept(), &*self.site.store().await).await
    }

    /// The same, started.
    pub(crate) fn start(&self, more: &[&str]) -> Run {
        self.run(more).start()
    }

    /// Waits until the double has answered so many requests, over all runs.
    pub(crate) async fn wait_until_answered(&self, count: u64, run: &mut Run) {
        self.wait_for(|| self.server.requests().succeeded >= count, run).await;
    }

    pub(crate) async fn wait_for_file(&self, name: &str, run: &mut Run) {
        let seen = self.site.seen();
        self.wait_for(|| seen.now().contains(name), run).await;
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
        timeout(PATIENCE, wait).await.expect("the run makes no progress");
    }

    /// Stops a run, but not within a write: there it would hold the lock of the folder, and its successor wait for it.
    pub(crate) async fn suspend(&self, run: &Run) {
        loop {
            run.signal(Signal::STOP);
            assert!(run.is_stopped().await, "the run has ended: {}", run.errors());
            if !self.site.is_locked() {
                return;
            }
            run.signal(Signal::CONT);
        }
    }

    /// How many requests were sent again.
    pub(crate) fn repeated(&self) -> usize {
        self.witness.requests(&self.server.log()).repeats()
    }

    /// What is published, when every check of the witness has held.
    pub(crate) async fn finish(self) -> Published {
        let Self { site, server, witness, .. } = self;
        server.shutdown().await;
        site.close().await;
        witness.finish()
    }

    /// What is safe now.
    pub(crate) fn moment(&self) -> Moment {
        self.witness.moment(&self.server.log())
    }

    /// No line that was safe at `moment` was asked again.
    pub(crate) fn assert_nothing_safe_was_asked_since(&self, moment: &Moment) {
        let again = self.witness.requests(&self.server.log()).asked_again_since(moment);
        assert!(again.is_empty(), "T5: durable, and asked again: {again:?}");
    }
}

impl Launch<'_> {
    /// Lets this happen to the run; see `executor/src/injection.rs`.
    pub(crate) fn inject(mut self, rules: &str) -> Self {
        self.command.env("PENSTOCK_INJECT", rules).env("PENSTOCK_INJECT_KEPT", self.place.kept());
        self
    }

    pub(crate) fn start(mut self) -> Run {
        let folder = self.place.folder.path();
        let errors = tempfile::NamedTempFile::new_in(folder).unwrap().into_temp_path().keep().unwrap();
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = child.id().unwrap();
        Run { child, id, errors }
    }
}

impl Run {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.id).unwrap()).unwrap()
    }

    /// The exit code; `None` for a process that was killed.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        self.status().await.code()
    }

    /// Waits for it to exit with this code.
    pub(crate) async fn ends_with(&mut self, code: i32) {
        let status = self.status().await;
        assert_eq!(status.code(), Some(code), "{status}: {}", self.errors());
    }

    /// Waits for it to be killed by the step that was to kill it.
    pub(crate) async fn is_killed(&mut self) {
        let status = self.status().await;
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status}: {}", self.errors());
    }

    /// Waits until it is stopped (`true`) or has ended.
    pub(crate) async fn is_stopped(&self) -> bool {
        let pid = self.pid();
        let wait = spawn_blocking(move || {
            let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), options).unwrap().is_some_and(|status| status.stopped())
        });
        timeout(PATIENCE, wait).await.expect("the run neither stops nor ends").unwrap()
    }

    pub(crate) async fn status(&mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("the run does not end").unwrap()
    }

    /// What it has said on stderr.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }
}

/// A valid line and its text.
pub(crate) fn valid(ordinal: usize) -> (String, Line) {
    let (id, prompt) = (Value::from(10 * ordinal), format!("question {ordinal}"));
    let mut text = String::new();
    writeln!(text, r#"{{"prompt_id":{id},"prompt":"{prompt}"}}"#).unwrap();
    (text, Line { id, prompt, rejected: false })
}

/// A line that validation rejects, although its id can be read.
pub(crate) fn invalid(ordinal: usize) -> (String, Line) {
    let id = Value::from(10 * ordinal);
    (format!("{{\"prompt_id\":{id},\"prompt\":7}}\n"), Line { id, prompt: String::new(), rejected: true })
}
