//! One step of one process: what every step needs. Which steps are possible and what they do stands in
//! [`claim`](crate::claim), [`run`](crate::run) and [`finalise`](crate::finalise).

use penstock_job::Step;

use crate::{
    action::Fate,
    configuration::{Configuration, Omission},
    process::{Executor, Process, Scratch, Unsure},
    state::State,
    storage::{Content, Incarnation, Write},
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

impl Turn<'_> {
    /// Puts the process back as the step has left it.
    pub(crate) fn end(self, outcome: Outcome) {
        self.state.processes[usize::from(self.number)] = match outcome {
            Outcome::GoesOn => Process::Alive(self.me),
            Outcome::Exits => Process::Gone(self.me.left_behind()),
            Outcome::Finishes => Process::Gone(Scratch::default()),
        };
    }

    /// CAS of `state.json` (S2). A write whose fate is unknown is read back first, and sent again if it is not there;
    /// so is one whose condition does not hold.
    pub(crate) fn write_state(&mut self, step: Step, content: Content) -> Written {
        let earlier = self.me.unsure.take();
        let read_back = earlier.is_some() || !self.me.current;
        let content = earlier.map_or(content, |unsure| unsure.content);
        if read_back && !self.me.current {
            let applied = self.is_mine(&content);
            self.me.current = applied;
            return if applied { Written::Applied } else { Written::Lost };
        }
        let write = Write::State(content.clone(), self.number);
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

    /// Whether the state that is found in place of the expected generation is this process's write.
    fn is_mine(&self, content: &Content) -> bool {
        self.state.storage.state.as_ref().is_some_and(|(found, writer)| {
            if self.configuration.keeps(Omission::Writer) {
                // One write is under way at a time, so whatever is there of this process is that one.
                *writer == self.number
            } else {
                found == content
            }
        })
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
