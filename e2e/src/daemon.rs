//! A process that outlives the command that started it: its pid file, its log, its signals, its end.

use std::{
    fs::OpenOptions,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::{
    files::{self, FileError},
    layout::Layout,
    patience::{TooLate, until},
};

/// How long a process may take to leave after SIGTERM. A kubelet that was frozen needs a while.
const LEAVE: Duration = Duration::from_secs(15);

/// A process that cannot be started or stopped.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It does not start.
    #[error("start {name}: {source}")]
    Start {
        /// Which.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// It is not there to be told anything.
    #[error("send {signal:?} to {name}: it does not run; its log is {log}")]
    Absent {
        /// Which.
        name: String,
        /// What it was to be told.
        signal: Signal,
        /// Where its last words are.
        log: PathBuf,
    },
    /// It cannot be told.
    #[error("send {signal:?} to {name}: {source}")]
    Signal {
        /// Which.
        name: String,
        /// What it was to be told.
        signal: Signal,
        /// What the system says.
        source: rustix::io::Errno,
    },
    /// Its pid file or log.
    #[error(transparent)]
    File(#[from] FileError),
    /// It stays although it was killed.
    #[error(transparent)]
    TooLate(#[from] TooLate),
}

/// A process by its name.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    pid_file: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// The process of this name in a cluster.
    pub fn new(layout: &Layout, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { pid_file: layout.state(format!("{name}.pid")), log: layout.log(&name), name }
    }

    /// Starts it, unless it runs. It belongs to no terminal, so that Ctrl-C leaves it alone.
    pub fn start(&self, command: &mut Command) -> Result<(), DaemonError> {
        if self.pid().is_some() {
            return Ok(());
        }
        let failed = |source| DaemonError::Start { name: self.name.clone(), source };
        self.log.parent().map(files::folder).transpose()?;
        let log = OpenOptions::new().create(true).append(true).open(&self.log).map_err(failed)?;
        let copy = log.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(log).stderr(copy).process_group(0);
        let child = command.spawn().map_err(failed)?;
        let birth = birth(child.id()).unwrap_or_default();
        Ok(files::write(&self.pid_file, format!("{} {birth}\n", child.id()))?)
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.pid().is_some()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), DaemonError> {
        let name = || self.name.clone();
        let Some(pid) = self.pid() else {
            return Err(DaemonError::Absent { name: name(), signal, log: self.log.clone() });
        };
        kill_process(pid, signal).map_err(|source| DaemonError::Signal { name: name(), signal, source })
    }

    /// Ends it, with SIGKILL if it does not leave by itself; nothing to do where it does not run.
    pub async fn stop(&self) -> Result<(), DaemonError> {
        if self.runs() {
            // A process that is frozen does not hear SIGTERM before it is thawed.
            self.signal(Signal::CONT)?;
            self.signal(Signal::TERM)?;
            if self.gone().await.is_err() {
                self.signal(Signal::KILL)?;
                self.gone().await?;
            }
        }
        Ok(files::remove(&self.pid_file)?)
    }

    async fn gone(&self) -> Result<(), TooLate> {
        let what = format!("{} to leave", self.name);
        until(&what, LEAVE, || async { if self.runs() { Err("it is still there") } else { Ok(()) } }).await
    }

    /// Its pid, if the process that was started is alive: a number is given to another process some day.
    fn pid(&self) -> Option<Pid> {
        let text = std::fs::read_to_string(&self.pid_file).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        let pid: u32 = pid.parse().ok()?;
        (birth(pid)? == started).then(|| Pid::from_raw(i32::try_from(pid).ok()?)).flatten()
    }
}

/// When a process was started, in the clock ticks of `/proc/PID/stat`; `None` where it is gone or only waited for.
fn birth(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold spaces and brackets itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    (state != "Z" && state != "X").then(|| fields.nth(18).map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping(layout: &Layout) -> Daemon {
        let daemon = Daemon::new(layout, "sleeper");
        daemon.start(Command::new("sleep").arg("600")).unwrap();
        daemon
    }

    #[tokio::test]
    async fn a_process_is_started_once_and_stopped_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::at(folder.path());
        let first = sleeping(&layout).pid();
        let daemon = sleeping(&layout);
        assert!(first.is_some() && daemon.pid() == first);
        daemon.stop().await.unwrap();
        assert!(!daemon.runs());
        daemon.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_frozen_process_is_stopped_too() {
        let folder = tempfile::tempdir().unwrap();
        let daemon = sleeping(&Layout::at(folder.path()));
        daemon.signal(Signal::STOP).unwrap();
        daemon.stop().await.unwrap();
        assert!(!daemon.runs());
    }

    #[test]
    fn a_pid_that_another_process_has_now_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::at(folder.path());
        let daemon = Daemon::new(&layout, "other");
        files::write(&daemon.pid_file, format!("{} 1\n", std::process::id())).unwrap();
        assert!(!daemon.runs());
    }
}
