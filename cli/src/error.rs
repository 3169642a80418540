//! How a command fails: what it says, and what the process exits with.

use std::io;

use penstock_executor::{ReportingError, RunError, provider::ProviderError, shared_state::LocationError};
use penstock_intake::IntakeError;
use penstock_job::{ExitCode, Reason, spec::SpecError};
use penstock_simulator::StartError;
use penstock_storage::{ErrorKind, RunLockError, StorageError};
use thiserror::Error;

use crate::{
    cancel::CancelError,
    lines::LinesLost,
    output::OutputError,
    run::{InputError, OccupiedError},
    simulate::RateError,
    spec_file::SpecFileError,
    verify::VerifyError,
    why::WhyError,
};

/// Why a command ended without doing what it was asked for. Messages read after "failed to".
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// The system gives no threads or no signals.
    #[error("start: {0}; see whether the system is out of processes or files")]
    Runtime(io::Error),
    /// There is no place for what does not fit into memory.
    #[error("make a temporary folder: {0}; name a folder with space in TMPDIR")]
    Temporary(io::Error),
    /// A job file or a settings file.
    #[error(transparent)]
    SpecFile(#[from] SpecFileError),
    /// What is asked for does not fit together.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The output belongs to another job.
    #[error(transparent)]
    Occupied(#[from] OccupiedError),
    /// Another process runs the job.
    #[error(transparent)]
    RunLock(#[from] RunLockError),
    /// The output cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The output, or a document in it, cannot be read.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// There is no place for what is not stored yet.
    #[error(
        "find a folder for answers that are not stored yet: there is no home; name one on a local disk with XDG_STATE_HOME"
    )]
    NoStateFolder,
    /// There is nothing in the output to look at.
    #[error("find a job in {0}: there is none; name the --output folder of a `penstock run`")]
    NoJob(String),
    /// The input could not be validated.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The place of shared state cannot be used.
    #[error(transparent)]
    SharedState(#[from] LocationError),
    /// Where to report to makes no sense.
    #[error(transparent)]
    Reporting(#[from] ReportingError),
    /// The simulated provider could not be started.
    #[error(transparent)]
    Simulator(#[from] StartError),
    /// The simulated storage could not be started.
    #[error(transparent)]
    SimulatedStorage(#[from] penstock_gcs_double::StartError),
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] RateError),
    /// The job could not be cancelled.
    #[error(transparent)]
    Cancel(#[from] CancelError),
    /// The receipt was not confirmed.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The cluster could not be looked at.
    #[error(transparent)]
    Why(#[from] WhyError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What was found does not reach the reader.
    #[error(transparent)]
    Lines(#[from] LinesLost),
    /// A second Ctrl-C.
    #[error("wait for the answers in flight")]
    Interrupted,
}

impl CommandError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Runtime(_)
            | Self::Temporary(_)
            | Self::SpecFile(_)
            | Self::Spec(_)
            | Self::NoStateFolder
            | Self::NoJob(_)
            | Self::Provider(_)
            | Self::SharedState(_)
            | Self::Reporting(_)
            | Self::Simulator(_)
            | Self::SimulatedStorage(_)
            | Self::Scenario(_)
            | Self::Lines(_)
            | Self::Why(_)
            | Self::RunLock(RunLockError::Storage(_)) => ExitCode::Configuration,
            Self::Input(error) => error.exit_code(),
            Self::Output(error) => error.exit_code(),
            Self::Occupied(_) => ExitCode::OutputOccupied,
            Self::RunLock(RunLockError::Held { .. }) => ExitCode::ClaimLost,
            Self::Storage(error) => storage_exit_code(error),
            Self::Intake(error) => of_intake(error),
            Self::Cancel(error) => error.exit_code(),
            Self::Verify(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
            Self::Interrupted => ExitCode::Interrupted,
        }
    }

    /// The reason, where there is a word for it.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Input(error) => error.reason(),
            Self::Occupied(_) | Self::Intake(IntakeError::OutputOccupied { .. }) => {
                Some(Reason::OutputOccupied)
            }
            Self::Intake(IntakeError::InputModified { .. }) => Some(Reason::InputModified),
            Self::Run(RunError::CredentialsRefused { .. }) => Some(Reason::CredentialsRefused),
            Self::Run(RunError::BudgetReached { .. }) => Some(Reason::CostCapReached),
            _ => None,
        }
    }

    /// What went wrong and what to do, as a sentence.
    pub(crate) fn message(&self) -> String {
        match self {
            // It was asked for, so it is no failure.
            Self::Interrupted => "stopped at once; the same command goes on from what is stored".to_owned(),
            error => format!("failed to {error}"),
        }
    }
}

/// What the process exits with when storage, or a file, does not work.
pub(crate) fn storage_exit_code(error: &StorageError) -> ExitCode {
    match error.kind() {
        ErrorKind::Damaged => ExitCode::StorageDamaged,
        ErrorKind::Unavailable => ExitCode::StorageUnavailable,
        _ => ExitCode::Configuration,
    }
}

fn of_intake(error: &IntakeError) -> ExitCode {
    match error {
        IntakeError::Stopped => ExitCode::Stopped,
        IntakeError::TooManyLines => ExitCode::Failed,
        IntakeError::OutputOccupied { .. } => ExitCode::OutputOccupied,
        IntakeError::Storage(error) => storage_exit_code(error),
        IntakeError::InputModified { .. } | IntakeError::Document(_) | IntakeError::Scratch { .. } => {
            ExitCode::Configuration
        }
    }
}

impl From<io::Error> for CommandError {
    /// Only the system's own services (signals, threads) answer with a bare error here.
    fn from(error: io::Error) -> Self {
        Self::Runtime(error)
    }
}
