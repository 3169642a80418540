//! Counts over the life of a server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the server was asked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that make sense of themselves.
    pub received: u64,
    /// Carried out.
    pub succeeded: u64,
    /// Answered with another status below 500.
    pub refused: u64,
    /// Answered with a status from 500.
    pub failed: u64,
    /// Ended without an answer: dropped, stalled, or left by the client.
    pub unanswered: u64,
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    succeeded: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    unanswered: AtomicU64,
}

impl Counters {
    /// Counts the end of a request that was answered with this status, if it was.
    pub(crate) fn ended(&self, status: Option<u16>) {
        let counter = match status {
            None => &self.unanswered,
            // An upload in chunks is told to go on with 308.
            Some(200..=299 | 308) => &self.succeeded,
            Some(300..=499) => &self.refused,
            Some(_) => &self.failed,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn so_far(&self) -> Requests {
        // The arrivals are read last, so that no request is seen ended that was not seen to arrive.
        let counters = [&self.succeeded, &self.refused, &self.failed, &self.unanswered, &self.received];
        let [succeeded, refused, failed, unanswered, received] = counters.map(|count| count.load(Relaxed));
        Requests { received, succeeded, refused, failed, unanswered }
    }
}
