//! The steps of the job protocol at which an executor may die, be paused, or be left in doubt by its storage.
//!
//! One vocabulary for the executor, which announces each step, for the model, whose actions are these, and for the tests,
//! which end a process at every one of them. A write of the output cannot be made without naming its step.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// One step. The order is that of a job's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Validation: a file of rejected records, or the set of rejected lines, is stored.
    StoreRejected,
    /// Validation: `validation.json` commits the attempt.
    CommitValidation,
    /// C1-C3: receipt, validation and state are read.
    Look,
    /// C4: the next epoch is taken.
    Claim,
    /// C6: what earlier epochs left unlisted is read.
    Adopt,
    /// C7: earlier epochs are sealed, and what was adopted is listed.
    Seal,
    /// R3: answers that an earlier incarnation left in scratch are taken over.
    Recover,
    /// R1: a request is sent.
    Send,
    /// R3: an outcome is appended to the part under construction, and counts as answered.
    Append,
    /// R3: a closed part becomes durable.
    Upload,
    /// R3: a durable part enters manifest and completed set, in memory.
    List,
    /// R5: the state is written, at its interval or before leaving.
    Checkpoint,
    /// E2: the ending is stored.
    End,
    /// E3: what was in flight has been awaited.
    Drain,
    /// E4: an undone line is recorded.
    RecordUndone,
    /// F2: every record is read once more.
    Reconcile,
    /// F2: a part is written anew without records of lines that have one already.
    Rewrite,
    /// F2: a corrected manifest is stored.
    Repair,
    /// F3: the outcome is decided.
    Freeze,
    /// F4: consecutive sources become an intermediate object.
    ComposeIntermediate,
    /// F4: a published file is composed.
    ComposeFinal,
    /// F5: the receipt is stored.
    WriteReceipt,
    /// F6: the receipt is read back.
    ReadReceipt,
    /// F6: one object that nobody needs any more is deleted.
    Clean,
}

/// A word that names no step.
#[derive(Debug, Error)]
#[error("find the step `{0}`: it is none of those in docs/protocol.md, \"Crashes\"")]
pub struct UnknownStep(String);

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 24] = [
        Self::StoreRejected,
        Self::CommitValidation,
        Self::Look,
        Self::Claim,
        Self::Adopt,
        Self::Seal,
        Self::Recover,
        Self::Send,
        Self::Append,
        Self::Upload,
        Self::List,
        Self::Checkpoint,
        Self::End,
        Self::Drain,
        Self::RecordUndone,
        Self::Reconcile,
        Self::Rewrite,
        Self::Repair,
        Self::Freeze,
        Self::ComposeIntermediate,
        Self::ComposeFinal,
        Self::WriteReceipt,
        Self::ReadReceipt,
        Self::Clean,
    ];

    /// Its name in documents and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoreRejected => "store-rejected",
            Self::CommitValidation => "commit-validation",
            Self::Look => "look",
            Self::Claim => "claim",
            Self::Adopt => "adopt",
            Self::Seal => "seal",
            Self::Recover => "recover",
            Self::Send => "send",
            Self::Append => "append",
            Self::Upload => "upload",
            Self::List => "list",
            Self::Checkpoint => "checkpoint",
            Self::End => "end",
            Self::Drain => "drain",
            Self::RecordUndone => "record-undone",
            Self::Reconcile => "reconcile",
            Self::Rewrite => "rewrite",
            Self::Repair => "repair",
            Self::Freeze => "freeze",
            Self::ComposeIntermediate => "compose-intermediate",
            Self::ComposeFinal => "compose-final",
            Self::WriteReceipt => "write-receipt",
            Self::ReadReceipt => "read-receipt",
            Self::Clean => "clean",
        }
    }

    /// Whether it changes an object of the output, so that its fate may stay unknown.
    pub const fn writes(self) -> bool {
        match self {
            Self::StoreRejected
            | Self::CommitValidation
            | Self::Claim
            | Self::Seal
            | Self::Upload
            | Self::Checkpoint
            | Self::End
            | Self::Rewrite
            | Self::Repair
            | Self::Freeze
            | Self::ComposeIntermediate
            | Self::ComposeFinal
            | Self::WriteReceipt
            | Self::Clean => true,
            Self::Look
            | Self::Adopt
            | Self::Recover
            | Self::Send
            | Self::Append
            | Self::List
            | Self::Drain
            | Self::RecordUndone
            | Self::Reconcile
            | Self::ReadReceipt => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Step {
    type Err = UnknownStep;

    fn from_str(text: &str) -> Result<Self, UnknownStep> {
        Self::ALL.into_iter().find(|step| step.name() == text).ok_or_else(|| UnknownStep(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_found_by_its_name_and_stands_in_its_place() {
        for (place, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step.name().parse::<Step>().unwrap(), step);
            assert_eq!(step as usize, place, "{step}");
        }
        let message = "leap".parse::<Step>().unwrap_err().to_string();
        assert!(message.contains("leap") && message.contains("docs/protocol.md"), "{message}");
    }
}
