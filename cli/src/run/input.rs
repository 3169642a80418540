//! The input of a run: opened, its format told, and the canonical spec that follows.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use penstock_batchfile::{Detected, Format, UnknownFormat};
use penstock_intake::{DetectError, Refusal, detect};
use penstock_job::{CanonicalSpec, ExitCode, JobSpec, Reason, Receipt, spec::CanonicalInput};
use penstock_storage::{ErrorKind, Input, InvalidLocation, Location, StorageError, open_input};
use thiserror::Error;

use crate::{
    error::{CommandError, storage_exit_code},
    output::{Output, Standing},
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
    /// What names it, or the output, is no location.
    #[error(transparent)]
    Location(#[from] InvalidLocation),
    /// It cannot be opened or read.
    #[error(transparent)]
    Storage(StorageError),
    /// It is gone, and its job is not over.
    #[error(
        "go on with the job in {output}: its input {input} is gone; {help} and run the same command again, or publish what \
         was answered with `penstock cancel {output}`"
    )]
    Gone {
        /// The input.
        input: String,
        /// How to have it again.
        help: &'static str,
        /// The output.
        output: String,
    },
    /// Its lines do not show their format.
    #[error("{cause}{}", if matches!(cause, UnknownFormat::Neither { .. }) { " with --format" } else { "" })]
    Unknown {
        /// What was seen.
        cause: UnknownFormat,
    },
    /// Validation has refused it.
    #[error("accept the input ({}): {} The output is {output}.", refusal.reason, refusal.message)]
    Refused {
        /// Why.
        refusal: Box<Refusal>,
        /// The output.
        output: String,
    },
}

impl InputError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NotNamed { .. } | Self::Location(_) | Self::Gone { .. } => ExitCode::Configuration,
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
            Self::NotNamed { .. } | Self::Location(_) | Self::Storage(_) | Self::Gone { .. } => None,
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
    Open(Arc<dyn Input>, Box<CanonicalSpec>),
    /// It is gone, but the job that it was for is over.
    Over(&'a Receipt),
}

/// Opens the input and tells what determines the job's answers.
pub(super) async fn open<'a>(
    location: &Location,
    spec: &JobSpec,
    output: &Output,
    standing: &'a Standing,
) -> Result<Opened<'a>, CommandError> {
    let input = match open_input(location).await {
        Ok(input) => input,
        Err(error) if error.kind() == ErrorKind::NotFound && is_job_of(location, spec, standing) => {
            return match standing {
                Standing::Over(receipt) => Ok(Opened::Over(receipt)),
                Standing::Nothing | Standing::Validated(_) | Standing::Begun(_) => Err(InputError::Gone {
                    input: location.to_string(),
                    help: match location {
                        Location::Path(_) => "put the same file back with its modification time",
                        Location::Bucket(_) => "restore the same generation of it",
                    },
                    output: output.location().to_string(),
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
        None => detect(&*input, spec.max_line_bytes, spec.format.named()).await.map_err(InputError::from)?,
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

/// The input of a job if it is still the one that the job began with.
pub(crate) async fn same_input(spec: &CanonicalSpec) -> Result<Option<Arc<dyn Input>>, InputError> {
    match open_input(&Location::parse(&spec.input.uri)?).await {
        Ok(input) if input.generation().as_str() == spec.input.generation => Ok(Some(input)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(InputError::Storage(error)),
    }
}

/// Whether the job in the output is the one that `spec` asks for, as far as that can be told without its input.
fn is_job_of(location: &Location, spec: &JobSpec, standing: &Standing) -> bool {
    let leads_to = |uri: &str| match location {
        Location::Path(path) => canonical_path(path).is_some_and(|path| path == Path::new(uri)),
        Location::Bucket(place) => place.to_string() == uri,
    };
    standing.spec().is_some_and(|theirs| {
        leads_to(&theirs.input.uri)
            && spec.canonical(theirs.input.clone(), told(theirs)).is_ok_and(|ours| ours == *theirs)
    })
}

/// The canonical path of a file that is gone, from its folder.
fn canonical_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}
