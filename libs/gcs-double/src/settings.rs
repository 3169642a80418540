//! What kind of service it is.

use std::{path::PathBuf, time::Duration};

use crate::{faults::FaultRule, name::BucketName, notify::NotificationSettings};

/// Settings of one server.
#[derive(Debug, Clone)]
pub struct StorageSettings {
    /// The buckets that are there from the start.
    pub buckets: Vec<BucketName>,
    /// How long every answer takes at least.
    pub latency: Duration,
    /// How long an object stays as it is after a change; the real service says a second. Zero switches the
    /// limit off, which only a test does that is about something else.
    pub mutation_interval: Duration,
    /// How long an object can neither be deleted nor overwritten, as in a bucket with a retention policy; zero is a bucket
    /// without one.
    pub retention: Duration,
    /// The most objects and prefixes of one page of a listing; the real service says 1,000.
    pub largest_page: usize,
    /// What goes wrong.
    pub faults: Vec<FaultRule>,
    /// Where objects are told that were written.
    pub notifications: Option<NotificationSettings>,
    /// What shares of requests are drawn from.
    pub seed: u64,
    /// How many entries of the log are kept in memory.
    pub log_entries: usize,
    /// Whether every version of every object is kept for a witness.
    pub keep_history: bool,
    /// The file to which requests are appended when they are over, one JSON object a line.
    pub log_file: Option<PathBuf>,
    /// Where contents are put that are too large for memory; the folder of the system if none is named.
    pub folder: Option<PathBuf>,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            latency: Duration::ZERO,
            mutation_interval: Duration::from_secs(1),
            retention: Duration::ZERO,
            largest_page: 1_000,
            faults: Vec::new(),
            notifications: None,
            seed: 0,
            log_entries: 1_000_000,
            keep_history: false,
            log_file: None,
            folder: None,
        }
    }
}
