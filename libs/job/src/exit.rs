//! Exit codes: an interface that scripts, pod failure policies and the operator rely on. Documented in `docs/exit-codes.md`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a process of Penstock ends. The numbers follow sysexits(3) where it has one. In documents it is the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "u8", try_from = "u8")]
#[schemars(with = "u8")]
#[repr(u8)]
pub enum ExitCode {
    /// A receipt was read. From `penstock run`: and its ending is `completed`.
    Completed = 0,
    /// `penstock run` only: the receipt says `failed`, or the input was refused.
    Failed = 3,
    /// `penstock run` only: the receipt says `cancelled` or `expired`.
    EndedEarly = 4,
    /// The configuration, the credentials or a local path must be corrected first; nothing was decided.
    Configuration = 64,
    /// The output belongs to another job; its files were not touched.
    OutputOccupied = 65,
    /// Stored objects are missing or contradict their checksums.
    StorageDamaged = 66,
    /// The output's storage does not answer; nothing is lost, the same command resumes.
    StorageUnavailable = 69,
    /// A defect of Penstock: the accounts do not agree, so nothing was published.
    Defect = 70,
    /// Stopped on request, everything known is stored; the same command resumes.
    Stopped = 75,
    /// Another executor has taken the job over; nothing of this one will be published any more.
    ClaimLost = 76,
    /// Stopped at once by a second Ctrl-C.
    Interrupted = 130,
}

impl ExitCode {
    /// Every code, in numerical order.
    pub const ALL: [Self; 11] = [
        Self::Completed,
        Self::Failed,
        Self::EndedEarly,
        Self::Configuration,
        Self::OutputOccupied,
        Self::StorageDamaged,
        Self::StorageUnavailable,
        Self::Defect,
        Self::Stopped,
        Self::ClaimLost,
        Self::Interrupted,
    ];

    /// The number that the process exits with.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// A number that is no exit code of Penstock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is no exit code of penstock")]
pub struct UnknownExitCode(u8);

impl TryFrom<u8> for ExitCode {
    type Error = UnknownExitCode;

    fn try_from(number: u8) -> Result<Self, UnknownExitCode> {
        Self::ALL.into_iter().find(|code| code.code() == number).ok_or(UnknownExitCode(number))
    }
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        code.code()
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}
