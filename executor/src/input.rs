//! The job's input as the steps use it: every call has a deadline.
//!
//! Owns no repetition: whoever reads decides whether to ask again.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use penstock_storage::{Action, Chunks, ErrorKind, Input, StorageError};

use crate::output::within;

/// Longest time for one call: a range is a line or a chunk, so a few megabytes at most.
const CALL: Duration = Duration::from_mins(1);

/// Exactly the bytes of `range`.
pub(crate) async fn read(input: &dyn Input, range: Range<u64>) -> Result<Bytes, StorageError> {
    within(CALL, Action::Read, input.uri(), input.read(range)).await
}

/// The next of the `chunks` of `input`.
pub(crate) async fn next(input: &dyn Input, chunks: &mut dyn Chunks) -> Result<Option<Bytes>, StorageError> {
    within(CALL, Action::Read, input.uri(), chunks.next()).await
}

/// Ok while the input is still there at its generation.
pub(crate) async fn verify_unchanged(input: &dyn Input) -> Result<(), StorageError> {
    within(CALL, Action::Read, input.uri(), input.verify_unchanged()).await
}

/// Whether the pinned generation is gone, so that no repetition helps.
pub(crate) fn is_lost(error: &StorageError) -> bool {
    matches!(error.kind(), ErrorKind::Changed | ErrorKind::NotFound | ErrorKind::Damaged)
}
