//! The provider double in a process of its own, and what its log says of lines that were sent again.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use memchr::memmem;
use penstock_simulator::{LogEntry, read_log};

use crate::{
    error::BenchError,
    process::{Cores, Invocation, Running},
};

/// How the log begins the line of a request that arrived.
const RECEIVED: &[u8] = br#"{"event":"received""#;

/// A double; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Simulated {
    _running: Running,
    log: PathBuf,
    file: BufReader<File>,
    received: usize,
    /// As one would type it.
    pub(crate) command: String,
    /// Its base URL.
    pub(crate) url: String,
}

impl Simulated {
    /// Starts one that answers after `latency_ms` milliseconds.
    pub(crate) fn start(penstock: &Path, folder: &Path, latency_ms: u32) -> Result<Self, BenchError> {
        Self::with(penstock, folder, ["--latency-ms", &latency_ms.to_string()])
    }

    /// Starts one with the settings of a file.
    pub(crate) fn with_settings(penstock: &Path, folder: &Path, settings: &Path) -> Result<Self, BenchError> {
        Self::with(penstock, folder, ["--settings", &settings.display().to_string()])
    }

    fn with(penstock: &Path, folder: &Path, more: [&str; 2]) -> Result<Self, BenchError> {
        let log = folder.join("requests.jsonl");
        let in_file = |source| BenchError::File { path: log.clone(), source };
        if log.exists() {
            fs::remove_file(&log).map_err(in_file)?;
        }
        let path = log.display().to_string();
        let words = ["simulate", "provider", "--listen", "127.0.0.1:0", "--log", &path];
        let invocation = Invocation::new(Cores::Both, penstock, words).with(more);
        let command = invocation.to_string();
        let (running, stdout) = invocation.start_heard(&folder.join("simulated.txt"))?;
        let mut url = String::new();
        BufReader::new(stdout)
            .read_line(&mut url)
            .map_err(|source| BenchError::Start { command: command.clone(), source })?;
        let file = BufReader::new(File::open(&log).map_err(in_file)?);
        Ok(Self { _running: running, log, file, received: 0, command, url: url.trim().to_owned() })
    }

    /// How many requests have arrived so far.
    pub(crate) fn received(&mut self) -> Result<usize, BenchError> {
        let mut more = Vec::new();
        self.file
            .read_to_end(&mut more)
            .map_err(|source| BenchError::File { path: self.log.clone(), source })?;
        self.received += memmem::find_iter(&more, RECEIVED).count();
        Ok(self.received)
    }

    /// What arrived, in order.
    pub(crate) fn log(&self) -> Result<Vec<LogEntry>, BenchError> {
        Ok(read_log(&self.log)?)
    }
}
