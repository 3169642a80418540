//! Claim, adopt, seal, recover (C1-C9 and R3 of the protocol).

use penstock_job::{Epoch, Step, layout::Kind};

use crate::{
    action::Subject,
    configuration::Omission,
    lines::Lines,
    process::{Executor, Process, Stage},
    state::State,
    storage::{Content, Part},
    turn::{Outcome, Turn, Written},
};

/// C1-C3: what a process that starts becomes; `None` when it finds a receipt and leaves.
pub(crate) fn look(state: &State) -> Option<Executor> {
    let found = state.storage.state.as_ref().map(|(content, _)| content.clone());
    state.storage.receipt.is_none().then(|| Executor::new(found.unwrap_or_default()))
}

/// The steps of a process that has not sealed yet.
pub(crate) fn steps(executor: &Executor, steps: &mut Vec<(Step, Subject)>) {
    let step = match executor.stage {
        Stage::Looked => Step::Claim,
        Stage::Claimed => Step::Adopt,
        Stage::Adopted => Step::Seal,
        Stage::Sealed => Step::Recover,
        _ => return,
    };
    steps.push((step, Subject::Job));
}

impl Turn<'_> {
    /// C4. What is frozen can only be published (C5).
    pub(crate) fn claim(&mut self) -> Outcome {
        let content = Content {
            epoch: self.me.book.epoch.next().expect("a model claims a few times"),
            ..self.me.book.clone()
        };
        match self.write_state(Step::Claim, content.clone()) {
            Written::Applied => {
                self.me.book = content;
                if self.me.book.finalizing {
                    self.publish();
                } else {
                    self.me.stage = Stage::Claimed;
                }
                Outcome::GoesOn
            }
            Written::Unknown => Outcome::GoesOn,
            Written::Lost => Outcome::Exits,
        }
    }

    /// C6: unlisted parts of unsealed epochs, in the order of names, each if it overlaps with nothing.
    pub(crate) fn adopt(&mut self) -> Outcome {
        let book = &mut self.me.book;
        let mut completed = book.completed();
        let mut found = false;
        for part in unlisted(&self.state.storage.parts, book) {
            found = true;
            if part.lines.is_disjoint(completed) {
                completed = completed.and(part.lines);
                book.list(part);
            }
        }
        let sealed = book.epoch.previous();
        if !self.configuration.keeps(Omission::Seal) {
            self.me.dirty = found;
            self.me.stage = Stage::Sealed;
        } else if found || book.sealed != sealed {
            book.sealed = sealed;
            self.me.stage = Stage::Adopted;
        } else {
            // There is nothing to store, as in epoch 1.
            self.me.stage = Stage::Sealed;
        }
        Outcome::GoesOn
    }

    /// C7.
    pub(crate) fn seal(&mut self) -> Outcome {
        match self.write_state(Step::Seal, self.me.book.clone()) {
            Written::Applied => {
                self.me.stage = Stage::Sealed;
                Outcome::GoesOn
            }
            Written::Unknown => Outcome::GoesOn,
            Written::Lost => Outcome::Exits,
        }
    }

    /// R3: the records that earlier incarnations have in scratch are copied. Their files are deleted once these are stored.
    pub(crate) fn recover(&mut self) -> Outcome {
        let mut taken = self.me.held();
        for process in &mut self.state.processes {
            let records = match process {
                Process::Gone(left) if left.epoch() < self.me.book.epoch => left.copied_by(self.number),
                Process::Alive(other) if is_earlier(other, self.me.book.epoch) => {
                    other.files.copied_by(self.number)
                }
                _ => continue,
            };
            for kind in Kind::ALL {
                let wanted = records[kind].without(taken);
                taken = taken.and(wanted);
                let open = &mut self.me.files.open[kind];
                open.lines = open.lines.and(wanted);
            }
        }
        self.me.stage = Stage::Recovered;
        self.go_on_if_stored();
        Outcome::GoesOn
    }

    /// R3 and C9: once everything recovered is stored, the files that it was copied from are deleted, and the process
    /// answers lines, or records undone ones.
    pub(crate) fn go_on_if_stored(&mut self) {
        if self.me.stage == Stage::Recovered && self.me.all_listed() {
            for process in &mut self.state.processes {
                match process {
                    Process::Unstarted => {}
                    Process::Alive(other) => other.files.deleted_by(self.number),
                    Process::Gone(left) => left.deleted_by(self.number),
                }
            }
            self.me.stage = if self.me.book.ending { Stage::Ending } else { Stage::Answering };
        }
    }
}

fn is_earlier(other: &Executor, epoch: Epoch) -> bool {
    other.stage != Stage::Looked && other.book.epoch < epoch
}

fn unlisted(parts: &[Part], book: &Content) -> Vec<Part> {
    let open = |part: &&Part| book.sealed < part.name.epoch && part.name.epoch < book.epoch;
    parts.iter().filter(open).filter(|part| !book.parts.contains(part)).copied().collect()
}

/// Lines that nothing holds yet.
pub(crate) fn undone(executor: &Executor, all: Lines) -> Lines {
    all.without(executor.held())
}
