//! What no process knows, but the properties need: it sees every change of the storage and every crash.

use crate::{
    lines::Lines,
    process::{Executor, Process, Stage},
    storage::{Content, Storage, Writer},
};

/// A law about what happens, where properties are about what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// An owed line is not sent again, and not recorded as undone.
    NotPaidAgain,
    /// Epoch, seal, phase and ending never go back.
    NeverBack,
    /// What was frozen never changes.
    DecidedOnce,
    /// No object is deleted before there is a receipt.
    NotDeletedEarly,
}

/// The answers that a successor owes, and the first law that was broken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Witness {
    /// Lines whose answers the holder of the job had when it died, and could leave to the next: these must not be paid
    /// again (`docs/protocol.md`, "How many lines can be sent again").
    pub owed: Lines,
    /// What was broken first.
    pub broken: Option<Law>,
}

impl Witness {
    /// `state.json` is replaced.
    pub(crate) fn replaced(
        &mut self,
        before: Option<&(Content, Writer)>,
        after: &Content,
        processes: &[Process],
    ) {
        let Some((before, writer)) = before else {
            return;
        };
        let back = after.epoch < before.epoch
            || after.sealed < before.sealed
            || (before.finalizing && !after.finalizing)
            || (before.ending && !after.ending);
        self.hold(Law::NeverBack, !back);
        self.hold(Law::DecidedOnce, !before.finalizing || after.decision() == before.decision());
        // A predecessor that lives goes on spending: that is not a clean succession.
        let lives = matches!(processes.get(usize::from(writer.incarnation)), Some(Process::Alive(_)));
        if after.epoch > before.epoch && lives {
            self.owed = Lines::NONE;
        }
    }

    /// A process ends.
    pub(crate) fn ended(&mut self, storage: &Storage, executor: &Executor, scratch_lost: bool) {
        let holds = storage.state.as_ref().is_some_and(|(content, _)| content.epoch == executor.book.epoch);
        let claims = matches!(executor.stage, Stage::Looked | Stage::Claimed | Stage::Adopted);
        if holds && !claims {
            self.owed = self.owed.and(executor.held());
        }
        if scratch_lost {
            self.owed = self.owed.shared_with(storage.kept());
        }
    }

    /// A line is sent, or recorded as undone.
    pub(crate) fn spent(&mut self, storage: &Storage, executor: &Executor, line: u8) {
        let holds = storage.state.as_ref().is_some_and(|(content, _)| content.epoch == executor.book.epoch);
        self.hold(Law::NotPaidAgain, !(holds && self.owed.contains(line)));
    }

    /// An object is deleted.
    pub(crate) fn deleted(&mut self, storage: &Storage) {
        self.hold(Law::NotDeletedEarly, storage.receipt.is_some());
    }

    fn hold(&mut self, law: Law, holds: bool) {
        if !holds {
            self.broken.get_or_insert(law);
        }
    }
}
