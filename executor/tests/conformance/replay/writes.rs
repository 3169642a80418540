//! The steps that write: each with the fate that the trace gives its write, also when that is only found out later.

use std::time::Duration;

use penstock_executor::Moment;
use penstock_job::{
    Step,
    layout::{Kind, PartName},
};
use penstock_model::{
    Fate, State,
    process::{Executor, Stage},
    storage::{Incarnation, Write},
};
use penstock_storage::faults::Fault;

use super::{Replay, ending};
use crate::{process::Taken, timing, world::CHECKPOINT};

/// An outcome waits so long for others before its part is closed.
const FLUSH: Duration = Duration::from_secs(2);

impl Replay<'_> {
    /// S2. A process that is not sure looks first, and writes again only if nothing has changed.
    pub(super) fn write_state(
        &mut self,
        number: Incarnation,
        step: Step,
        fate: Fate,
        me: &Executor,
    ) -> Taken {
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

    pub(super) fn upload(
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
    pub(super) fn compose(
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

    pub(super) fn write_receipt(&mut self, number: Incarnation, fate: Fate, before: &State) -> Taken {
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
    pub(super) fn clean(&mut self, number: Incarnation, before: &State) -> Taken {
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

    pub(super) async fn land(&mut self, write: &Write) -> Taken {
        let (process, object) = match write {
            Write::State(_, writer) => (Some(writer.incarnation), "state.json".to_owned()),
            Write::Part(part) => (None, self.names[&part.name].clone()),
            Write::Final(kind, _) => (None, kind.final_name(0, 1)),
            Write::Receipt(_) => (None, "receipt.json".to_owned()),
        };
        let landed = self.world.land(process, &object).await;
        landed.then_some(()).ok_or_else(|| format!("no write of {object} can land"))
    }
}

fn fault(fate: Fate) -> Option<Fault> {
    match fate {
        Fate::Told => None,
        Fate::Unheard => Some(Fault::After),
        Fate::Late => Some(Fault::Kept),
    }
}
