//! How the loops of a run are told to end: gently (stop), or at once because the run has failed (halt).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::error::RunError;

/// Asks a run to stop: dispatch ends, what is known is stored, answers are awaited for a while. Who asks again can only
/// make that while shorter.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<Option<Asked>>);

/// When somebody asked, and until when answers are awaited.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// When it was asked to wait as long as the job's limits say.
    by_limits: Option<Instant>,
    /// The end that was asked for.
    until: Option<Instant>,
}

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Stop {
    /// A stop that nobody has asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for it; answers are awaited as long as the job's limits say.
    pub fn request(&self) {
        let now = Instant::now();
        self.ask(|asked| asked.by_limits = Some(asked.by_limits.unwrap_or(now)));
    }

    /// Asks for it; answers are awaited for `drain`.
    pub fn request_with(&self, drain: Duration) {
        let until = Instant::now() + drain;
        self.ask(|asked| asked.until = Some(asked.until.map_or(until, |earlier| earlier.min(until))));
    }

    fn ask(&self, change: impl FnOnce(&mut Asked)) {
        self.0.send_modify(|asked| change(asked.get_or_insert_default()));
    }

    /// Whether somebody has asked.
    pub fn requested(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// When somebody who waits as long as the job's limits say has asked.
    pub(crate) fn requested_at(&self) -> Option<Instant> {
        self.0.borrow().and_then(|asked| asked.by_limits)
    }

    /// Completes when somebody asks.
    pub async fn wait(&self) {
        // The sender is `self`, so the channel stays open.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }

    /// Completes when answers are no longer awaited; `by_limits` is what the job's limits say.
    pub(crate) async fn over(&self, by_limits: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let asked = changes.borrow_and_update().unwrap_or_default();
            let ends = [asked.by_limits.map(|at| at + by_limits), asked.until];
            tokio::select! {
                () = sleep_until(ends.into_iter().flatten().min()) => return,
                _ = changes.changed() => {}
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
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

#[cfg(test)]
mod tests {
    use super::*;

    const BY_LIMITS: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_can_only_shorten_the_wait() {
        let stop = Stop::new();
        let began = Instant::now();
        stop.request_with(Duration::from_mins(10));
        let over = tokio::spawn({
            let stop = stop.clone();
            async move { stop.over(BY_LIMITS).await }
        });
        tokio::time::advance(Duration::from_secs(5)).await;
        stop.request();
        stop.request_with(Duration::from_mins(20));
        over.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 15);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_over_before_somebody_asks() {
        let stop = Stop::new();
        assert!(tokio::time::timeout(Duration::from_mins(1), stop.over(BY_LIMITS)).await.is_err());
        assert!(!stop.requested());
    }
}
