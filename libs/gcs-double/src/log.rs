//! The log: what was asked, what became of it, and how many bytes went either way. A witness for tests.

use std::{
    collections::VecDeque,
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

/// The entries, oldest first.
#[derive(Debug)]
pub(crate) struct Log {
    most: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<LogEntry>,
    /// How many arrived.
    arrived: u64,
}

impl Log {
    /// A log that forgets the oldest entries past so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, entries: Mutex::default() }
    }

    /// Adds what `entry` makes of the sequence number, and returns that number.
    pub(crate) fn arrived(&self, entry: impl FnOnce(u64) -> LogEntry) -> u64 {
        let mut entries = self.lock();
        let sequence = entries.arrived;
        entries.arrived += 1;
        if entries.kept.len() >= self.most {
            entries.kept.pop_front();
        }
        if self.most > 0 {
            entries.kept.push_back(entry(sequence));
        }
        sequence
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
