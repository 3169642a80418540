//! What keeps an input in a bucket from being read, in the same words whatever the cloud.

use crate::error::{Action, ErrorKind, StorageError};

/// There is no such object.
pub(crate) fn missing(action: Action, uri: &str) -> StorageError {
    StorageError::new(
        ErrorKind::NotFound,
        action,
        uri,
        "there is no such object",
        "make sure that the path is right, and that nobody deletes the input of a running job",
    )
}

/// It has another generation by now.
pub(crate) fn changed(uri: &str) -> StorageError {
    StorageError::new(
        ErrorKind::Changed,
        Action::Read,
        uri,
        "it was replaced after it had been opened",
        "put the old object back, or run the new one as a job of its own with another output",
    )
}

/// Its ranges would be ranges of something else than its lines.
pub(crate) fn encoded(uri: &str, encoding: &str) -> StorageError {
    StorageError::new(
        ErrorKind::Invalid,
        Action::Open,
        uri,
        format!("it is stored with `Content-Encoding: {encoding}`"),
        "store it as plain text (without `--gzip-local` or the like), since it is read at any place",
    )
}

/// An error of a read, with what helps where an input is concerned.
pub(crate) fn of_input(uri: &str, error: StorageError) -> StorageError {
    match error.kind() {
        ErrorKind::Changed => changed(uri),
        ErrorKind::NotFound => missing(Action::Read, uri),
        _ => error,
    }
}
