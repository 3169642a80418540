//! The places of a server that works on so many requests at once.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::settings::{Slots, WhenFull};

/// Places, and how many requests wait for one.
#[derive(Debug)]
pub(super) struct Places {
    at_once: u32,
    when_full: WhenFull,
    free: Semaphore,
    waiting: AtomicU32,
}

/// There is no place, and nobody may wait for one.
#[derive(Debug)]
pub(super) struct AllTaken;

impl Places {
    pub(super) fn new(slots: Slots) -> Self {
        Self {
            at_once: slots.at_once,
            when_full: slots.when_full,
            free: Semaphore::new(slots.at_once as usize),
            waiting: AtomicU32::new(0),
        }
    }

    /// A place, at once or after a wait, as the server does it.
    pub(super) async fn take(&self) -> Result<SemaphorePermit<'_>, AllTaken> {
        if let Ok(place) = self.free.try_acquire() {
            return Ok(place);
        }
        if self.when_full == WhenFull::Refuse {
            return Err(AllTaken);
        }
        let _waiting = Waiting::begin(&self.waiting);
        self.free.acquire().await.map_err(|_| AllTaken)
    }

    /// Requests that are worked on.
    pub(super) fn running(&self) -> u32 {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX);
        self.at_once.saturating_sub(free)
    }

    /// Requests that wait for a place.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting.load(Relaxed)
    }
}

/// One request that waits, however its wait ends.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
