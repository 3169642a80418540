//! Other programs: on which cores they run, how a reader would type them, and what they used.

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use wait4::Wait4;

use crate::error::BenchError;

/// Bytes of a failed program's stderr that are shown.
const LAST_WORDS: usize = 600;

/// The cores that a process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Core 0: what is measured against.
    First,
    /// Core 1: what is measured.
    Second,
    /// Cores 0 and 1.
    Both,
}

impl Cores {
    const fn list(self) -> &'static str {
        match self {
            Self::First => "0",
            Self::Second => "1",
            Self::Both => "0,1",
        }
    }
}

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    cores: Cores,
    variables: Vec<(&'static str, &'static str)>,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Invocation {
    pub(crate) fn new<'a>(
        cores: Cores,
        program: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        Self { cores, variables: Vec::new(), program: program.to_owned(), arguments }
    }

    /// With more arguments.
    pub(crate) fn with<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// With an environment variable.
    pub(crate) fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// The command, ready to be given its streams.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", self.cores.list()]).arg(&self.program).args(&self.arguments);
        command.envs(self.variables.iter().copied()).stdin(Stdio::null());
        command
    }

    /// Starts it; what it says on stdout is dropped, and on stderr kept in the file `said`.
    pub(crate) fn start(&self, said: &Path) -> Result<Running, BenchError> {
        self.start_with(Stdio::null(), said)
    }

    /// Starts it with its stdout to be read.
    pub(crate) fn start_heard(&self, said: &Path) -> Result<(Running, ChildStdout), BenchError> {
        let mut running = self.start_with(Stdio::piped(), said)?;
        let stdout = running.child.as_mut().and_then(|child| child.stdout.take());
        Ok((running, stdout.expect("invariant: stdout was asked for")))
    }

    fn start_with(&self, stdout: Stdio, said: &Path) -> Result<Running, BenchError> {
        let file = File::create(said).map_err(|source| BenchError::File { path: said.to_owned(), source })?;
        let (begun, begun_at) = (Instant::now(), since_epoch());
        let child = self.command().stdout(stdout).stderr(file).spawn();
        let child = child.map_err(|source| BenchError::Start { command: self.to_string(), source })?;
        Ok(Running { child: Some(child), command: self.to_string(), said: said.to_owned(), begun, begun_at })
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, said: &Path) -> Result<Used, BenchError> {
        self.start(said)?.finish()
    }
}

/// As one would type it; paths below the working folder are shown from there.
impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(formatter, "{name}={value} ")?;
        }
        let here = std::env::current_dir().unwrap_or_default();
        let program = self.program.strip_prefix(&here).unwrap_or(&self.program);
        write!(formatter, "taskset --cpu-list {} {}", self.cores.list(), program.display())?;
        for argument in &self.arguments {
            let path = Path::new(argument).strip_prefix(&here);
            write!(formatter, " {}", path.unwrap_or(Path::new(argument)).display())?;
        }
        Ok(())
    }
}

/// What a process used until its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// On any core, in user and kernel.
    pub(crate) busy: Duration,
    /// The most resident memory at any moment, in bytes.
    pub(crate) peak_bytes: u64,
}

/// A started process; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    command: String,
    said: PathBuf,
    begun: Instant,
    /// When it was started, since the epoch.
    pub(crate) begun_at: Duration,
}

impl Running {
    /// Waits for its end, which must be a success.
    pub(crate) fn finish(mut self) -> Result<Used, BenchError> {
        let child = self.child.take().expect("invariant: nobody else waits");
        let ended =
            child.wait4().map_err(|source| BenchError::Start { command: self.command.clone(), source })?;
        let wall = self.begun.elapsed();
        if !ended.status.success() {
            return Err(BenchError::Ended {
                command: self.command.clone(),
                status: ended.status.to_string(),
                words: last_words(&self.said),
            });
        }
        let used = ended.rusage;
        Ok(Used { wall, busy: used.utime + used.stime, peak_bytes: used.maxrss })
    }

    /// Ends it as `kill -9` does, and returns when it is gone.
    pub(crate) fn kill(mut self) -> Result<(), BenchError> {
        self.end().map_err(|source| BenchError::Start { command: self.command.clone(), source })
    }

    fn end(&mut self) -> std::io::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is gone already, or cannot be ended by anybody.
        let _ = self.end();
    }
}

fn last_words(said: &Path) -> String {
    let text = fs::read(said).unwrap_or_default();
    let start = text.len().saturating_sub(LAST_WORDS);
    String::from_utf8_lossy(&text[start..]).trim().to_owned()
}

/// The time of day, as every process of this machine sees it.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
