//! Seal (C7-C8 of the job protocol): from here on no earlier epoch can add a part. Only after this may a request be sent.

use penstock_batchfile::Position;
use penstock_job::Step;

use super::{Claimed, adopt::Adopted};
use crate::{board::Board, error::RunError, state_object::OnRefusal};

/// Lists what was adopted and seals the earlier epochs in one write; writes nothing when there is nothing to say.
pub(super) async fn seal(claimed: &mut Claimed, adopted: Adopted, board: &Board) -> Result<(), RunError> {
    let state = &mut claimed.state;
    let sealed = state.epoch.previous();
    if state.sealed == sealed && adopted.parts.is_empty() && adopted.discarded_parts == 0 {
        correct_cursor(claimed);
        return Ok(());
    }
    if !adopted.parts.is_empty() {
        tracing::info!(parts = adopted.parts.len(), lines = adopted.ordinals.len(), "adopted");
    }
    state.parts.extend(adopted.parts);
    state.parts.sort_unstable_by_key(|part| part.name);
    state.completed.unite(&adopted.ordinals);
    state.outcomes.add(adopted.outcomes);
    state.usage.models.add(&adopted.tokens);
    state.discarded.parts += adopted.discarded_parts;
    state.discarded.lines += adopted.discarded_lines;
    state.sealed = sealed;
    claimed.object.write(Step::Seal, state, board, OnRefusal::Fail).await?;
    correct_cursor(claimed);
    Ok(())
}

/// C8: a valid line below the cursor that is not completed sends the cursor back to the start.
fn correct_cursor(claimed: &mut Claimed) {
    let state = &mut claimed.state;
    let start = Position::START.ordinal;
    let below = state.cursor.ordinal;
    let done = state.completed.count_within(start, below) + claimed.rejected.count_within(start, below);
    if done < u64::from(below.get()) {
        tracing::warn!(cursor = %below, "an undone line stands before the cursor; reading from the start");
        state.cursor = Position::START;
    }
}
