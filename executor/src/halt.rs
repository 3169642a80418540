//! How the loops of a run are told to end: gently (stop), or at once because the run has failed (halt).

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use crate::error::RunError;

/// Asks a run to stop: dispatch ends, what is known is stored, answers are awaited for a while.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    drain: Arc<OnceLock<Duration>>,
}

impl Stop {
    /// A stop that nobody has asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for it; answers are awaited as long as the job's limits say.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Asks for it; answers are awaited for `drain`.
    pub fn request_with(&self, drain: Duration) {
        // The first request stays.
        let _ = self.drain.set(drain);
        self.token.cancel();
    }

    /// Whether somebody has asked.
    pub fn requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Completes when somebody asks.
    pub async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// How long answers are awaited, if the request said.
    pub(crate) fn drain(&self) -> Option<Duration> {
        self.drain.get().copied()
    }
}

/// The first failure that ends a run. Every loop watches it; the first cause stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Halt {
    token: CancellationToken,
    cause: Arc<Mutex<Option<RunError>>>,
}

impl Halt {
    /// Ends the run because of `cause`.
    pub(crate) fn because(&self, cause: RunError) {
        // A later cause is a consequence of the first.
        self.cause().get_or_insert(cause);
        self.token.cancel();
    }

    /// Whether the run has failed.
    pub(crate) fn is_set(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Completes when the run fails.
    pub(crate) async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// Takes the cause out; a run that was not halted has none.
    pub(crate) fn take_cause(&self) -> Option<RunError> {
        self.cause().take()
    }

    fn cause(&self) -> std::sync::MutexGuard<'_, Option<RunError>> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
