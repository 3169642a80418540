//! What one incarnation knows and holds. All of it but the scratch folder is gone when it ends.

use penstock_job::{Step, layout::Kind};

use crate::{
    action::Subject,
    lines::Lines,
    scratch::{Files, Left},
    storage::Content,
};

/// One incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Process {
    /// Not started.
    Unstarted,
    /// Alive, perhaps superseded without knowing it.
    Alive(Executor),
    /// Ended; what it left in scratch.
    Gone(Left),
}

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Executor {
    /// How far it is.
    pub stage: Stage,
    /// The state as it would write it now.
    pub book: Content,
    /// Whether the generation of `state.json` that it knows is still the newest.
    pub current: bool,
    /// A write of `state.json` whose fate it does not know.
    pub unsure: Option<Unsure>,
    /// Whether the book says more than what it last stored.
    pub dirty: bool,
    /// Lines whose requests are with the provider.
    pub in_flight: Lines,
    /// Its files in scratch: records that are not listed.
    pub files: Files,
    /// The sequence of its newest part.
    pub sequence: u32,
}

/// A write of `state.json` with fixed bytes and unknown fate (S2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unsure {
    /// The step that makes it.
    pub step: Step,
    /// Its bytes.
    pub content: Content,
}

/// How far a process is: what it has done last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Has read receipt and state (C1-C3).
    Looked,
    /// Holds an epoch (C4).
    Claimed,
    /// Has read what earlier epochs left (C6).
    Adopted,
    /// Has sealed them (C7).
    Sealed,
    /// Stores what earlier incarnations had left in scratch (R3), before it does anything else.
    Recovered,
    /// Sends, hears, stores.
    Answering,
    /// Records undone lines (E4).
    Ending,
    /// Was told to stop: stores what it has and leaves (R7).
    Leaving,
    /// Has found a listed part missing (F2).
    Missing,
    /// Has found every line once (F2).
    Reconciled,
    /// The decision is stored (F3); publishes the file of this kind (F4).
    Composing(Kind),
    /// Every published file is there (F4).
    Composed,
    /// Has read a receipt (F6).
    Published,
}

impl Stage {
    /// Whether the process publishes a decision.
    pub fn publishes(self) -> bool {
        matches!(self, Self::Composing(_) | Self::Composed | Self::Published)
    }

    /// Whether the process may collect outcomes.
    pub(crate) fn collects(self) -> bool {
        matches!(self, Self::Recovered | Self::Answering | Self::Ending | Self::Leaving)
    }
}

impl Executor {
    /// A process that has read this state, or that there is none.
    pub(crate) fn new(book: Content) -> Self {
        Self {
            stage: Stage::Looked,
            book,
            current: true,
            unsure: None,
            dirty: false,
            in_flight: Lines::NONE,
            files: Files::default(),
            sequence: 0,
        }
    }

    /// The files that stay when it ends.
    pub(crate) fn left_behind(&self) -> Left {
        self.files.left_behind(self.book.epoch)
    }

    /// The lines that have an outcome here: listed, or in its files (R1).
    pub fn held(&self) -> Lines {
        self.book.completed().and(self.files.lines())
    }

    /// Whether everything that it holds is listed (F1).
    pub(crate) fn all_listed(&self) -> bool {
        self.files.lines().is_empty()
    }

    /// Whether it does not know what became of an earlier attempt at this write of `state.json` or of a part.
    pub(crate) fn is_unsure_of(&self, step: Step, subject: Subject) -> bool {
        match (step, subject) {
            (Step::Upload, Subject::Kind(kind)) => self.files.closed[kind].is_some(),
            _ => self.unsure.as_ref().is_some_and(|unsure| unsure.step == step),
        }
    }

    /// Whether it has stored the ending: it is in the book, and not only on its way (E2).
    pub(crate) fn ending_stored(&self) -> bool {
        self.book.ending && self.unsure.as_ref().is_none_or(|unsure| unsure.step != Step::End)
    }
}
