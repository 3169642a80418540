//! What one incarnation knows and holds. All of it but the scratch folder is gone when it ends.

use penstock_job::{Epoch, Step, layout::Kind};

use crate::{
    by_kind::ByKind,
    lines::Lines,
    storage::{Content, Part},
};

/// One incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Process {
    /// Not started.
    Unstarted,
    /// Alive, perhaps superseded without knowing it.
    Alive(Executor),
    /// Ended; what it left in scratch.
    Gone(Scratch),
}

/// The files of one incarnation in scratch; the default when there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Scratch {
    /// The epoch in their names.
    pub epoch: Epoch,
    /// The lines that they have records of.
    pub records: ByKind<Lines>,
}

impl Scratch {
    /// The lines of both kinds.
    pub fn lines(&self) -> Lines {
        self.records.values().copied().collect()
    }
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
    /// Records in the part under construction, a file in scratch.
    pub open: ByKind<Lines>,
    /// A closed part that is not known to be durable; it is in scratch too.
    pub closed: ByKind<Option<Part>>,
    /// The sequence of its newest part.
    pub sequence: u32,
    /// A successor on the same machine has taken over its files in scratch.
    pub files_taken: bool,
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
            open: ByKind::default(),
            closed: ByKind::default(),
            sequence: 0,
            files_taken: false,
        }
    }

    /// Its files in scratch.
    pub(crate) fn scratch(&self) -> Scratch {
        let mut records = self.open;
        for kind in Kind::ALL {
            records[kind] = records[kind].and(self.closed[kind].map_or(Lines::NONE, |part| part.lines));
        }
        Scratch { epoch: self.book.epoch, records }
    }

    /// The files that stay when it ends: none where a successor has taken them over.
    pub(crate) fn left_behind(&self) -> Scratch {
        let scratch = self.scratch();
        if self.files_taken || scratch.lines().is_empty() { Scratch::default() } else { scratch }
    }

    /// The lines that have an outcome here: listed, or in scratch (R1).
    pub fn held(&self) -> Lines {
        self.book.completed().and(self.scratch().lines())
    }

    /// Whether everything that it holds is listed (F1).
    pub(crate) fn all_listed(&self) -> bool {
        self.scratch().lines().is_empty()
    }

    /// Whether it has stored the ending: it is in the book, and not only on its way (E2).
    pub(crate) fn ending_stored(&self) -> bool {
        self.book.ending && self.unsure.as_ref().is_none_or(|unsure| unsure.step != Step::End)
    }
}
