//! A folder of its own for each test, a provider that remembers, and the binary.

use std::{
    ffi::OsStr,
    fs,
    io::BufReader,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

use penstock_simulator::{LogEntry, LogSettings, ProviderSettings, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// Time between two looks at whether something holds.
const POLL: Duration = Duration::from_millis(5);

/// The variables that providers' keys are read from. A test sets those that it needs.
const KEYS: [&str; 5] =
    ["OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY"];

/// A test's folder and provider.
pub(crate) struct World {
    folder: TempDir,
    runtime: Runtime,
    server: Option<Server>,
}

/// What a process said and how it ended.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(ProviderSettings::default())
    }

    /// With a provider like this, which remembers what it was asked.
    pub(crate) fn with(settings: ProviderSettings) -> Self {
        let settings = ProviderSettings {
            log: LogSettings { entries_in_memory: 100_000, ..LogSettings::default() },
            ..settings
        };
        let runtime = Runtime::new().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = runtime.block_on(Server::start(settings, address)).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), runtime, server: Some(server) }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// What the provider was asked so far.
    pub(crate) fn asked(&self) -> Vec<LogEntry> {
        self.server().log()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A file of so many prompts.
    pub(crate) fn prompts(&self, count: usize) -> PathBuf {
        let lines = (0..count).map(|id| format!("{{\"prompt_id\": {id}, \"prompt\": \"question {id}\"}}\n"));
        self.write("in.jsonl", &lines.collect::<String>())
    }

    /// The binary, in the test's folder.
    pub(crate) fn penstock<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command.args(arguments).current_dir(self.folder.path()).env_remove("PENSTOCK_LOG");
        // No test hears of another one.
        command.env("XDG_STATE_HOME", self.path("state"));
        for name in KEYS {
            command.env_remove(name);
        }
        command
    }

    /// `penstock run` of `input` into `out` against this world's provider, with further arguments.
    pub(crate) fn run_command(&self, input: &Path, further: &[&str]) -> Command {
        let url = self.server().base_url();
        let mut command =
            self.penstock(["run", "--output", "out", "--provider", "simulated", "--base-url", &url]);
        command.arg(input).args(further);
        command
    }

    /// The same, to its end.
    pub(crate) fn run(&self, input: &Path, further: &[&str]) -> Said {
        said(&self.run_command(input, further).output().unwrap())
    }

    /// Another command, to its end.
    pub(crate) fn say(&self, arguments: &[&str]) -> Said {
        said(&self.penstock(arguments).output().unwrap())
    }

    /// Waits until the provider was asked so often.
    pub(crate) fn await_requests(&self, count: u64) {
        self.await_that(|| self.server().requests().received >= count);
    }

    /// Waits until something holds.
    pub(crate) fn await_that(&self, holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < DEADLINE, "waited for too long");
            self.runtime.block_on(async { tokio::time::sleep(POLL).await });
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.shutdown());
        }
    }
}

/// A process that does not outlive its test.
pub(crate) struct Running {
    child: Option<Child>,
}

/// Starts a process whose output is kept.
pub(crate) fn start(mut command: Command) -> Running {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Running { child: Some(child) }
}

impl Running {
    fn child(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }

    pub(crate) fn pid(&mut self) -> u32 {
        self.child().id()
    }

    /// What it writes from now on; not part of what it has said at its end.
    pub(crate) fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child().stdout.take().unwrap())
    }

    /// What it says from now on; not part of what it has said at its end.
    pub(crate) fn stderr(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child().stderr.take().unwrap())
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(self.child()), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        said(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn said(output: &Output) -> Said {
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout.clone()).unwrap(),
        stderr: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}

impl Said {
    /// Of a command that is carried out to its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        said(&command.output().unwrap())
    }

    /// The same, once it has ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The same, once stderr has told this.
    #[track_caller]
    pub(crate) fn told(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in\n{}", self.stderr);
        self
    }

    /// Stdout as JSON lines.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
