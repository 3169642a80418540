//! Running a program to its end: with a deadline, and with what it said in the error.

use std::{ffi::OsStr, io, path::Path, process::Stdio, time::Duration};

use thiserror::Error;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

/// How long a program may take unless its caller knows better.
const USUAL: Duration = Duration::from_secs(30);

/// A program that did not do what it was asked.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It cannot be started, or not be spoken to.
    #[error("run {program}: {source}")]
    Unusable {
        /// Its name.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It ended with another code than 0.
    #[error("run `{line}`: {status}: {said}")]
    Failed {
        /// The command line.
        line: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it wrote to stderr.
        said: String,
    },
    /// It was ended because it took too long.
    #[error("run `{line}` within {} s", limit.as_secs())]
    TooLong {
        /// The command line.
        line: String,
        /// How long it had.
        limit: Duration,
    },
}

/// A program that is to be run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    line: String,
    input: Option<Vec<u8>>,
    limit: Duration,
}

impl Program {
    /// One of `PATH`, or a path.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).kill_on_drop(true);
        Self { command, line: program.to_string_lossy().into_owned(), input: None, limit: USUAL }
    }

    /// Adds one argument.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        let argument = argument.as_ref();
        self.line.push(' ');
        self.line.push_str(&argument.to_string_lossy());
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn arguments<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::argument)
    }

    /// Sets a variable of its environment.
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it in this folder.
    pub fn inside(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Gives it this on stdin.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.command.stdin(Stdio::piped());
        self.input = Some(input.into());
        self
    }

    /// Gives it so much time instead of the usual half minute.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Lets it write to the terminal: for what takes minutes and tells of its progress.
    pub async fn watched(mut self) -> Result<(), CommandError> {
        self.command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        self.end().await.map(drop)
    }

    /// Runs it; what it wrote to stdout.
    pub async fn run(mut self) -> Result<String, CommandError> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.end().await
    }

    async fn end(mut self) -> Result<String, CommandError> {
        let unusable = |source| CommandError::Unusable { program: self.line.clone(), source };
        let mut child = self.command.spawn().map_err(unusable)?;
        let (stdin, input) = (child.stdin.take(), self.input.take());
        let writing = async {
            match (stdin, input) {
                (Some(mut stdin), Some(input)) => stdin.write_all(&input).await,
                _ => Ok(()),
            }
        };
        // Both at once: a program that writes much before it has read all would wait for its reader.
        let both = async { tokio::join!(writing, child.wait_with_output()) };
        let Ok((written, ended)) = timeout(self.limit, both).await else {
            return Err(CommandError::TooLong { line: self.line, limit: self.limit });
        };
        let ended = ended.map_err(unusable)?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            return Err(CommandError::Failed { line: self.line, status: ended.status, said });
        }
        written.map_err(unusable)?;
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_told_its_input_and_tells_its_output() {
        let told = Program::new("cat").input("hello").run().await.unwrap();
        assert_eq!(told, "hello");
    }

    #[tokio::test]
    async fn what_a_failed_program_said_is_in_its_error() {
        let error = Program::new("sh").arguments(["-c", "echo no >&2; exit 3"]).run().await.unwrap_err();
        assert!(matches!(&error, CommandError::Failed { said, .. } if said == "no"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_ended() {
        let error = Program::new("sleep").argument("60").within(Duration::from_millis(10)).run().await;
        assert!(matches!(error, Err(CommandError::TooLong { .. })), "{error:?}");
    }
}
