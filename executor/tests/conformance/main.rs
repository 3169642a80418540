//! Replays sequences of the model of the job protocol (`docs/model.md`) with real runs over a store in memory, and compares
//! after each action what is stored with what the model says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod gate;
mod process;
mod provider;
mod refinement;
mod replay;
mod timing;
mod traces;
mod world;
