//! Takes each action of a trace with real runs, and compares what is stored with what the model says after each.

mod comparison;
mod writes;

use std::{collections::BTreeMap, fmt, time::Duration};

use penstock_executor::{Finished, Moment, RunError};
use penstock_job::{
    Epoch, Step,
    layout::{Kind, PartName},
};
use penstock_model::{
    Action, Fate, Protocol, State, Subject, Trace,
    lines::Lines,
    process::{self, Executor, Stage},
    storage::Incarnation,
};

use crate::{
    process::{Process, Taken},
    refinement::Refinement,
    timing,
    world::World,
};

/// Longer than what is in flight is awaited after the completion window.
const DRAIN: Duration = Duration::from_secs(61);

/// The code did what the trace does not say.
#[derive(Debug)]
pub(crate) struct Divergence(String);

impl fmt::Display for Divergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A replay that is under way.
struct Replay<'a> {
    trace: &'a Trace,
    world: World,
    processes: BTreeMap<Incarnation, Process>,
    refinement: Refinement,
    /// The code's names of the model's parts.
    names: BTreeMap<PartName, String>,
}

/// Replays a whole trace.
pub(crate) fn replay(protocol: Protocol, trace: &Trace) -> Result<(), Divergence> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::new(protocol.configuration.lines).await;
        let mut replay = Replay {
            trace,
            world,
            processes: BTreeMap::new(),
            refinement: Refinement::default(),
            names: BTreeMap::new(),
        };
        let mut before = protocol.start();
        for (place, moment) in trace.moments().iter().enumerate() {
            let taken = match replay.take(&moment.action, &before, &moment.state).await {
                Ok(()) => replay.compare(&moment.state).await,
                Err(problem) => Err(problem),
            };
            if let Err(problem) = taken {
                return Err(replay.divergence(protocol, place, &before, &problem));
            }
            before = moment.state.clone();
        }
        Ok(())
    })
}

impl Replay<'_> {
    /// Brings one action about.
    async fn take(&mut self, action: &Action, before: &State, after: &State) -> Taken {
        match action {
            Action::Take { process, step: Step::Look, .. } => self.look(*process, after),
            Action::Take { process, step, subject, fate } => {
                let number = *process;
                let me = executor(before, number).ok_or("the model takes a step of a dead process")?;
                let then = executor(after, number);
                self.step(number, *step, *subject, *fate, (before, me), (after, then))?;
                self.follow(number, me, then, after)
            }
            Action::Crash { process, scratch_lost } => {
                self.processes.remove(process);
                if *scratch_lost {
                    self.world.lose_scratch(&claimed(after));
                }
                Ok(())
            }
            Action::LandLate(write) => self.land(write).await,
            Action::AskToEnd => Ok(()),
            Action::Stop { .. } => Err("a stop is not replayed".to_owned()),
        }
    }

    fn look(&mut self, number: Incarnation, after: &State) -> Taken {
        let process = self.world.start(number, timing::window(self.trace, number));
        let looked = process.gate.wait(|seen| {
            let held = seen.holds(Step::Claim, Moment::Before, "state.json");
            (held || seen.ended().is_some()).then_some(held)
        });
        self.processes.insert(number, process);
        match (looked, executor(after, number).is_some()) {
            (Some(held), alive) if held == alive => Ok(()),
            _ => Err("it does not come to its claim, or not to an end".to_owned()),
        }
    }

    fn step(
        &mut self,
        number: Incarnation,
        step: Step,
        subject: Subject,
        fate: Fate,
        (before, me): (&State, &Executor),
        (after, then): (&State, Option<&Executor>),
    ) -> Taken {
        match (step, subject) {
            (Step::Claim | Step::Seal | Step::Checkpoint | Step::End | Step::Repair | Step::Freeze, _) => {
                self.write_state(number, step, fate, me)
            }
            (Step::Adopt | Step::Reconcile, _) => self.process(number).pass(step),
            (Step::Recover, _) => {
                let process = self.process(number);
                process.go(step, "", None)?;
                let stores = |executor: &Executor| {
                    Kind::ALL
                        .into_iter()
                        .filter(|kind| !executor.files.open[*kind].lines.is_empty())
                        .collect::<Vec<_>>()
                };
                let kinds = then.map(stores).unwrap_or_default();
                if kinds.is_empty() {
                    return process.done(step, 1);
                }
                kinds.into_iter().try_for_each(|kind| process.comes_to(Step::Upload, ending(kind)))
            }
            (Step::Send, Subject::Line(line)) => {
                let asked = self.process(number).provider.wait(Lines::one(line));
                asked.contains(line).then_some(()).ok_or_else(|| format!("line {line} is not sent"))
            }
            (Step::Append, Subject::Line(line)) => {
                let process = self.process(number);
                let appended = process.gate.look(|seen| seen.done(Step::Append));
                process.provider.answer(line);
                process.done(Step::Append, appended + 1)
            }
            (Step::RecordUndone, _) => {
                let process = self.process(number);
                let appended = process.gate.look(|seen| seen.done(Step::Append));
                process.pass(step)?;
                process.done(Step::Append, appended + 1)
            }
            (Step::Drain, _) => {
                let process = self.process(number);
                if process.gate.look(|seen| seen.done(step)) == 0 {
                    process.advance(DRAIN);
                }
                process.done(step, 1)
            }
            (Step::Upload, Subject::Kind(kind)) => self.upload(number, kind, fate, (before, me), then),
            (Step::ComposeFinal, Subject::Kind(kind)) => self.compose(number, kind, fate, before, after),
            (Step::WriteReceipt, _) => self.write_receipt(number, fate, before),
            (Step::Clean, _) => self.clean(number, before),
            (step, subject) => Err(format!("the replay has no step {step} of {subject:?}")),
        }
    }

    /// What a step leads to by itself: an end, requests, or the next step.
    fn follow(
        &mut self,
        number: Incarnation,
        me: &Executor,
        then: Option<&Executor>,
        after: &State,
    ) -> Taken {
        let process = self.process(number);
        let Some(then) = then else {
            let finished = after.storage.receipt.is_some() && me.stage == Stage::Published;
            let ended = process.gate.wait(|seen| {
                seen.ended().map(|ended| match ended {
                    Ok(Finished::Published { .. }) => finished,
                    Err(RunError::ClaimLost) => !finished,
                    Ok(Finished::Stopped) | Err(_) => false,
                })
            });
            return if ended == Some(true) { Ok(()) } else { Err("it does not end as it should".to_owned()) };
        };
        let settles = |stage| matches!(stage, Stage::Answering | Stage::Ending);
        if !settles(me.stage) && settles(then.stage) {
            process.answering = process.now;
            let all = Lines::first(self.trace_lines());
            let undone = all.without(then.held());
            let process = self.process(number);
            let next = match then.stage {
                _ if undone.is_empty() => Step::Reconcile,
                Stage::Ending => Step::RecordUndone,
                _ => {
                    let asked = process.provider.wait(undone);
                    return if asked == undone { Ok(()) } else { Err(format!("it sends {asked:?}")) };
                }
            };
            process.comes_to(next, "")?;
        }
        Ok(())
    }

    fn trace_lines(&self) -> u8 {
        self.trace.protocol().configuration.lines
    }

    fn process(&mut self, number: Incarnation) -> &mut Process {
        self.processes.get_mut(&number).expect("the model takes no step of a process that was not started")
    }
}

fn executor(state: &State, number: Incarnation) -> Option<&Executor> {
    match state.processes.get(usize::from(number)) {
        Some(process::Process::Alive(executor)) => Some(executor),
        _ => None,
    }
}

/// The epochs of living processes.
fn claimed(state: &State) -> Vec<Epoch> {
    let numbers = (0..).take(state.processes.len());
    let claimed = |number| executor(state, number).filter(|executor| executor.stage != Stage::Looked);
    numbers.filter_map(claimed).map(|executor| executor.book.epoch).collect()
}

fn ending(kind: Kind) -> &'static str {
    match kind {
        Kind::Results => "-r.jsonl",
        Kind::Errors => "-e.jsonl",
    }
}
