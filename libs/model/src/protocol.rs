//! The protocol as a transition system: which actions are possible in a state, and what each makes of it.

use penstock_job::Step;
use stateright::{Model, Property};

use crate::{
    action::{Action, Fate, Subject},
    claim,
    configuration::Configuration,
    finalise,
    process::{Executor, Process, Stage},
    properties, run,
    scratch::Left,
    state::State,
    storage::{Incarnation, Storage, Write},
    turn::Turn,
    witness::Witness,
};

/// The protocol in one configuration.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// What is checked.
    pub configuration: Configuration,
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(process) = state.next_incarnation() {
            actions.push(take(process, Step::Look, Subject::Job, Fate::Told));
        }
        for (process, executor) in living(state) {
            for (step, subject) in self.steps(state, executor) {
                let fates = run::fates(state, executor, step, subject);
                actions.extend(fates.into_iter().map(|fate| take(process, step, subject, fate)));
            }
            if state.faults.stops > 0 && executor.stage.collects() && executor.stage != Stage::Leaving {
                actions.push(Action::Stop { process });
            }
            if state.faults.crashes > 0 {
                actions.push(Action::Crash { process, scratch_lost: false });
                if state.faults.lost_scratch > 0 {
                    actions.push(Action::Crash { process, scratch_lost: true });
                }
            }
        }
        let landing = state.wire.iter().filter(|write| state.storage.accepts(write));
        actions.extend(landing.cloned().map(Action::LandLate));
        if self.configuration.endings && !state.asked_to_end {
            actions.push(Action::AskToEnd);
        }
    }

    fn next_state(&self, last_state: &State, action: Action) -> Option<State> {
        let mut state = last_state.clone();
        match action {
            Action::Take { process, step: Step::Look, .. } => {
                let number = usize::from(process);
                let started =
                    claim::look(&state).map_or_else(|| Process::Gone(Left::default()), Process::Alive);
                // A replacement is one more than there were.
                state.processes.resize(state.processes.len().max(number + 1), Process::Unstarted);
                state.processes[number] = started;
            }
            Action::Take { process, step, subject, fate } => {
                self.take(&mut state, process, step, subject, fate);
            }
            Action::Stop { process } => stop(&mut state, process),
            Action::Crash { process, scratch_lost } => crash(&mut state, process, scratch_lost),
            Action::LandLate(write) => {
                state.wire.retain(|waiting| *waiting != write);
                state.apply(write);
            }
            Action::AskToEnd => state.asked_to_end = true,
        }
        state.normalise();
        Some(state)
    }

    /// A process stores each line once, so it never makes more parts than there are lines, and a process that ends
    /// without a receipt was killed or lost its claim to another. Where a rule is left out, both may go on for ever;
    /// that is cut off.
    fn within_boundary(&self, state: &State) -> bool {
        let Configuration { lines, incarnations, faults, .. } = self.configuration;
        let most_parts = 2 * u32::from(lines);
        let most_processes = usize::from(incarnations + faults.crashes + faults.stops + faults.ambiguous + 1);
        state.processes.len() <= most_processes
            && living(state).all(|(_, executor)| executor.sequence <= most_parts)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self.configuration)
    }
}

impl Protocol {
    /// The state before anything has happened.
    pub fn start(self) -> State {
        State {
            storage: Storage::default(),
            wire: Vec::new(),
            processes: vec![Process::Unstarted; usize::from(self.configuration.incarnations)],
            asked_to_end: false,
            faults: self.configuration.faults,
            witness: Witness::default(),
        }
    }

    /// What can happen in a state.
    pub fn possible(self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions
    }

    fn steps(self, state: &State, executor: &Executor) -> Vec<(Step, Subject)> {
        let mut steps = Vec::new();
        claim::steps(executor, &mut steps);
        run::steps(self.configuration, state, executor, &mut steps);
        finalise::steps(executor, &mut steps);
        steps
    }

    fn take(self, state: &mut State, number: Incarnation, step: Step, subject: Subject, fate: Fate) {
        let place = &mut state.processes[usize::from(number)];
        let Process::Alive(me) = std::mem::replace(place, Process::Unstarted) else {
            unreachable!("only a living process takes a step");
        };
        let mut turn = Turn { configuration: self.configuration, state, number, me, fate };
        let outcome = match (step, subject) {
            (Step::Claim, _) => turn.claim(),
            (Step::Adopt, _) => turn.adopt(),
            (Step::Seal, _) => turn.seal(),
            (Step::Recover, _) => turn.recover(),
            (Step::Send, Subject::Line(line)) => turn.send(line),
            (Step::Append, Subject::Line(line)) => turn.append(line),
            (Step::Upload, Subject::Kind(kind)) => turn.upload(kind),
            (Step::Checkpoint, _) => turn.checkpoint(),
            (Step::End, _) => turn.end_early(),
            (Step::Drain, _) => turn.drain(),
            (Step::RecordUndone, Subject::Line(line)) => turn.record_undone(line),
            (Step::Reconcile, _) => turn.reconcile(),
            (Step::Repair, _) => turn.repair(),
            (Step::Freeze, _) => turn.freeze(),
            (Step::ComposeFinal, Subject::Kind(kind)) => turn.compose_final(kind),
            (Step::WriteReceipt, _) => turn.write_receipt(),
            (Step::Clean, _) => turn.clean(),
            (step, subject) => unreachable!("the model has no step {step} of {subject:?}"),
        };
        turn.end(outcome);
    }
}

/// The living processes.
pub(crate) fn living(state: &State) -> impl Iterator<Item = (Incarnation, &Executor)> {
    (0..).zip(&state.processes).filter_map(|(number, process)| match process {
        Process::Alive(executor) => Some((number, executor)),
        Process::Unstarted | Process::Gone(_) => None,
    })
}

fn take(process: Incarnation, step: Step, subject: Subject, fate: Fate) -> Action {
    Action::Take { process, step, subject, fate }
}

fn stop(state: &mut State, process: Incarnation) {
    state.faults.stops -= 1;
    let Process::Alive(executor) = &mut state.processes[usize::from(process)] else {
        unreachable!("only a living process is told to stop");
    };
    executor.stage = Stage::Leaving;
    if executor.unsure.take().is_none() {
        return;
    }
    let landed = state.storage.state.as_mut().filter(|_| !executor.current).map(|(_, writer)| writer);
    let on_their_way = state.wire.iter_mut().filter_map(|write| match write {
        Write::State(_, writer) => Some(writer),
        Write::Part(_) | Write::Final(..) | Write::Receipt(_) => None,
    });
    for writer in on_their_way.chain(landed).filter(|writer| writer.incarnation == process) {
        writer.given_up = true;
    }
}

fn crash(state: &mut State, process: Incarnation, scratch_lost: bool) {
    let place = &mut state.processes[usize::from(process)];
    let Process::Alive(executor) = std::mem::replace(place, Process::Unstarted) else {
        unreachable!("only a living process crashes");
    };
    state.faults.crashes -= 1;
    state.witness.ended(&state.storage, &executor, scratch_lost);
    state.processes[usize::from(process)] = Process::Gone(executor.left_behind());
    if scratch_lost {
        state.faults.lost_scratch -= 1;
        for other in &mut state.processes {
            if let Process::Gone(left) = other {
                *left = Left::default();
            }
        }
    }
}
