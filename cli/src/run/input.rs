//! The input of a run: opened, its format told, and the canonical spec that follows.

use std::path::{Path, PathBuf};

use penstock_batchfile::{Detected, Format, UnknownFormat};
use penstock_intake::{DetectError, Refusal, detect};
use penstock_job::{CanonicalSpec, ExitCode, JobSpec, Reason, Receipt, spec::CanonicalInput};
use penstock_storage::{ErrorKind, FileInput, Input, StorageError};
use thiserror::Error;

use crate::{
    error::{CommandError, storage_exit_code},
    folder::{Folder, Standing},
};

/// An input that cannot be run.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    /// Neither the command line nor the job file names it.
    #[error("start: no {what} is named; pass {flag}, or write `{what}` into the job file")]
    NotNamed {
        /// `input` or `output`.
        what: &'static str,
        /// How to pass it.
        flag: &'static str,
    },
    /// It cannot be opened or read.
    #[error(transparent)]
    Storage(StorageError),
    /// It is gone, and its job is not over.
    #[error(
        "go on with the job in {folder}: its input {input} is gone; put the same file back with its modification time \
         and run the same command again, or publish what was answered with `penstock cancel {folder}`"
    )]
    Gone {
        /// The input.
        input: PathBuf,
        /// The output.
        folder: String,
    },
    /// Its lines do not show their format.
    #[error("{cause}{}", if matches!(cause, UnknownFormat::Neither { .. }) { " with --format" } else { "" })]
    Unknown {
        /// What was seen.
        cause: UnknownFormat,
    },
    /// Validation has refused it.
    #[error("accept the input ({}): {} The output is {folder}.", refusal.reason, refusal.message)]
    Refused {
        /// Why.
        refusal: Box<Refusal>,
        /// The output.
        folder: String,
    },
}

impl InputError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NotNamed { .. } | Self::Gone { .. } => ExitCode::Configuration,
            Self::Storage(error) => storage_exit_code(error),
            Self::Unknown { .. } | Self::Refused { .. } => ExitCode::Failed,
        }
    }

    /// The reason, where there is a word for it.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Unknown { cause: UnknownFormat::Empty } => Some(Reason::EmptyInput),
            Self::Unknown { cause: UnknownFormat::Neither { .. } } => Some(Reason::InvalidInput),
            Self::Refused { refusal, .. } => Some(refusal.reason),
            Self::NotNamed { .. } | Self::Storage(_) | Self::Gone { .. } => None,
        }
    }
}

impl From<DetectError> for InputError {
    fn from(error: DetectError) -> Self {
        match error {
            DetectError::Unknown(cause) => Self::Unknown { cause },
            DetectError::Storage(error) => Self::Storage(error),
        }
    }
}

/// What became of opening an input.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    /// It can be read.
    Open(FileInput, Box<CanonicalSpec>),
    /// It is gone, but the job that it was for is over.
    Over(&'a Receipt),
}

/// Opens the input and tells what determines the job's answers.
pub(super) async fn open<'a>(
    path: &Path,
    spec: &JobSpec,
    folder: &Folder,
    standing: &'a Standing,
) -> Result<Opened<'a>, CommandError> {
    let input = match FileInput::open(path).await {
        Ok(input) => input,
        Err(error) if error.kind() == ErrorKind::NotFound && is_job_of(path, spec, standing) => {
            return match standing {
                Standing::Over(receipt) => Ok(Opened::Over(receipt)),
                Standing::Nothing | Standing::Validated(_) | Standing::Begun(_) => Err(InputError::Gone {
                    input: path.to_owned(),
                    folder: folder.root().display().to_string(),
                }
                .into()),
            };
        }
        Err(error) => return Err(InputError::Storage(error).into()),
    };
    let named =
        CanonicalInput { uri: input.uri().to_owned(), generation: input.generation().as_str().to_owned() };
    let detected = match known(&named, spec.format.named(), standing) {
        Some(known) => known,
        None => detect(&input, spec.max_line_bytes, spec.format.named()).await.map_err(InputError::from)?,
    };
    let canonical = spec.canonical(named, detected)?;
    Ok(Opened::Open(input, Box::new(canonical)))
}

/// What a look at the same bytes has told before, unless the user names another format now.
fn known(input: &CanonicalInput, named: Option<Format>, standing: &Standing) -> Option<Detected> {
    let theirs = standing.spec().filter(|theirs| theirs.input == *input)?;
    named.is_none_or(|format| format == theirs.format).then(|| told(theirs))
}

fn told(spec: &CanonicalSpec) -> Detected {
    Detected { format: spec.format, endpoint: Some(spec.endpoint) }
}

/// Whether the job in the folder is the one that `spec` asks for, as far as that can be told without its input.
fn is_job_of(path: &Path, spec: &JobSpec, standing: &Standing) -> bool {
    standing.spec().is_some_and(|theirs| {
        canonical_path(path).is_some_and(|path| path == Path::new(&theirs.input.uri))
            && spec.canonical(theirs.input.clone(), told(theirs)).is_ok_and(|ours| ours == *theirs)
    })
}

/// The canonical path of a file that is gone, from its folder.
fn canonical_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}
