//! A line on its way to an outcome, with what was tried so far.

use std::sync::{Arc, Weak};

use penstock_batchfile::{Attempt, Ordinal};

use crate::ingest::Spool;

/// Attempts that are kept of one line: the newest, since refusals for the rate have no bound.
const HISTORY: usize = 10;

/// One line on its way to an outcome.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) model: Arc<str>,
    pub(super) ordinal: Ordinal,
    /// Where the line begins in the input.
    pub(super) input_offset: u64,
    pub(super) length: u32,
    /// The window that holds its bytes, as long as that exists; later they are read from the input again.
    pub(super) spool: Weak<Spool>,
    /// Attempts that count against the bound.
    pub(super) tries: u32,
    /// Refusals for the rate in a row.
    pub(super) refusals: u32,
    /// What was tried, for the record of a line that fails.
    pub(super) history: Vec<Attempt>,
}

impl Task {
    /// Keeps an attempt for the record.
    pub(super) fn remember(&mut self, attempt: Attempt) {
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(attempt);
    }
}
