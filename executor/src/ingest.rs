//! From the input to windows: runs of consecutive lines, copied to local disk and planned at once.
//!
//! At most [`WINDOWS`] windows exist at a time; the next one is read when the oldest has been dispatched.

mod plan;
mod spool;
mod window;

use std::{path::PathBuf, sync::Arc, time::Duration};

use penstock_batchfile::{Ordinal, Position, Rules};
use penstock_job::{OrdinalSet, Reason};
use penstock_storage::{ErrorKind, Input, StorageError};
use tokio::sync::{Semaphore, mpsc};

pub(crate) use plan::{Plan, PlanEntry};
pub(crate) use spool::Spool;
pub(crate) use window::Window;

use self::window::WindowBuilder;
use crate::{board::Board, state_object::REFUSED_PAUSE};

/// Windows that exist at a time.
pub(crate) const WINDOWS: usize = 2;
/// Bytes read from the input at once.
const CHUNK: u64 = 1 << 20;
/// How long to wait before a failed read is repeated.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// What is to be read, and which of its lines.
#[derive(Debug)]
pub(crate) struct Ingest {
    pub(crate) input: Arc<dyn Input>,
    pub(crate) rules: Rules,
    /// The model for lines that name none.
    pub(crate) model: Option<Arc<str>>,
    pub(crate) max_line_bytes: usize,
    /// Where to begin.
    pub(crate) start: Position,
    /// Ordinals from this one on do not exist.
    pub(crate) lines: Ordinal,
    /// Lines that have an outcome already.
    pub(crate) done: Arc<OrdinalSet>,
    /// Lines that are not valid.
    pub(crate) rejected: Arc<OrdinalSet>,
    pub(crate) scratch: PathBuf,
    pub(crate) board: Arc<Board>,
}

/// The pinned generation of the input is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputModified;

/// Why a window could not be built.
#[derive(Debug)]
enum Failure {
    Modified,
    Refused(String),
    Again(StorageError),
}

/// Reads windows and hands them over until the input ends or nobody takes them.
pub(crate) async fn ingest(ingest: Ingest, windows: mpsc::Sender<Window>) -> Result<(), InputModified> {
    let slots = Arc::new(Semaphore::new(WINDOWS));
    let mut position = ingest.start;
    while position.byte_offset < ingest.input.size_bytes() && position.ordinal < ingest.lines {
        let slot = Arc::clone(&slots).acquire_owned();
        let slot = tokio::select! {
            slot = slot => slot.expect("the semaphore is never closed"),
            () = windows.closed() => return Ok(()),
        };
        let window = loop {
            match build(&ingest, position).await {
                Ok(builder) => break builder.finish(slot),
                Err(Failure::Modified) => return Err(InputModified),
                Err(Failure::Refused(evidence)) => {
                    ingest.board.raise(Reason::StorageRefused, evidence);
                    tokio::time::sleep(REFUSED_PAUSE).await;
                    ingest.board.clear(Reason::StorageRefused);
                }
                Err(Failure::Again(error)) => {
                    tracing::warn!(%error, "a read of the input will be repeated");
                    tokio::time::sleep(READ_PAUSE).await;
                }
            }
            if windows.is_closed() {
                return Ok(());
            }
        };
        position = window.end;
        if windows.send(window).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn build(ingest: &Ingest, start: Position) -> Result<WindowBuilder, Failure> {
    ingest.input.verify_unchanged().await.map_err(Failure::from)?;
    let mut builder = WindowBuilder::new(ingest, start).map_err(|error| scratch(ingest, &error))?;
    let mut offset = start.byte_offset;
    let size = ingest.input.size_bytes();
    while offset < size && !builder.is_full() {
        let end = (offset + CHUNK).min(size);
        let chunk = ingest.input.read(offset..end).await?;
        offset = end;
        let last = end == size;
        builder = tokio::task::spawn_blocking(move || builder.feed(&chunk, last).map(|()| builder))
            .await
            .expect("planning does not panic")
            .map_err(|error| scratch(ingest, &error))?;
    }
    Ok(builder)
}

fn scratch(ingest: &Ingest, error: &std::io::Error) -> Failure {
    Failure::Refused(format!("failed to write a window below {}: {error}", ingest.scratch.display()))
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error.kind() {
            ErrorKind::Changed | ErrorKind::NotFound | ErrorKind::Damaged => Self::Modified,
            ErrorKind::Refused => Self::Refused(error.to_string()),
            _ => Self::Again(error),
        }
    }
}
