//! Holds what is there against what the model says.

use penstock_model::{Protocol, State, process::Stage, storage::Incarnation};

use super::{Divergence, Replay, executor};
use crate::{
    process::{Process, Taken},
    refinement::of_model,
};

impl Replay<'_> {
    /// Whether what is stored, who lives, and who asks, is as the model says.
    pub(super) async fn compare(&mut self, model: &State) -> Taken {
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

    pub(super) fn divergence(
        &self,
        protocol: Protocol,
        place: usize,
        before: &State,
        problem: &str,
    ) -> Divergence {
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
