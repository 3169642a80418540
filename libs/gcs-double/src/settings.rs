//! What kind of service it is.

use std::{path::PathBuf, time::Duration};

use crate::{faults::FaultRule, name::BucketName};

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
    /// The most objects and prefixes of one page of a listing; the real service says 1,000.
    pub largest_page: usize,
    /// What goes wrong.
    pub faults: Vec<FaultRule>,
    /// What shares of requests are drawn from.
    pub seed: u64,
    /// How many entries of the log are kept in memory.
    pub log_entries: usize,
    /// Where contents are put that are too large for memory; the folder of the system if none is named.
    pub folder: Option<PathBuf>,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            latency: Duration::ZERO,
            mutation_interval: Duration::from_secs(1),
            largest_page: 1_000,
            faults: Vec::new(),
            seed: 0,
            log_entries: 1_000_000,
            folder: None,
        }
    }
}
