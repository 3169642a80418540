//! Takes each action of a trace with real runs, and compares what is stored with what the model says after each.

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
    storage::{Incarnation, Write},
};
use penstock_storage::faults::Fault;

use crate::{
    process::{Process, Taken},
    refinement::{Refinement, of_model},
    timing,
    world::{CHECKPOINT, World},
};

/// An outcome waits so long for others before its part is closed.
const FLUSH: Duration = Duration::from_secs(2);
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

    /// S2. A process that is not sure looks first, and writes again only if nothing has changed.
    fn write_state(&mut self, number: Incarnation, step: Step, fate: Fate, me: &Executor) -> Taken {
        const STATE: &str = "state.json";
        let process = self.process(number);
        if me.unsure.is_some() {
            if !me.current {
                process.look_back(step, STATE)?;
                process.checkpointed = process.now;
                return Ok(());
            }
            process.look_again(step, STATE)?;
        } else {
            process.begin(step, STATE);
            match step {
                Step::Checkpoint => process.advance_to(process.checkpointed + CHECKPOINT),
                Step::End => {
                    let window = timing::window(self.trace, number).unwrap_or_default();
                    let process = self.process(number);
                    process.advance_to(process.answering + window);
                }
                _ => {}
            }
        }
        let process = self.process(number);
        process.go(step, STATE, fault(fate))?;
        if !me.current {
            return Ok(());
        }
        process.written(step, STATE, fate)?;
        if matches!(step, Step::Claim | Step::Seal | Step::Checkpoint) && fate == Fate::Told {
            process.checkpointed = process.now;
        }
        Ok(())
    }

    fn upload(
        &mut self,
        number: Incarnation,
        kind: Kind,
        fate: Fate,
        (before, me): (&State, &Executor),
        then: Option<&Executor>,
    ) -> Taken {
        let part = me.files.closed[kind].map_or_else(
            || PartName { epoch: me.book.epoch, sequence: me.sequence + 1, kind },
            |closed| closed.part.name,
        );
        let listed = self.process(number).gate.look(|seen| seen.done(Step::List));
        if me.files.closed[kind].is_some() {
            let name = self.names.get(&part).cloned().ok_or("the model uploads an unknown part again")?;
            let process = self.process(number);
            if before.storage.part(part).is_some() {
                process.gate.release(Step::Upload, Moment::After, &name, None);
                return if then.is_some() { process.done(Step::List, listed + 1) } else { Ok(()) };
            }
            process.look_again(Step::Upload, &name)?;
        } else {
            let process = self.process(number);
            if matches!(me.stage, Stage::Answering | Stage::Ending)
                && process.gate.look(|seen| seen.object(Step::Upload, ending(kind))).is_none()
            {
                process.advance(FLUSH);
            }
        }
        let process = self.process(number);
        process.comes_to(Step::Upload, ending(kind))?;
        let object = process.gate.look(|seen| seen.object(Step::Upload, ending(kind))).unwrap_or_default();
        process.go(Step::Upload, &object, fault(fate))?;
        if then.is_some() {
            process.written(Step::Upload, &object, fate)?;
            if fate == Fate::Told {
                process.done(Step::List, listed + 1)?;
            }
        }
        self.names.insert(part, object);
        Ok(())
    }

    /// F4. The code looks before it announces the write, so it may have found the file of another finaliser.
    fn compose(
        &mut self,
        number: Incarnation,
        kind: Kind,
        fate: Fate,
        before: &State,
        after: &State,
    ) -> Taken {
        let name = kind.final_name(0, 1);
        let there = before.storage.finals[kind].is_some();
        let process = self.process(number);
        if process.gate.look(|seen| seen.holds(Step::ComposeFinal, Moment::After, &name)) {
            if there || after.storage.finals[kind].is_none() {
                process.gate.release(Step::ComposeFinal, Moment::After, &name, None);
                return Ok(());
            }
            process.look_again(Step::ComposeFinal, &name)?;
        } else {
            let further = process.gate.wait(|seen| {
                let here = seen.holds(Step::ComposeFinal, Moment::Before, &name);
                let behind = seen.object(Step::ComposeFinal, "").or(seen.object(Step::WriteReceipt, ""));
                if here { Some(false) } else { behind.map(|_| true) }
            });
            if there && further == Some(true) {
                return Ok(());
            }
        }
        process.go(Step::ComposeFinal, &name, fault(fate))?;
        process.written(Step::ComposeFinal, &name, fate)
    }

    fn write_receipt(&mut self, number: Incarnation, fate: Fate, before: &State) -> Taken {
        const RECEIPT: &str = "receipt.json";
        let process = self.process(number);
        if process.gate.look(|seen| seen.holds(Step::WriteReceipt, Moment::After, RECEIPT)) {
            if before.storage.receipt.is_some() {
                process.gate.release(Step::WriteReceipt, Moment::After, RECEIPT, None);
                return process.done(Step::ReadReceipt, 1);
            }
            process.look_again(Step::WriteReceipt, RECEIPT)?;
        }
        process.go(Step::WriteReceipt, RECEIPT, fault(fate))?;
        process.written(Step::WriteReceipt, RECEIPT, fate)?;
        if fate == Fate::Told { process.done(Step::ReadReceipt, 1) } else { Ok(()) }
    }

    /// F6. What has landed after the process has listed is left behind by it, and so are parts that another has deleted.
    fn clean(&mut self, number: Incarnation, before: &State) -> Taken {
        let first = before.storage.parts.first().map(|part| self.names[&part.name].clone());
        let process = self.process(number);
        process
            .gate
            .wait(|seen| (seen.object(Step::Clean, "").is_some() || seen.ended().is_some()).then_some(()))
            .ok_or("it does not clean")?;
        match first {
            Some(name) => {
                if process.gate.look(|seen| seen.holds(Step::Clean, Moment::Before, &name)) {
                    let cleaned = process.gate.look(|seen| seen.done(Step::Clean));
                    process.go(Step::Clean, &name, None)?;
                    process.done(Step::Clean, cleaned + 1)?;
                }
            }
            None => {
                while let Some(name) = process.gate.look(|seen| seen.object(Step::Clean, "")) {
                    process.go(Step::Clean, &name, None)?;
                }
            }
        }
        Ok(())
    }

    async fn land(&mut self, write: &Write) -> Taken {
        let (process, object) = match write {
            Write::State(_, writer) => (Some(writer.incarnation), "state.json".to_owned()),
            Write::Part(part) => (None, self.names[&part.name].clone()),
            Write::Final(kind, _) => (None, kind.final_name(0, 1)),
            Write::Receipt(_) => (None, "receipt.json".to_owned()),
        };
        let landed = self.world.land(process, &object).await;
        landed.then_some(()).ok_or_else(|| format!("no write of {object} can land"))
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

    /// Whether what is stored, who lives, and who asks, is as the model says.
    async fn compare(&mut self, model: &State) -> Taken {
        for (number, process) in &self.processes {
            let Some(me) = executor(model, *number) else { continue };
            if me.stage != Stage::Published && process.gate.look(|seen| seen.ended().is_some()) {
                return Err(format!("process {number} has ended"));
            }
            let sends = !matches!(
                me.stage,
                Stage::Looked | Stage::Claimed | Stage::Adopted | Stage::Sealed | Stage::Recovered
            );
            if !sends && !process.provider.asked().is_empty() {
                return Err(format!("process {number} sends before it may"));
            }
        }
        let mut found = self.refinement.of_store(&self.world.store, &model.storage).await?;
        let mut expected = of_model(&model.storage);
        if expected.receipt.is_some() {
            // What lands while somebody cleans is garbage, and stays in the code where the model may look again.
            (found.parts, expected.parts) = Default::default();
        }
        if found == expected {
            Ok(())
        } else {
            Err(format!("the store holds\n  {found:?}\nand the model\n  {expected:?}"))
        }
    }

    fn trace_lines(&self) -> u8 {
        self.trace.protocol().configuration.lines
    }

    fn process(&mut self, number: Incarnation) -> &mut Process {
        self.processes.get_mut(&number).expect("the model takes no step of a process that was not started")
    }

    fn divergence(&self, protocol: Protocol, place: usize, before: &State, problem: &str) -> Divergence {
        let so_far = self.trace.moments()[..=place].iter().map(|moment| format!("  {}", moment.action));
        let allowed: Vec<_> = protocol.possible(before).iter().map(ToString::to_string).collect();
        let told = |(number, process): (&Incarnation, &Process)| {
            format!("{number} {}", process.gate.look(crate::gate::Seen::told))
        };
        let mut text = vec![format!("{}: the code diverges", protocol.configuration)];
        text.extend(so_far);
        text.push(format!("at the last of these: {problem}"));
        text.push(format!("the model allows: {}", allowed.join("; ")));
        text.extend(self.processes.iter().map(told));
        Divergence(text.join("\n"))
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

fn fault(fate: Fate) -> Option<Fault> {
    match fate {
        Fate::Told => None,
        Fate::Unheard => Some(Fault::After),
        Fate::Late => Some(Fault::Kept),
    }
}

fn ending(kind: Kind) -> &'static str {
    match kind {
        Kind::Results => "-r.jsonl",
        Kind::Errors => "-e.jsonl",
    }
}
