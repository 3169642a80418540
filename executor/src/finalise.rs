//! Finalise: reconcile, freeze, compose, receipt, clean (F1-F6 of the job protocol).
//!
//! Reconciliation reads everything once more and decides nothing; the freeze is the one write that decides; what follows
//! it only carries out what was decided, create-only, so that anybody may finish it. While lines are still answered,
//! reading ahead takes from reconciliation and composing what can be done before.

mod clean;
mod compose;
mod freeze;
mod publish;
mod read_ahead;
mod receipt;
mod reconcile;
mod repeated;
mod tally;

pub(crate) use freeze::freeze;
pub(crate) use publish::publish;
pub(crate) use read_ahead::ReadAhead;
pub(crate) use reconcile::{Account, Reconciled, reconcile};
