//! Send, append, upload, checkpoint, end early (R1-R6 and E1-E4 of the protocol).

use penstock_job::{
    Step,
    layout::{Kind, PartName},
};

use crate::{
    action::{Fate, Subject},
    claim::undone,
    configuration::{Configuration, Omission},
    lines::Lines,
    process::{Executor, Stage},
    scratch::{Closed, Files, Open, Taken},
    state::State,
    storage::{Part, Write},
    turn::{Outcome, Turn, Written},
};

/// The steps of a process that collects outcomes.
pub(crate) fn steps(
    configuration: Configuration,
    state: &State,
    executor: &Executor,
    steps: &mut Vec<(Step, Subject)>,
) {
    if !executor.stage.collects() {
        return;
    }
    let undone = undone(executor, Lines::first(configuration.lines));
    let writing = executor.unsure.as_ref().map(|unsure| unsure.step);
    for kind in Kind::ALL {
        if !executor.files.of_kind(kind).is_empty() {
            steps.push((Step::Upload, Subject::Kind(kind)));
        }
    }
    // It is also how a process learns that its claim is gone (R5).
    let leaving = executor.stage == Stage::Leaving;
    let worthwhile = executor.dirty || !executor.current || leaving;
    if writing == Some(Step::Checkpoint) || (writing.is_none() && worthwhile) {
        steps.push((Step::Checkpoint, Subject::Job));
    }
    steps.extend(executor.in_flight.iter().map(|line| (Step::Append, Subject::Line(line))));
    match executor.stage {
        Stage::Answering => {
            if !executor.book.ending && writing != Some(Step::End) {
                let idle = undone.without(executor.in_flight);
                steps.extend(idle.iter().map(|line| (Step::Send, Subject::Line(line))));
            }
            let may_end = state.asked_to_end && !executor.book.ending && !undone.is_empty();
            if writing == Some(Step::End) || (writing.is_none() && may_end) {
                steps.push((Step::End, Subject::Job));
            }
            if executor.ending_stored() {
                steps.push((Step::Drain, Subject::Job));
            }
        }
        Stage::Ending => {
            // In the order of the input.
            if executor.files.of_kind(Kind::Results).is_empty()
                && let Some(line) = undone.iter().next()
            {
                steps.push((Step::RecordUndone, Subject::Line(line)));
            }
        }
        _ => {}
    }
    if !leaving && undone.is_empty() && executor.all_listed() && writing.is_none() {
        steps.push((Step::Reconcile, Subject::Job));
    }
}

impl Turn<'_> {
    /// R1.
    pub(crate) fn send(&mut self, line: u8) -> Outcome {
        self.state.witness.spent(&self.state.storage, &self.me, line);
        self.me.in_flight = self.me.in_flight.and(Lines::one(line));
        Outcome::GoesOn
    }

    /// R3: the answer comes, and counts once its record is in scratch.
    pub(crate) fn append(&mut self, line: u8) -> Outcome {
        self.me.in_flight = self.me.in_flight.without(Lines::one(line));
        self.record(Kind::Results, line)
    }

    fn record(&mut self, kind: Kind, line: u8) -> Outcome {
        let open = &mut self.me.files.open[kind];
        open.lines = open.lines.and(Lines::one(line));
        Outcome::GoesOn
    }

    /// S3: name and bytes are fixed before the first attempt. Once known to be durable the part is listed (R3).
    pub(crate) fn upload(&mut self, kind: Kind) -> Outcome {
        let files = &mut self.me.files;
        let closed = *files.closed[kind].get_or_insert_with(|| {
            self.me.sequence += 1;
            let name = PartName { epoch: self.me.book.epoch, sequence: self.me.sequence, kind };
            let Open { lines, taken } = std::mem::take(&mut files.open[kind]);
            Closed { part: Part { name, lines, writer: self.number }, taken }
        });
        let part = closed.part;
        let durable = match self.state.storage.part(part.name) {
            Some(stored) if *stored == part => true,
            // Another process uses this epoch.
            Some(_) => return Outcome::Exits,
            // A successor has stored its records and deleted it.
            None if closed.taken == Taken::Deleted => return Outcome::Exits,
            None => self.create(Write::Part(part)),
        };
        if durable {
            self.me.files.closed[kind] = None;
            self.me.book.list(part);
            self.me.dirty = true;
            self.go_on_if_stored();
        }
        Outcome::GoesOn
    }

    /// R5.
    pub(crate) fn checkpoint(&mut self) -> Outcome {
        self.store(Step::Checkpoint)
    }

    /// E2: the first ending stays. Dispatch has stopped (E1).
    pub(crate) fn end_early(&mut self) -> Outcome {
        self.me.book.ending = true;
        if self.configuration.keeps(Omission::Ending) {
            return self.store(Step::End);
        }
        // Without the decision the book says so, the state does not.
        self.me.stage = Stage::Answering;
        Outcome::GoesOn
    }

    /// E3: what is in flight is given up.
    pub(crate) fn drain(&mut self) -> Outcome {
        self.me.in_flight = Lines::NONE;
        self.me.stage = Stage::Ending;
        Outcome::GoesOn
    }

    /// E4.
    pub(crate) fn record_undone(&mut self, line: u8) -> Outcome {
        self.state.witness.spent(&self.state.storage, &self.me, line);
        self.record(Kind::Errors, line)
    }

    /// Writes the book. What enters it while a write is under way is for the next one.
    fn store(&mut self, step: Step) -> Outcome {
        let under_way = self.me.unsure.as_ref().map(|unsure| unsure.content.clone());
        let content = under_way.unwrap_or_else(|| self.me.book.clone());
        match self.write_state(step, content.clone()) {
            Written::Applied if self.me.stage == Stage::Leaving => {
                // What has not come by now is given up.
                self.state.witness.ended(&self.state.storage, &self.me, false);
                Outcome::Exits
            }
            Written::Applied => {
                self.me.dirty = content != self.me.book;
                Outcome::GoesOn
            }
            Written::Unknown => Outcome::GoesOn,
            Written::Lost => Outcome::Exits,
        }
    }
}

/// Whether a write that this step would make is to be sent and would be applied: only then can its fate be in doubt.
pub(crate) fn in_doubt(state: &State, executor: &Executor, step: Step, subject: Subject) -> bool {
    let storage = &state.storage;
    match (step, subject) {
        (Step::Claim | Step::Seal | Step::Checkpoint | Step::End | Step::Repair | Step::Freeze, _) => {
            executor.current
        }
        (Step::Upload, Subject::Kind(kind)) => {
            let Files { open, closed } = &executor.files;
            let taken = closed[kind].map_or(open[kind].taken, |closed| closed.taken);
            taken != Taken::Deleted
                && closed[kind].is_none_or(|closed| storage.part(closed.part.name).is_none())
        }
        (Step::ComposeFinal, Subject::Kind(kind)) => {
            storage.finals[kind].is_none() && storage.has(&executor.book.of_kind(kind))
        }
        (Step::WriteReceipt, _) => storage.receipt.is_none(),
        _ => false,
    }
}

/// The fates that a step may have.
pub(crate) fn fates(state: &State, executor: &Executor, step: Step, subject: Subject) -> Vec<Fate> {
    if state.faults.ambiguous > 0 && in_doubt(state, executor, step, subject) {
        vec![Fate::Told, Fate::Unheard, Fate::Late]
    } else {
        vec![Fate::Told]
    }
}
