//! The rows of a table, a few at once; every row that fails is named.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::{sync::Semaphore, task::JoinSet};

/// Rows at once.
const AT_ONCE: usize = 4;

/// Runs every row to its end.
pub(crate) async fn run_all<R, F>(rows: Vec<R>, run: impl Fn(R) -> F)
where
    R: std::fmt::Debug,
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for row in rows {
        let (name, work, room) = (format!("{row:?}"), run(row), Arc::clone(&room));
        running.spawn(async move {
            let _permit = room.acquire_owned().await.unwrap();
            // Only to name the row: what was broken is in folders of its own.
            AssertUnwindSafe(work).catch_unwind().await.is_err().then_some(name)
        });
    }
    let failed: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(
        failed.is_empty(),
        "{} rows failed, each with its own message above:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
