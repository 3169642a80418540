//! Reconcile, freeze, compose, receipt, clean (F1-F6 of the protocol).

use penstock_job::{Step, layout::Kind};

use crate::{
    action::Subject,
    configuration::Omission,
    process::{Executor, Stage},
    storage::{Content, Write},
    turn::{Outcome, Turn, Written},
};

/// The steps of a process behind reconciliation.
pub(crate) fn steps(executor: &Executor, steps: &mut Vec<(Step, Subject)>) {
    steps.push(match executor.stage {
        Stage::Missing => (Step::Repair, Subject::Job),
        Stage::Reconciled => (Step::Freeze, Subject::Job),
        Stage::Composing(kind) => (Step::ComposeFinal, Subject::Kind(kind)),
        Stage::Composed => (Step::WriteReceipt, Subject::Job),
        Stage::Published => (Step::Clean, Subject::Job),
        _ => return,
    });
}

impl Turn<'_> {
    /// F2: every listed part is read again.
    pub(crate) fn reconcile(&mut self) -> Outcome {
        let whole = self.state.storage.has(&self.me.book.parts);
        self.me.stage = if whole { Stage::Reconciled } else { Stage::Missing };
        Outcome::GoesOn
    }

    /// F2: what is missing leaves the manifest, and its lines are to be sent again.
    pub(crate) fn repair(&mut self) -> Outcome {
        let parts = &self.state.storage.parts;
        let mut content = self.me.book.clone();
        content.parts.retain(|part| parts.contains(part));
        match self.write_state(Step::Repair, content.clone()) {
            Written::Applied => {
                self.me.book = content;
                self.me.stage = if self.me.book.ending { Stage::Ending } else { Stage::Answering };
                Outcome::GoesOn
            }
            Written::Unknown => Outcome::GoesOn,
            Written::Lost => Outcome::Exits,
        }
    }

    /// F3: the write that decides.
    pub(crate) fn freeze(&mut self) -> Outcome {
        if !self.configuration.keeps(Omission::Freeze) {
            self.publish();
            return Outcome::GoesOn;
        }
        let content = Content { finalizing: true, ..self.me.book.clone() };
        match self.write_state(Step::Freeze, content.clone()) {
            Written::Applied => {
                self.me.book = content;
                self.publish();
                Outcome::GoesOn
            }
            Written::Unknown => Outcome::GoesOn,
            Written::Lost => Outcome::Exits,
        }
    }

    /// From here on the decision is carried out.
    pub(crate) fn publish(&mut self) {
        self.me.stage = self.next_final(Kind::ALL.into_iter());
    }

    /// A file that would be empty is not written.
    fn next_final(&self, mut kinds: impl Iterator<Item = Kind>) -> Stage {
        kinds.find(|kind| !self.me.book.of_kind(*kind).is_empty()).map_or(Stage::Composed, Stage::Composing)
    }

    /// F4 and S4.
    pub(crate) fn compose_final(&mut self, kind: Kind) -> Outcome {
        let sources = self.me.book.of_kind(kind);
        let storage = &self.state.storage;
        let there = match &storage.finals[kind] {
            Some(found) if *found == sources => true,
            None if storage.has(&sources) => self.create(Write::Final(kind, sources)),
            // Fine if another finaliser has published the same decision and cleaned.
            None if storage.receipt.as_ref() == Some(&self.me.book.decision()) => {
                self.me.stage = Stage::Published;
                false
            }
            // Another file, or a source that is gone.
            _ => return Outcome::Exits,
        };
        if there {
            self.me.stage = self.next_final(Kind::ALL.into_iter().skip_while(|done| *done != kind).skip(1));
        }
        Outcome::GoesOn
    }

    /// F5, and the read back of F6.
    pub(crate) fn write_receipt(&mut self) -> Outcome {
        let decision = self.me.book.decision();
        let there = match &self.state.storage.receipt {
            Some(found) if *found == decision => true,
            Some(_) => return Outcome::Exits,
            None => self.create(Write::Receipt(decision)),
        };
        if there {
            self.me.stage = Stage::Published;
        }
        Outcome::GoesOn
    }

    /// F6: one part is deleted; when none is left, the process leaves.
    pub(crate) fn clean(&mut self) -> Outcome {
        if self.state.storage.parts.is_empty() {
            return Outcome::Finishes;
        }
        self.state.witness.deleted(&self.state.storage);
        self.state.storage.parts.remove(0);
        Outcome::GoesOn
    }
}
