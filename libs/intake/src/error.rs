//! Why an intake came to no verdict.

use std::{io, path::PathBuf};

use penstock_batchfile::Ordinal;
use penstock_job::DocumentError;
use penstock_storage::{ErrorKind, StorageError};
use thiserror::Error;

/// Why an intake came to no verdict. What the attempt had written is deleted again, as far as the store allows.
#[derive(Debug, Error)]
pub enum IntakeError {
    /// The caller asked to stop.
    #[error("validate the input to its end: it was stopped; run the same command again to start over")]
    Stopped,
    /// The input is not the one that the job was made for, or changed while it was read.
    #[error(
        "validate the input `{uri}`: it changed after the job had begun; run the same command again to take the new \
         content"
    )]
    InputModified {
        /// Where the input is.
        uri: String,
    },
    /// Ordinals of 32 bits do not suffice.
    #[error(
        "validate the input: it has more than {most} lines; split it into several files, one job each",
        most = Ordinal::MAX
    )]
    TooManyLines,
    /// The output belongs to a job of another identity.
    #[error(
        "use the output: its {document} is of another job, which differs in `{field}`; choose another output, or run \
         the old job to its end"
    )]
    OutputOccupied {
        /// The object that tells.
        document: &'static str,
        /// The path of the first field of the spec that differs.
        field: String,
    },
    /// A document of the output cannot be understood.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The input could not be read or the output not written.
    #[error(transparent)]
    Storage(StorageError),
    /// The scratch folder could not be used.
    #[error(
        "use the scratch folder `{folder}`: {cause}; make sure that it exists, can be written and has space for ids \
         and rejected lines",
        folder = folder.display()
    )]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// The operating system's answer.
        #[source]
        cause: io::Error,
    },
}

impl IntakeError {
    /// A failed read of the input at `uri`.
    pub(crate) fn reading(uri: &str, error: StorageError) -> Self {
        match error.kind() {
            ErrorKind::Changed => Self::InputModified { uri: uri.to_owned() },
            _ => Self::Storage(error),
        }
    }
}
