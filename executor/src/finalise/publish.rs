//! Publish (F4-F6 of the job protocol): carry out what was frozen, whoever froze it.

use penstock_job::{Receipt, State, finals};

use super::{
    clean::clean,
    compose::{Composed, compose},
    receipt,
};
use crate::{board::Board, claim::Claimed, clock::now_ms, error::RunError, output::Output};

/// Composes every published file, writes the receipt, reads it back and cleans.
pub(crate) async fn publish(
    output: &Output,
    claimed: &Claimed,
    keep_parts: bool,
    board: &Board,
) -> Result<Receipt, RunError> {
    let Claimed { state, validation, .. } = claimed;
    let frozen = state
        .finalization
        .as_ref()
        .ok_or_else(|| RunError::Defect("state.json is finalizing but says not what".to_owned()))?;
    let sources = finals::sources_of(&frozen.finals, &validation.rejected_files, &state.parts);
    let mut generations = Vec::with_capacity(frozen.finals.len());
    for (one, sources) in frozen.finals.iter().zip(&sources) {
        match compose(output, one, sources, board).await? {
            Composed::Done(generation) => generations.push(generation.as_str().to_owned()),
            Composed::SourceGone(name) => {
                return elsewhere(output, state, &frozen.decision, name, keep_parts).await;
            }
        }
    }
    let receipt = Receipt::of(state, validation, generations, now_ms())
        .ok_or_else(|| RunError::Defect("the frozen state has no outcome".to_owned()))?;
    let published = receipt::write(output, &receipt, board).await?;
    clean(output, &state.parts, keep_parts).await;
    Ok(published)
}

/// A source is gone: fine if another finaliser has published the same decision meanwhile.
async fn elsewhere(
    output: &Output,
    state: &State,
    decision: &str,
    name: String,
    keep_parts: bool,
) -> Result<Receipt, RunError> {
    match output.document::<Receipt>().await? {
        Some((receipt, _)) if receipt.decision == decision => {
            clean(output, &state.parts, keep_parts).await;
            Ok(receipt)
        }
        _ => Err(RunError::Damaged { name, problem: "it is needed to publish and is gone".to_owned() }),
    }
}
