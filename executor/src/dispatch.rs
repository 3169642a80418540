//! Which line goes when, and what becomes of each attempt.
//!
//! [`Schedule`](schedule::Schedule) decides (pure); [`dispatch`] acts: it takes windows, asks the schedule and the pacing
//! for the next line, sends it in a task of its own and hears what became of it.

mod allowance;
mod attempt;
mod pacing;
mod retries;
mod run;
mod schedule;
mod task;

pub use pacing::{Decision, Learned, learned};
pub(crate) use pacing::{Pacing, learner_memory};
pub(crate) use run::{Dispatch, Mode, dispatch};
