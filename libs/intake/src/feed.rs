//! Brings the bytes of an input, in order, to the blocking threads that work on them.
//!
//! The channels are short: reading is ahead of the work by a few chunks and no more.

use std::ops::ControlFlow;

use bytes::Bytes;
use penstock_batchfile::{Line, LineSplitter, Ordinal, Position};
use penstock_storage::Action;
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};

use crate::{
    IntakeError,
    reading::{Progress, Reading, Stage},
    retry::{Resumed, retry},
};

/// How many chunks wait for each worker.
const CHUNKS_AHEAD: usize = 3;

/// The receiving end of an input: its chunks in order.
#[derive(Debug)]
pub(crate) struct Chunks {
    incoming: Receiver<Bytes>,
    missing_bytes: u64,
}

impl Chunks {
    /// Both ends for an input of `size_bytes`.
    pub(crate) fn channel(size_bytes: u64) -> (Sender<Bytes>, Self) {
        let (outlet, incoming) = channel(CHUNKS_AHEAD);
        (outlet, Self { incoming, missing_bytes: size_bytes })
    }

    /// Visits every chunk. An error if the reading ended before the input did.
    pub(crate) fn each(
        mut self,
        mut visit: impl FnMut(&[u8]) -> Result<(), IntakeError>,
    ) -> Result<(), IntakeError> {
        while let Some(chunk) = self.incoming.blocking_recv() {
            self.missing_bytes = self.missing_bytes.saturating_sub(chunk.len() as u64);
            visit(&chunk)?;
        }
        if self.missing_bytes == 0 { Ok(()) } else { Err(IntakeError::Stopped) }
    }

    /// Visits every line that is not blank.
    pub(crate) fn each_line(
        self,
        max_line_bytes: usize,
        mut visit: impl FnMut(&Line<'_>) -> Result<(), IntakeError>,
    ) -> Result<(), IntakeError> {
        let mut splitter = LineSplitter::new(Position::START, max_line_bytes);
        let mut failure = IntakeError::Stopped;
        let mut look = |line: Line<'_>| {
            let visited = match line.position.ordinal {
                Ordinal::MAX => Err(IntakeError::TooManyLines),
                _ => visit(&line),
            };
            visited.map_or_else(
                |error| {
                    failure = error;
                    ControlFlow::Break(())
                },
                ControlFlow::Continue,
            )
        };
        let fed = self.each(|chunk| go_on(splitter.feed(chunk, &mut look)));
        let finished = fed.and_then(|()| go_on(splitter.finish(&mut look)));
        finished.map_err(|_| failure)
    }
}

/// A visit that broke off ends the reading.
fn go_on(visited: ControlFlow<()>) -> Result<(), IntakeError> {
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(IntakeError::Stopped),
    }
}

/// Reads the whole input and gives each chunk to every outlet. Ends early, without an error, when a worker has gone:
/// the worker's own answer says why.
pub(crate) async fn feed(
    reading: &Reading<'_>,
    stage: Stage,
    outlets: Vec<Sender<Bytes>>,
) -> Result<(), IntakeError> {
    reading
        .stop
        .run_until_cancelled(feed_to_the_end(reading, stage, outlets))
        .await
        .unwrap_or(Err(IntakeError::Stopped))
}

async fn feed_to_the_end(
    reading: &Reading<'_>,
    stage: Stage,
    outlets: Vec<Sender<Bytes>>,
) -> Result<(), IntakeError> {
    let input = reading.input;
    let failed = |error| IntakeError::reading(input.uri(), error);
    let total_bytes = input.size_bytes();
    let mut done_bytes = 0;
    (reading.progress)(Progress { stage, done_bytes, total_bytes });
    let mut chunks = Resumed::new(input);
    while let Some(chunk) = chunks.next().await.map_err(failed)? {
        done_bytes += chunk.len() as u64;
        for outlet in &outlets {
            if outlet.send(chunk.clone()).await.is_err() {
                return Ok(());
            }
        }
        (reading.progress)(Progress { stage, done_bytes, total_bytes });
    }
    retry(Action::Read, input.uri(), || input.verify_unchanged()).await.map_err(failed)
}

/// Starts a worker on a thread that may block.
pub(crate) fn work<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// The answer of a worker.
///
/// # Panics
/// If the worker did.
pub(crate) async fn answer<T>(worker: JoinHandle<T>) -> T {
    match worker.await {
        Ok(answer) => answer,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
