//! The one way from async code to blocking file operations.

use tokio::task::spawn_blocking;

/// Runs `operation` on the runtime's blocking threads. It goes on to its end even if the caller stops waiting.
///
/// # Panics
/// If `operation` panics, or the runtime is shutting down and will not start it.
pub(crate) async fn run_blocking<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(operation).await {
        Ok(value) => value,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
