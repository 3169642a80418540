//! A wall clock that jumps, forwards and backwards.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use fastrand::Rng;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How far the wall clock is off at most.
const HOURS: i64 = 3 * 3_600_000;

/// Steps of the wall clock, forwards and backwards, until it is stopped or dropped.
pub(crate) struct Clock {
    over: DropGuard,
    steps: JoinHandle<u64>,
}

impl Clock {
    pub(crate) fn start(file: PathBuf, seed: u64) -> Self {
        let over = CancellationToken::new();
        let stopped = over.clone();
        let mut random = Rng::with_seed(!seed);
        let steps = tokio::spawn(async move {
            let mut count = 0;
            loop {
                let pause = Duration::from_millis(random.u64(20..500));
                if tokio::time::timeout(pause, stopped.cancelled()).await.is_ok() {
                    set_clock(&file, 0);
                    return count;
                }
                let most = random.choice([100, 10_000, HOURS]).unwrap();
                set_clock(&file, random.i64(-most..most));
                count += 1;
            }
        });
        Self { over: over.drop_guard(), steps }
    }

    /// The number of steps.
    pub(crate) async fn stop(self) -> u64 {
        drop(self.over);
        self.steps.await.unwrap()
    }
}

/// Lets the wall clock of all processes be off by so much. The file is never seen half written.
pub(crate) fn set_clock(file: &Path, offset_ms: i64) {
    let next = file.with_extension("next");
    fs::write(&next, offset_ms.to_string()).unwrap();
    fs::rename(next, file).unwrap();
}
