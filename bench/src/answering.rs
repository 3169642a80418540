//! The handle on a process of the fixed-answer server.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use crate::{
    arguments::ONE_WORD,
    error::BenchError,
    process::{Cores, Invocation},
    server::Tally,
    spread::number,
};

/// A server in a process of its own; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    command: String,
    /// Its base URL.
    pub(crate) url: String,
}

impl Answering {
    /// Starts it on these cores. `own` is this program.
    pub(crate) fn start(own: &Path, cores: Cores) -> Result<Self, BenchError> {
        Self::with_text(own, cores, ONE_WORD)
    }

    /// Starts one whose answers have a text of so many bytes.
    pub(crate) fn with_text(own: &Path, cores: Cores, bytes: usize) -> Result<Self, BenchError> {
        let bytes = bytes.to_string();
        let invocation = Invocation::new(cores, own, ["serve", "--text-bytes", &bytes]);
        let command = invocation.to_string();
        let failed = |source| BenchError::Start { command: command.clone(), source };
        let mut child =
            invocation.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("invariant: stdout was asked for"));
        let mut server = Self { child, stdin, stdout, command: command.clone(), url: String::new() };
        server.url = server.hear()?;
        Ok(server)
    }

    /// As one would type it.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// What it has seen since it was last reset.
    pub(crate) fn tally(&mut self) -> Result<Tally, BenchError> {
        self.order("tally")
    }

    /// Forgets what was seen.
    pub(crate) fn reset(&mut self) -> Result<(), BenchError> {
        self.order("reset").map(drop)
    }

    /// How long it has been on a core so far.
    pub(crate) fn busy(&self) -> Result<Duration, BenchError> {
        // The main thread does all the work; the first number is its time on a core in nanoseconds.
        let path = format!("/proc/{}/schedstat", self.child.id());
        let text =
            fs::read_to_string(&path).map_err(|source| BenchError::File { path: path.into(), source })?;
        let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse().ok());
        nanoseconds.map(Duration::from_nanos).ok_or_else(|| self.misunderstood(text))
    }

    fn order(&mut self, order: &str) -> Result<Tally, BenchError> {
        let stdin = self.stdin.as_mut().expect("invariant: only dropping closes it");
        if writeln!(stdin, "{order}").is_err() {
            return Err(self.ended());
        }
        let said = self.hear()?;
        serde_json::from_str(&said).map_err(|_| self.misunderstood(said))
    }

    /// The next line that it says.
    fn hear(&mut self) -> Result<String, BenchError> {
        let mut said = String::new();
        match self.stdout.read_line(&mut said) {
            Ok(length) if length > 0 => Ok(said.trim().to_owned()),
            _ => Err(self.ended()),
        }
    }

    /// How it ended, now that it can neither be told anything nor says anything.
    fn ended(&mut self) -> BenchError {
        drop(self.stdin.take());
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        BenchError::Ended { command: self.command.clone(), status, words: "see above".to_owned() }
    }

    fn misunderstood(&self, said: String) -> BenchError {
        BenchError::Answer { command: self.command.clone(), said }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It is gone already, or cannot be awaited by anybody.
        let _ = self.child.wait();
    }
}

impl Tally {
    /// Requests a second, from the first to the last.
    pub(crate) fn rate(&self) -> f64 {
        number(self.requests) / self.last.saturating_sub(self.first).as_secs_f64()
    }
}
