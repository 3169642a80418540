//! The handle on a server of this program in a process of its own: it is told an order a line on stdin, answers each with a
//! line on stdout, and ends with its stdin.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde::de::DeserializeOwned;

use crate::{error::BenchError, process::Invocation};

/// A server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// As one would type it.
    pub(crate) command: String,
    /// Its base URL.
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(invocation: &Invocation) -> Result<Self, BenchError> {
        let command = invocation.to_string();
        let failed = |source| BenchError::Start { command: command.clone(), source };
        let mut child =
            invocation.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("invariant: stdout was asked for"));
        let mut server = Self { child, stdin, stdout, command, url: String::new() };
        server.url = server.hear()?;
        Ok(server)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and reads the answer.
    pub(crate) fn order<T: DeserializeOwned>(&mut self, order: &str) -> Result<T, BenchError> {
        let stdin = self.stdin.as_mut().expect("invariant: only dropping closes it");
        if writeln!(stdin, "{order}").is_err() {
            return Err(self.ended());
        }
        let said = self.hear()?;
        serde_json::from_str(&said).map_err(|_| self.misunderstood(said))
    }

    /// An answer that is not what was asked for.
    pub(crate) fn misunderstood(&self, said: String) -> BenchError {
        BenchError::Answer { command: self.command.clone(), said }
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
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It is gone already, or cannot be awaited by anybody.
        let _ = self.child.wait();
    }
}
