//! The one way from async code to blocking file operations.

use tokio::task::{JoinError, spawn_blocking};

/// Runs `operation` on the runtime's blocking threads. It goes on to its end even if the caller stops waiting.
pub(crate) async fn run_blocking<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    value_of(spawn_blocking(operation).await).await
}

/// What a task came to: its panic goes on here. A task that was ended without one was ended by the runtime that is
/// shutting down, and nothing waits for an answer any more.
pub(crate) async fn value_of<T>(joined: Result<T, JoinError>) -> T {
    match joined.map_err(JoinError::try_into_panic) {
        Ok(value) => value,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => std::future::pending().await,
    }
}
