//! What all processes share: the objects below a job's output, and writes that may still land.
//!
//! A generation is not a number here. It is only ever compared with the newest one and never repeats, so each process
//! knows whether the one that it holds is still the newest, and a write on an older one can never be applied again.

use penstock_job::{Epoch, layout::Kind, layout::PartName};

use crate::{by_kind::ByKind, lines::Lines};

/// The number of an incarnation, from 0 in the order of their starts.
pub type Incarnation = u8;

/// A part: immutable. `writer` stands for the bytes, since answers to one line differ from one request to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Its name; parts are in the order of their names.
    pub name: PartName,
    /// The lines that it has records of.
    pub lines: Lines,
    /// Who made it.
    pub writer: Incarnation,
}

/// What `state.json` says, without its writer.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// The newest claim.
    pub epoch: Epoch,
    /// No part of this epoch or an earlier one is adopted any more.
    pub sealed: Epoch,
    /// The outcome is decided (F3); it is `ending` and `parts`.
    pub finalizing: bool,
    /// The job ends early (E2).
    pub ending: bool,
    /// The manifest, in the order of names.
    pub parts: Vec<Part>,
}

impl Content {
    /// The union of the lines of the listed parts (R4).
    pub fn completed(&self) -> Lines {
        self.parts.iter().map(|part| part.lines).collect()
    }

    /// Lists a part.
    pub(crate) fn list(&mut self, part: Part) {
        let at = self.parts.partition_point(|listed| *listed < part);
        self.parts.insert(at, part);
    }

    /// The listed parts of one kind: what the published file of that kind is made of.
    pub fn of_kind(&self, kind: Kind) -> Vec<Part> {
        self.parts.iter().filter(|part| part.name.kind == kind).copied().collect()
    }

    /// What a finaliser of this state publishes.
    pub fn decision(&self) -> Decision {
        Decision { ending: self.ending, parts: self.parts.clone() }
    }
}

/// What is frozen, and what a receipt proves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Whether the job ended early.
    pub ending: bool,
    /// The parts that the published files are made of.
    pub parts: Vec<Part>,
}

/// Whose write of `state.json` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// It has stopped waiting for this write and begun another: an older one of its own (S2).
    pub given_up: bool,
}

/// The objects below a job's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Storage {
    /// `state.json` and its writer.
    pub state: Option<(Content, Writer)>,
    /// `parts/`, in the order of names.
    pub parts: Vec<Part>,
    /// The published files, each as the parts that it was composed from.
    pub finals: ByKind<Option<Vec<Part>>>,
    /// `receipt.json`.
    pub receipt: Option<Decision>,
}

/// A write of `state.json` is conditional on the newest generation, every other one on absence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Write {
    /// Of `state.json`.
    State(Content, Writer),
    /// Of a part.
    Part(Part),
    /// Of a published file, composed from these parts.
    Final(Kind, Vec<Part>),
    /// Of the receipt.
    Receipt(Decision),
}

impl Storage {
    /// Whether a write would be applied. Of `state.json` only writes on the newest generation are kept.
    pub fn accepts(&self, write: &Write) -> bool {
        match write {
            Write::State(..) => true,
            Write::Part(part) => self.part(part.name).is_none(),
            Write::Final(kind, sources) => self.finals[*kind].is_none() && self.has(sources),
            Write::Receipt(_) => self.receipt.is_none(),
        }
    }

    /// Applies a write that [`accepts`](Self::accepts) allows.
    pub(crate) fn apply(&mut self, write: Write) {
        match write {
            Write::State(content, writer) => self.state = Some((content, writer)),
            Write::Part(part) => {
                let at = self.parts.partition_point(|stored| *stored < part);
                self.parts.insert(at, part);
            }
            Write::Final(kind, sources) => self.finals[kind] = Some(sources),
            Write::Receipt(decision) => self.receipt = Some(decision),
        }
    }

    /// The part of that name.
    pub fn part(&self, name: PartName) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Whether all of these parts are stored as they were listed.
    pub fn has(&self, parts: &[Part]) -> bool {
        parts.iter().all(|part| self.parts.contains(part))
    }

    /// The lines of parts that are listed or can still be.
    pub(crate) fn kept(&self) -> Lines {
        let listed = self.state.as_ref().map(|(content, _)| content);
        let sealed = listed.map_or(Epoch::NONE, |content| content.sealed);
        self.parts
            .iter()
            .filter(|part| {
                part.name.epoch > sealed || listed.is_some_and(|content| content.parts.contains(part))
            })
            .map(|part| part.lines)
            .collect()
    }
}
