//! The log: what was asked and how it was answered, for a witness that trusts no other counter.
//!
//! Owns the entries, the two places they are kept in, and reading the file back. Each arrival and each answer
//! is one line, written at once, so that the file tells what was sent even if the client dies.

use std::{
    collections::{HashMap, VecDeque},
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{fault::Fault, settings::LogSettings};

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Counts the arrivals from 0; starts again with each server.
    pub sequence: u64,
    /// When it had arrived in whole, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The path that was asked.
    pub path: String,
    /// The model that was asked; `None` where the request could not be read or names none.
    pub model: Option<String>,
    /// The start (200 bytes at most) of the last user text, or of the last input of another endpoint.
    pub prompt: String,
    /// 16 hex digits: the start of the SHA-256 of the whole prompt. `None` where there is no prompt.
    pub prompt_hash: Option<String>,
    /// How often this prompt had arrived before.
    pub times_seen: u32,
    /// The first eight hex digits of the SHA-256 of the key; the key itself is never kept.
    pub authorization_fingerprint: Option<String>,
    /// How it ended; `None` while it is being answered, and for ever if the server died meanwhile.
    #[serde(skip)]
    pub answer: Option<LogAnswer>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogAnswer {
    /// When, in milliseconds since the epoch.
    pub at_ms: u64,
    /// The status that was sent; `None` where the connection was dropped or nothing ever came.
    pub status: Option<u16>,
    /// The fault that the request met.
    pub fault: Option<Fault>,
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Whether the client went away before it had an answer.
    pub client_closed: bool,
}

impl LogEntry {
    /// The status that was sent, if one was.
    pub fn status(&self) -> Option<u16> {
        self.answer.and_then(|answer| answer.status)
    }
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Received(LogEntry),
    Answered {
        sequence: u64,
        #[serde(flatten)]
        answer: LogAnswer,
    },
}

/// A log file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadLogError {
    /// The file itself.
    #[error("read the simulator's log {path}: {source}; check that the path is the one the server was given")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that no simulator wrote.
    #[error(
        "read line {line} of the simulator's log {path}: {source}; remove the line or use an unedited log"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Reads a log file: the arrivals in order, each with its answer. A last line without its end is still being
/// written and is left out.
pub fn read_log(path: &Path) -> Result<Vec<LogEntry>, ReadLogError> {
    let in_file = |source| ReadLogError::File { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(in_file)?);
    let mut entries: Vec<LogEntry> = Vec::new();
    // A later server that appends to the same file starts at sequence 0 again; answers belong to the latest.
    let mut latest: HashMap<u64, usize> = HashMap::new();
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        reader.read_until(b'\n', &mut text).map_err(in_file)?;
        if text.last() != Some(&b'\n') {
            break;
        }
        let event = serde_json::from_slice(&text).map_err(|source| ReadLogError::Line {
            path: path.to_owned(),
            line,
            source,
        })?;
        match event {
            Event::Received(entry) => {
                latest.insert(entry.sequence, entries.len());
                entries.push(entry);
            }
            Event::Answered { sequence, answer } => {
                if let Some(&index) = latest.get(&sequence) {
                    entries[index].answer = Some(answer);
                }
            }
        }
    }
    Ok(entries)
}

/// The log of one server.
#[derive(Debug, Default)]
pub(crate) struct Log {
    memory: Option<Mutex<Memory>>,
    file: Option<Mutex<File>>,
}

/// The newest entries. Their sequences are consecutive.
#[derive(Debug)]
struct Memory {
    most: usize,
    entries: VecDeque<LogEntry>,
}

impl Memory {
    fn received(&mut self, entry: LogEntry) {
        if self.entries.len() == self.most {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    fn answered(&mut self, sequence: u64, answer: LogAnswer) {
        let first = self.entries.front().map_or(0, |entry| entry.sequence);
        let index = sequence.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.answer = Some(answer);
        }
    }
}

impl Log {
    /// Opens the log that the settings ask for.
    pub(crate) fn open(settings: &LogSettings) -> io::Result<Self> {
        let most = settings.entries_in_memory;
        let open = |path: &PathBuf| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self {
            memory: (most > 0).then(|| Mutex::new(Memory { most, entries: VecDeque::new() })),
            file: settings.file.as_ref().map(open).transpose()?.map(Mutex::new),
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.memory.is_some() || self.file.is_some()
    }

    pub(crate) fn received(&self, entry: LogEntry) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            lock(memory).received(entry.clone());
        }
        self.append(|| Event::Received(entry))
    }

    pub(crate) fn answered(&self, sequence: u64, answer: LogAnswer) -> io::Result<()> {
        if let Some(memory) = &self.memory {
            lock(memory).answered(sequence, answer);
        }
        self.append(|| Event::Answered { sequence, answer })
    }

    /// The entries kept in memory, oldest first.
    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        self.memory.as_ref().map(|memory| lock(memory).entries.iter().cloned().collect()).unwrap_or_default()
    }

    /// One write for each line, with nothing held back: a line in the page cache outlives the process.
    fn append(&self, event: impl FnOnce() -> Event) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut line = serde_json::to_vec(&event())?;
        line.push(b'\n');
        lock(file).write_all(&line)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64) -> LogEntry {
        LogEntry {
            sequence,
            at_ms: 1,
            path: "/v1/completions".to_owned(),
            model: Some("m".to_owned()),
            prompt: format!("prompt {sequence}"),
            prompt_hash: Some("00ff".to_owned()),
            times_seen: 0,
            authorization_fingerprint: None,
            answer: None,
        }
    }

    const ANSWER: LogAnswer = LogAnswer {
        at_ms: 2,
        status: Some(200),
        fault: Some(Fault::SlowBody { total_ms: 3 }),
        input_tokens: 4,
        output_tokens: 5,
        client_closed: false,
    };

    #[test]
    fn the_file_tells_arrivals_with_and_without_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let settings = LogSettings { file: Some(path.clone()), entries_in_memory: 10 };
        let log = Log::open(&settings).unwrap();
        log.received(entry(0)).unwrap();
        log.received(entry(1)).unwrap();
        log.answered(0, ANSWER).unwrap();
        let expected = [LogEntry { answer: Some(ANSWER), ..entry(0) }, entry(1)];
        assert_eq!(read_log(&path).unwrap(), expected);
        assert_eq!(log.entries(), expected);
    }

    #[test]
    fn an_answer_belongs_to_the_latest_server_that_appended() {
        let folder = tempfile::tempdir().unwrap();
        let settings = LogSettings { file: Some(folder.path().join("log.jsonl")), entries_in_memory: 0 };
        Log::open(&settings).unwrap().received(entry(0)).unwrap();
        let second = Log::open(&settings).unwrap();
        second.received(entry(0)).unwrap();
        second.answered(0, ANSWER).unwrap();
        let statuses: Vec<_> =
            read_log(settings.file.as_ref().unwrap()).unwrap().iter().map(LogEntry::status).collect();
        assert_eq!(statuses, [None, Some(200)]);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_a_foreign_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let settings = LogSettings { file: Some(path.clone()), entries_in_memory: 0 };
        Log::open(&settings).unwrap().received(entry(0)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [whole.as_slice(), b"{\"event\":\"rec"].concat()).unwrap();
        assert_eq!(read_log(&path).unwrap(), [entry(0)]);
        std::fs::write(&path, [whole.as_slice(), b"hello\n"].concat()).unwrap();
        assert!(matches!(read_log(&path), Err(ReadLogError::Line { line: 2, .. })));
    }

    #[test]
    fn memory_keeps_the_newest_entries_up_to_its_cap() {
        let log = Log::open(&LogSettings { file: None, entries_in_memory: 2 }).unwrap();
        for sequence in 0..5 {
            log.received(entry(sequence)).unwrap();
        }
        log.answered(0, ANSWER).unwrap();
        log.answered(4, ANSWER).unwrap();
        assert_eq!(log.entries(), [entry(3), LogEntry { answer: Some(ANSWER), ..entry(4) }]);
    }
}
