//! One step of one process: what every step needs. Which steps are possible and what they do stands in
//! [`claim`](crate::claim), [`run`](crate::run) and [`finalise`](crate::finalise).

use penstock_job::Step;

use crate::{
    action::Fate,
    configuration::{Configuration, Omission},
    process::{Executor, Process, Unsure},
    scratch::Left,
    state::State,
    storage::{Content, Incarnation, Write, Writer},
};

/// A step that is being taken. The process is out of `state.processes` meanwhile.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) configuration: Configuration,
    pub(crate) state: &'a mut State,
    pub(crate) number: Incarnation,
    pub(crate) me: Executor,
    pub(crate) fate: Fate,
}

/// How a step leaves its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes on.
    GoesOn,
    /// It exits; what it has in scratch stays there.
    Exits,
    /// It exits with a receipt, and has removed its scratch folder.
    Finishes,
}

/// What became of a write of `state.json`, as far as its process knows (S2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Applied,
    Unknown,
    Lost,
}

/// What a read back finds when the generation is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The write that was under way.
    Applied,
    /// An earlier write of this process, which it had given up.
    Older,
    /// Another process's write: the claim is lost.
    Foreign,
}

impl Turn<'_> {
    /// Puts the process back as the step has left it.
    pub(crate) fn end(self, outcome: Outcome) {
        self.state.processes[usize::from(self.number)] = match outcome {
            Outcome::GoesOn => Process::Alive(self.me),
            Outcome::Exits => Process::Gone(self.me.left_behind()),
            Outcome::Finishes => Process::Gone(Left::default()),
        };
    }

    /// CAS of `state.json` (S2). Where the generation is not the one that this process knows, what stands there decides;
    /// otherwise a write whose fate is unknown is not applied so far, and is sent again unchanged.
    pub(crate) fn write_state(&mut self, step: Step, content: Content) -> Written {
        let content = self.me.unsure.take().map_or(content, |unsure| unsure.content);
        if !self.me.current {
            let found = self.found(&content);
            self.me.current = found != Found::Foreign;
            return match found {
                Found::Applied => Written::Applied,
                Found::Older => {
                    self.me.unsure = Some(Unsure { step, content });
                    Written::Unknown
                }
                Found::Foreign => Written::Lost,
            };
        }
        let write = Write::State(content.clone(), Writer { incarnation: self.number, given_up: false });
        match self.fate {
            Fate::Told => {
                self.state.apply(write);
                return Written::Applied;
            }
            Fate::Unheard => {
                self.state.faults.ambiguous -= 1;
                self.state.apply(write);
                self.me.current = false;
            }
            Fate::Late => {
                self.state.faults.ambiguous -= 1;
                self.state.delay(write);
            }
        }
        self.me.unsure = Some(Unsure { step, content });
        Written::Unknown
    }

    /// What stands in place of the generation that this process knows.
    fn found(&self, content: &Content) -> Found {
        let Some((found, writer)) = &self.state.storage.state else { return Found::Foreign };
        let is_mine = if self.configuration.keeps(Omission::Writer) {
            writer.incarnation == self.number
        } else {
            found == content
        };
        match (is_mine, writer.given_up) {
            (false, _) => Found::Foreign,
            (true, true) => Found::Older,
            (true, false) => Found::Applied,
        }
    }

    /// A create-only write that nothing stands in the way of. Returns whether the process knows that it is applied.
    pub(crate) fn create(&mut self, write: Write) -> bool {
        match self.fate {
            Fate::Told => self.state.apply(write),
            Fate::Unheard => {
                self.state.faults.ambiguous -= 1;
                self.state.apply(write);
            }
            Fate::Late => {
                self.state.faults.ambiguous -= 1;
                self.state.delay(write);
            }
        }
        self.fate == Fate::Told
    }
}
