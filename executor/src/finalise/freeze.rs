//! Freeze (F3 of the job protocol): the compare-and-swap that decides a job's outcome. It is never taken back.

use penstock_job::{
    Step, finals,
    state::{Finalization, Phase},
};

use super::Account;
use crate::{board::Board, claim::Claimed, clock::now_ms, error::RunError, state_object::OnRefusal};

/// Writes what reconciliation found as decided. A lost claim ends here, with nothing changed.
pub(crate) async fn freeze(claimed: &mut Claimed, account: Account, board: &Board) -> Result<(), RunError> {
    let state = &mut claimed.state;
    let ending = state.ending.as_ref().map(|ending| ending.reason);
    let decision = finals::decision(&state.job.identity, ending, &account.outcomes, &account.finals);
    state.phase = Phase::Finalizing;
    state.finalization = Some(Finalization {
        finals: account.finals,
        outcomes: account.outcomes,
        identity_found: account.identity_found,
        decision,
        frozen_by_epoch: state.epoch,
        frozen_at_ms: now_ms(),
    });
    claimed.object.write(Step::Freeze, state, board, OnRefusal::Wait).await
}
