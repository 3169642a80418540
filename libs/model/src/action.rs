//! What can happen next: a step of one process, or a fault.

use std::fmt;

use penstock_job::{Step, layout::Kind};

use crate::storage::{Incarnation, Write};

/// One transition of the model. A step of a process changes at most one object, or sends or answers one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// A process takes a step of the protocol.
    Take {
        /// Which process.
        process: Incarnation,
        /// The step. [`Step::Look`] is also how a process starts.
        step: Step,
        /// What the step is about.
        subject: Subject,
        /// What the process learns of its write.
        fate: Fate,
    },
    /// A process ends at once.
    Crash {
        /// Which process.
        process: Incarnation,
        /// Whether the scratch folder is lost with it: its own and what earlier ones had left there.
        scratch_lost: bool,
    },
    /// A process is told to stop (R7). It no longer waits for a write whose fate it does not know.
    Stop {
        /// Which process.
        process: Incarnation,
    },
    /// A write that was reported as failed is applied after all, whether or not its process still lives.
    LandLate(Write),
    /// Whoever owns the job wants it to end early.
    AskToEnd,
}

/// What a step is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The job as a whole.
    Job,
    /// One line, by its ordinal.
    Line(u8),
    /// The part or the published file of one kind.
    Kind(Kind),
}

/// What becomes of a write, and what its process learns of that (S1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The process learns what became of it: applied, or not because its condition did not hold. A step that does not
    /// write has this fate.
    Told,
    /// It is applied; the process learns of a failure.
    Unheard,
    /// The process learns of a failure; the write lands later, or never.
    Late,
}

impl Action {
    /// Whether this is, or needs, something that goes wrong. A job must come to its end without any of these.
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Take { fate, .. } => *fate != Fate::Told,
            Self::Crash { .. } | Self::Stop { .. } | Self::LandLate(_) | Self::AskToEnd => true,
        }
    }

    /// The action without process, line and bytes: what a set of traces has to cover.
    pub fn sort(&self) -> String {
        match self {
            Self::Take { step, subject, fate, .. } => {
                let kind = match subject {
                    Subject::Kind(kind) => format!(" {kind:?}"),
                    Subject::Job | Subject::Line(_) => String::new(),
                };
                format!("{step}{kind}{fate}")
            }
            Self::Crash { scratch_lost: false, .. } => "crash".to_owned(),
            Self::Crash { scratch_lost: true, .. } => "crash, scratch lost".to_owned(),
            Self::Stop { .. } => "told to stop".to_owned(),
            Self::LandLate(Write::State(..)) => "the state lands late".to_owned(),
            Self::LandLate(Write::Part(_)) => "a part lands late".to_owned(),
            Self::LandLate(Write::Final(kind, _)) => format!("the final of {kind:?} lands late"),
            Self::LandLate(Write::Receipt(_)) => "the receipt lands late".to_owned(),
            Self::AskToEnd => "asked to end".to_owned(),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Take { process, step, subject: Subject::Line(line), fate } => {
                write!(formatter, "{process}: {step} line {line}{fate}")
            }
            Self::Take { process, .. } | Self::Crash { process, .. } | Self::Stop { process } => {
                write!(formatter, "{process}: {}", self.sort())
            }
            Self::LandLate(Write::Part(part)) => write!(formatter, "{} lands late", part.name),
            Self::LandLate(_) | Self::AskToEnd => formatter.write_str(&self.sort()),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Told => "",
            Self::Unheard => ", applied but reported as failed",
            Self::Late => ", reported as failed and on its way",
        })
    }
}
