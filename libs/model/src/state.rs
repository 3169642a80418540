//! One state of the modelled world.

use crate::{
    configuration::Faults,
    lines::Lines,
    process::{Process, Stage},
    scratch::{Left, Takers},
    storage::{Incarnation, Storage, Write},
    witness::Witness,
};

/// Storage, processes, writes on their way, faults that may still happen, and a witness.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// What all processes share.
    pub storage: Storage,
    /// Writes that were reported as failed and may still land; sorted.
    pub wire: Vec<Write>,
    /// The processes, in the order of their starts.
    pub processes: Vec<Process>,
    /// Whether the job was asked to end early.
    pub asked_to_end: bool,
    /// Faults left.
    pub faults: Faults,
    /// What no process knows, but properties need.
    pub witness: Witness,
}

impl State {
    /// Applies a write to the storage. A new state makes every generation known so far an old one.
    pub(crate) fn apply(&mut self, write: Write) {
        if let Write::State(content, _) = &write {
            self.witness.replaced(self.storage.state.as_ref(), content, &self.processes);
            for process in &mut self.processes {
                if let Process::Alive(executor) = process {
                    executor.current = false;
                }
            }
            self.wire.retain(|waiting| !matches!(waiting, Write::State(..)));
        }
        self.storage.apply(write);
    }

    /// Sends a write on its way.
    pub(crate) fn delay(&mut self, write: Write) {
        let at = self.wire.partition_point(|waiting| *waiting < write);
        self.wire.insert(at, write);
    }

    /// The incarnation that may be started now: one that is still to come, or a replacement when all have ended and
    /// there is no receipt.
    pub(crate) fn next_incarnation(&self) -> Option<Incarnation> {
        let is_gone = |process: &Process| matches!(process, Process::Gone(_));
        let waiting = self.processes.iter().position(|process| *process == Process::Unstarted);
        let replacement = || {
            let needed = self.storage.receipt.is_none() && self.processes.iter().all(is_gone);
            needed.then_some(self.processes.len())
        };
        waiting.or_else(replacement).and_then(|number| Incarnation::try_from(number).ok())
    }

    /// Forgets what can no longer make a difference, so that equal futures are one state.
    pub(crate) fn normalise(&mut self) {
        let Self { storage, wire, .. } = self;
        // A create-only write whose name is taken, or whose sources are gone, can never be applied.
        wire.retain(|write| storage.accepts(write));
        wire.dedup();
        if self.decided() {
            // Nothing is sent any more by whoever holds the job, so nothing is recovered or owed.
            self.witness.owed = Lines::NONE;
            for process in &mut self.processes {
                if let Process::Gone(left) = process {
                    *left = Left::default();
                }
            }
        }
        // Who has ended, or was told to stop, deletes nothing any more.
        let recovers =
            |process: &Process| matches!(process, Process::Alive(me) if me.stage == Stage::Recovered);
        let recovering: Takers = (0..)
            .zip(&self.processes)
            .filter(|(_, process)| recovers(process))
            .map(|(number, _)| number)
            .collect();
        for process in &mut self.processes {
            match process {
                Process::Unstarted => {}
                Process::Alive(executor) => executor.files.only_taken_by(recovering),
                Process::Gone(left) => left.only_taken_by(recovering),
            }
        }
    }

    fn decided(&self) -> bool {
        self.storage.receipt.is_some()
            || self.storage.state.as_ref().is_some_and(|(content, _)| content.finalizing)
    }
}
