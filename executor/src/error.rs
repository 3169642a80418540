//! How a run fails, and the exit code of each failure.

use penstock_job::{DocumentError, Epoch, ExitCode, Identity, Reason};
use penstock_storage::{ErrorKind, StorageError};
use thiserror::Error;

/// Why a run ended without a receipt. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum RunError {
    /// The output holds another job, or files that no job explains.
    #[error(
        "use the output: it belongs to another job{}; choose another --output", difference.as_deref().map(|field| format!(" (`{field}` differs)")).unwrap_or_default()
    )]
    OutputOccupied {
        /// The first field of the canonical spec that differs, if that is what is wrong.
        difference: Option<String>,
    },
    /// Published files or intermediates are there, but neither a state nor a receipt.
    #[error(
        "use the output: it holds `{name}` but no state.json that explains it; restore state.json, or choose another --output"
    )]
    Unexplained {
        /// One of the files.
        name: String,
    },
    /// A published file is not what was decided.
    #[error(
        "publish `{name}`: another file of that name is there; move it away and run the same command again"
    )]
    Foreign {
        /// The file.
        name: String,
    },
    /// Another executor runs the job now.
    #[error("go on: another executor has taken the job over; it continues from what is stored")]
    ClaimLost,
    /// There is no accepted validation to run.
    #[error(
        "run the job: its validation.json is missing; run `penstock run` with the input, which validates it first"
    )]
    NotValidated,
    /// A stored document cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Storage does not work, or never will.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A stored object is missing or contradicts what is recorded of it.
    #[error("read `{name}`: {problem}; restore it from a copy, or run the job anew with another --output")]
    Damaged {
        /// The object.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// So often no job is claimed.
    #[error(
        "claim the job: its epoch is {0} already, the last there is, so state.json was damaged, or a part or a file in \
         scratch has a name that no run gave it; restore the output from a copy, or run the job anew with another --output"
    )]
    NoNextEpoch(Epoch),
    /// The local scratch folder does not work.
    #[error(
        "use the scratch folder {folder}: {source}; free space there or make it writable, then run the same command again"
    )]
    Scratch {
        /// The folder.
        folder: String,
        /// The operating system's words.
        source: std::io::Error,
    },
    /// The provider refused the credentials before anything succeeded.
    #[error(
        "start: the provider refuses the credentials ({evidence}); correct the key and run the same command again"
    )]
    CredentialsRefused {
        /// What the provider said.
        evidence: String,
    },
    /// The job's budget is used up, or a price is missing without which nobody can keep to it.
    #[error(
        "go on within the budget: {evidence}; run the same command again with a larger one and a price for every model, or \
         cancel the job to publish what was answered"
    )]
    BudgetReached {
        /// How much of what is used.
        evidence: String,
    },
    /// The accounts do not agree: a defect of Penstock.
    #[error(
        "account for every line: {0}; nothing was published, please report this with state.json and the log"
    )]
    Defect(String),
}

impl RunError {
    /// What the process exits with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::OutputOccupied { .. } | Self::Unexplained { .. } | Self::Foreign { .. } => {
                ExitCode::OutputOccupied
            }
            Self::ClaimLost => ExitCode::ClaimLost,
            Self::Damaged { .. } | Self::NoNextEpoch(_) => ExitCode::StorageDamaged,
            Self::Defect(_) => ExitCode::Defect,
            Self::NotValidated
            | Self::Document(_)
            | Self::Scratch { .. }
            | Self::CredentialsRefused { .. }
            | Self::BudgetReached { .. } => ExitCode::Configuration,
            Self::Storage(error) => match error.kind() {
                ErrorKind::Damaged => ExitCode::StorageDamaged,
                ErrorKind::Unavailable => ExitCode::StorageUnavailable,
                _ => ExitCode::Configuration,
            },
        }
    }

    /// The word for it, where there is one.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::OutputOccupied { .. } | Self::Unexplained { .. } | Self::Foreign { .. } => {
                Some(Reason::OutputOccupied)
            }
            Self::CredentialsRefused { .. } => Some(Reason::CredentialsRefused),
            Self::BudgetReached { .. } => Some(Reason::CostCapReached),
            Self::Storage(error) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unavailable) => {
                Some(Reason::StorageRefused)
            }
            Self::ClaimLost
            | Self::NotValidated
            | Self::Document(_)
            | Self::Storage(_)
            | Self::Damaged { .. }
            | Self::NoNextEpoch(_)
            | Self::Scratch { .. }
            | Self::Defect(_) => None,
        }
    }

    /// The output belongs to a job with another canonical spec.
    pub(crate) fn occupied(theirs: &penstock_job::CanonicalSpec, ours: &penstock_job::CanonicalSpec) -> Self {
        Self::OutputOccupied { difference: penstock_job::identity::first_difference(theirs, ours) }
    }
}

/// What stands in the way when another identity is found; `Ok` when it is ours.
pub(crate) fn check_identity(
    found: &Identity,
    theirs: &penstock_job::CanonicalSpec,
    ours: (&Identity, &penstock_job::CanonicalSpec),
) -> Result<(), RunError> {
    if found == ours.0 { Ok(()) } else { Err(RunError::occupied(theirs, ours.1)) }
}
