//! The log: what was asked, what became of it, and how many bytes went either way. A witness for tests.
//!
//! Owns the entries, the two places they are kept in, and reading the file back.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    faults::Fault,
    operation::{Operation, Transport},
};

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts the arrivals from 0.
    pub sequence: u64,
    /// When it arrived, in milliseconds since the epoch.
    pub at_ms: u64,
    /// How it came.
    pub transport: Transport,
    /// What it asked for.
    pub operation: Operation,
    /// The bucket; empty where the request names none.
    pub bucket: String,
    /// The object, or the prefix of a listing; empty where the request names none.
    pub object: String,
    /// The fault that it met.
    pub fault: Option<Fault>,
    /// Whether it changed something, whatever the client was told.
    pub applied: bool,
    /// The HTTP status that was sent, or the one that stands for the gRPC code; `None` while it is being
    /// answered, and for ever if no answer was sent.
    pub status: Option<u16>,
    /// Bytes of content that arrived.
    pub received_bytes: u64,
    /// Bytes of content that were sent.
    pub sent_bytes: u64,
    /// Whether it is over.
    pub ended: bool,
}

/// A log file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadLogError {
    /// The file itself.
    #[error("read the log {path}: {source}; check that the path is the one the server was given")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that no server wrote.
    #[error("read line {line} of the log {path}: {source}; remove the line or use an unedited log")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Reads a log file: the requests that are over, in the order in which they ended. A last line without its end
/// is still being written and is left out.
pub fn read_log(path: &Path) -> Result<Vec<LogEntry>, ReadLogError> {
    let in_file = |source| ReadLogError::File { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(in_file)?);
    let (mut entries, mut text) = (Vec::new(), Vec::new());
    for line in 1.. {
        text.clear();
        reader.read_until(b'\n', &mut text).map_err(in_file)?;
        if text.last() != Some(&b'\n') {
            break;
        }
        let entry = serde_json::from_slice(&text);
        entries.push(entry.map_err(|source| ReadLogError::Line { path: path.to_owned(), line, source })?);
    }
    Ok(entries)
}

/// The log of one server.
#[derive(Debug)]
pub(crate) struct Log {
    /// The most entries that are kept in memory, oldest first.
    most: usize,
    entries: Mutex<Entries>,
    file: Option<Mutex<File>>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<LogEntry>,
    /// How many arrived.
    arrived: u64,
}

impl Log {
    /// A log that forgets the oldest entries past so many, and appends each that is over to a file, if one is
    /// named.
    pub(crate) fn open(most: usize, file: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = file.map(open).transpose()?.map(Mutex::new);
        Ok(Self { most, entries: Mutex::default(), file })
    }

    /// Adds an arrival and numbers it.
    pub(crate) fn arrived(&self, entry: &mut LogEntry) {
        let mut entries = self.lock();
        entry.sequence = entries.arrived;
        entries.arrived += 1;
        if entries.kept.len() >= self.most {
            entries.kept.pop_front();
        }
        if self.most > 0 {
            entries.kept.push_back(entry.clone());
        }
    }

    /// Appends a request that is over to the file.
    pub(crate) fn ended(&self, entry: &LogEntry) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }

    /// Changes an entry, if it is still kept.
    pub(crate) fn amend(&self, sequence: u64, change: impl FnOnce(&mut LogEntry)) {
        let mut entries = self.lock();
        let first = entries.arrived - entries.kept.len() as u64;
        let index = sequence.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| entries.kept.get_mut(index)) {
            change(entry);
        }
    }

    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        self.lock().kept.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str) -> LogEntry {
        LogEntry {
            sequence: 0,
            at_ms: 1,
            transport: Transport::Grpc,
            operation: Operation::Delete,
            bucket: "bucket".to_owned(),
            object: object.to_owned(),
            fault: Some(Fault::ErrorAfter { status: 503 }),
            applied: true,
            status: Some(503),
            received_bytes: 0,
            sent_bytes: 0,
            ended: true,
        }
    }

    #[test]
    fn the_file_reads_back_and_memory_forgets_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let log = Log::open(2, Some(&path)).unwrap();
        let mut entries = ["a", "b", "c"].map(entry);
        for entry in &mut entries {
            log.arrived(entry);
            log.ended(entry).unwrap();
        }
        assert_eq!(read_log(&path).unwrap(), entries);
        assert_eq!(log.entries(), entries[1..]);
        log.amend(0, |entry| entry.applied = false);
        log.amend(2, |entry| entry.applied = false);
        assert_eq!(log.entries().iter().map(|entry| entry.applied).collect::<Vec<_>>(), [true, false]);
        std::fs::write(&path, "{}\n").unwrap();
        assert!(read_log(&path).is_err_and(|error| error.to_string().contains("line 1")));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(read_log(&path).unwrap(), []);
    }
}
