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
use crate::{board::Board, input, state_object::REFUSED_PAUSE};

/// Windows that exist at a time.
pub(crate) const WINDOWS: usize = 2;
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

/// Reads windows and hands them over until the input ends. When nobody takes them any more it ends at once, whatever
/// it is waiting for.
pub(crate) async fn ingest(ingest: Ingest, windows: mpsc::Sender<Window>) -> Result<(), InputModified> {
    tokio::select! {
        biased;
        result = read_windows(&ingest, &windows) => result,
        () = windows.closed() => {
            ingest.board.clear(Reason::StorageRefused);
            Ok(())
        }
    }
}

async fn read_windows(ingest: &Ingest, windows: &mpsc::Sender<Window>) -> Result<(), InputModified> {
    let slots = Arc::new(Semaphore::new(WINDOWS));
    let mut position = ingest.start;
    while position.byte_offset < ingest.input.size_bytes() && position.ordinal < ingest.lines {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        let window = build_until_it_works(ingest, position).await?.finish(slot);
        position = window.end;
        if windows.send(window).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn build_until_it_works(ingest: &Ingest, start: Position) -> Result<WindowBuilder, InputModified> {
    loop {
        match build(ingest, start).await {
            Ok(builder) => return Ok(builder),
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
    }
}

async fn build(ingest: &Ingest, start: Position) -> Result<WindowBuilder, Failure> {
    input::verify_unchanged(&*ingest.input).await?;
    let mut builder = WindowBuilder::new(ingest, start).map_err(|error| scratch(ingest, &error))?;
    let mut offset = start.byte_offset;
    let size = ingest.input.size_bytes();
    let mut chunks = ingest.input.chunks(offset..size);
    while !builder.is_full()
        && let Some(chunk) = input::next(&*ingest.input, &mut *chunks).await?
    {
        offset += chunk.len() as u64;
        let last = offset == size;
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
            _ if input::is_lost(&error) => Self::Modified,
            ErrorKind::Refused => Self::Refused(error.to_string()),
            _ => Self::Again(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, future::pending, ops::Range, sync::Mutex};

    use async_trait::async_trait;
    use bytes::Bytes;
    use penstock_batchfile::{Endpoint, Format};
    use penstock_storage::{Action, Generation};

    use super::*;

    /// An input in memory.
    #[derive(Debug)]
    struct Text {
        generation: Generation,
        bytes: Bytes,
        /// What the next reads fail with.
        trouble: Mutex<VecDeque<ErrorKind>>,
        hangs: bool,
    }

    #[async_trait]
    impl Input for Text {
        fn uri(&self) -> &'static str {
            "memory"
        }

        fn generation(&self) -> &Generation {
            &self.generation
        }

        fn size_bytes(&self) -> u64 {
            self.bytes.len() as u64
        }

        async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
            if self.hangs {
                return pending().await;
            }
            if let Some(kind) = self.trouble.lock().unwrap().pop_front() {
                return Err(StorageError::new(kind, Action::Read, "memory", "of a fault", "wait"));
            }
            let at = |offset| usize::try_from(offset).unwrap();
            Ok(self.bytes.slice(at(range.start)..at(range.end)))
        }

        async fn verify_unchanged(&self) -> Result<(), StorageError> {
            Ok(())
        }
    }

    fn text(bytes: &[u8]) -> Text {
        Text {
            generation: Generation::new("1"),
            bytes: Bytes::copy_from_slice(bytes),
            trouble: Mutex::default(),
            hangs: false,
        }
    }

    /// What is needed to read an input with these bytes from its start, with nothing done yet.
    pub(super) fn ingest_of(bytes: &[u8]) -> Ingest {
        Ingest {
            input: Arc::new(text(bytes)),
            rules: Rules {
                format: Format::Prompts,
                endpoint: Endpoint::ChatCompletions,
                has_model: true,
                strict: false,
            },
            model: Some("model".into()),
            max_line_bytes: 8 << 20,
            start: Position::START,
            lines: Ordinal::MAX,
            done: Arc::default(),
            rejected: Arc::default(),
            scratch: std::env::temp_dir(),
            board: Arc::default(),
        }
    }

    /// Reads everything; windows are let go as soon as they have come.
    async fn all(ingest: Ingest) -> (Vec<(Position, Position, usize)>, Result<(), InputModified>) {
        let (sender, mut windows) = mpsc::channel(1);
        let reading = tokio::spawn(super::ingest(ingest, sender));
        let mut seen = Vec::new();
        while let Some(Window { start, end, plans, .. }) = windows.recv().await {
            seen.push((start, end, plans.iter().map(|plan| plan.entries.len()).sum()));
        }
        (seen, reading.await.unwrap())
    }

    #[tokio::test]
    async fn windows_follow_one_another_to_the_end_of_the_input() {
        let input = b"line\n".repeat(120_000);
        let (windows, result) = all(ingest_of(&input)).await;
        assert_eq!(result, Ok(()));
        assert_eq!(windows.iter().map(|(_, _, lines)| *lines).collect::<Vec<_>>(), [50_000, 50_000, 20_000]);
        assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0), "{windows:?}");
        assert_eq!(windows[2].1.byte_offset, input.len() as u64);
    }

    #[tokio::test]
    async fn reading_begins_at_the_cursor_and_ends_with_the_last_line_that_counts() {
        let start = Position { ordinal: Ordinal::new(2), byte_offset: 11, line_number: 4 };
        let ingest =
            Ingest { start, lines: Ordinal::new(4), ..ingest_of(b"line\n\nline\nline\nline\nline\n") };
        let (windows, _) = all(ingest).await;
        let end = Position { ordinal: Ordinal::new(4), byte_offset: 21, line_number: 6 };
        assert_eq!(windows, [(start, end, 2)]);
    }

    #[tokio::test]
    async fn a_third_window_is_read_only_when_the_first_is_let_go() {
        let (sender, mut windows) = mpsc::channel(WINDOWS + 1);
        let reading = tokio::spawn(super::ingest(ingest_of(&b"line\n".repeat(120_000)), sender));
        let first = windows.recv().await.unwrap();
        let second = windows.recv().await.unwrap();
        assert!(windows.try_recv().is_err());
        drop(first);
        let third = windows.recv().await.unwrap();
        assert_eq!(third.start, second.end);
        assert_eq!(reading.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_fail_are_repeated_and_a_refusal_is_shown_meanwhile() {
        let input = text(b"line\nline\n");
        *input.trouble.lock().unwrap() = [ErrorKind::Unavailable, ErrorKind::Refused].into();
        let ingest = Ingest { input: Arc::new(input), ..ingest_of(b"") };
        let board = Arc::clone(&ingest.board);
        let reading = tokio::spawn(all(ingest));
        tokio::time::sleep(READ_PAUSE * 2).await;
        let (reason, evidence) = board.progress().reason.expect("the refusal is shown");
        assert_eq!(reason, Reason::StorageRefused, "{evidence}");
        let (windows, result) = reading.await.unwrap();
        assert_eq!((windows.len(), result), (1, Ok(())));
        assert_eq!(board.progress().reason, None);
    }

    #[tokio::test]
    async fn a_changed_input_is_told() {
        let input = text(b"line\n");
        *input.trouble.lock().unwrap() = [ErrorKind::Changed].into();
        let (windows, result) = all(Ingest { input: Arc::new(input), ..ingest_of(b"") }).await;
        assert_eq!((windows.len(), result), (0, Err(InputModified)));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_read_when_no_window_is_wanted_any_more() {
        for (hangs, trouble) in [(true, vec![]), (false, vec![ErrorKind::Refused; 1_000])] {
            let input = Text { hangs, trouble: Mutex::new(trouble.into()), ..text(b"line\n") };
            let (sender, windows) = mpsc::channel(1);
            let ingest = Ingest { input: Arc::new(input), ..ingest_of(b"") };
            let board = Arc::clone(&ingest.board);
            let reading = tokio::spawn(super::ingest(ingest, sender));
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(windows);
            let ended = tokio::time::timeout(Duration::from_millis(1), reading).await;
            assert_eq!(ended.expect("it ends at once").unwrap(), Ok(()));
            assert_eq!(board.progress().reason, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_never_comes_back_is_repeated() {
        let input = Text { hangs: true, ..text(b"line\n") };
        let error = input::read(&input, 0..5).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
