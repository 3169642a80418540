//! The executor: one job, from claim to receipt. It knows nothing of Kubernetes.
//!
//! A tour, in the order in which a job goes through:
//!
//! | module | steps of the job protocol (`docs/protocol.md`) |
//! |---|---|
//! | [`run()`] | the order of everything below; recover (R3), and what ends the job at once (C9) |
//! | [`launch()`] | from the binary's job file to a [`Job`] |
//! | `claim` | claim, adopt, seal (C1-C8) |
//! | `scratch` | the folder with answers that are not durable yet |
//! | `ingest` | windows of the input, copied to local disk and planned |
//! | `dispatch` | which line goes when, and what becomes of each attempt (R1, R2) |
//! | [`provider`] | how a provider is spoken to and what its answers mean |
//! | [`shared_state`] | what jobs on one provider key leave for one another, beside any job |
//! | `meter` | what the answers have taken, and whether the job's budget allows one more |
//! | `results` | from outcomes to durable parts (R3) |
//! | `ledger`, `checkpoint` | manifest and completed set, and `state.json` (R4-R6) |
//! | `answer` | the loops side by side, stopping (R7), and what ends them early (E1-E3) |
//! | `report`, `orders` | what the operator is told of a run, and what it wants (`docs/operator-protocol.md`) |
//! | `last_word` | how the process ended, for the pod's termination message |
//! | `end_early` | records for undone lines (E4) |
//! | `finalise` | reconcile, freeze, compose, receipt, clean (F1-F6) |
//!
//! Four loops run side by side while lines are answered, joined by bounded channels: *ingest* hands windows to
//! *dispatch*, whose attempts hand outcomes to *collect*, whose uploads enter the ledger, which the *checkpoint* loop
//! writes. A slow output therefore slows dispatch down, and nothing grows.

mod answer;
mod board;
pub mod budget;
mod checkpoint;
mod claim;
mod client;
mod clock;
mod dispatch;
mod end_early;
mod error;
mod finalise;
mod halt;
mod ingest;
#[cfg(feature = "fault-injection")]
pub mod injection;
mod input;
mod job;
mod last_word;
mod launch;
mod ledger;
mod memory;
mod meter;
mod open_files;
mod orders;
mod output;
mod participate;
pub mod provider;
mod records;
mod report;
mod results;
mod run;
mod scratch;
pub mod shared_state;
mod state_object;
mod steps;
mod watch_load;

pub use board::{Board, Progress, RateGauges, Stage};
pub use dispatch::{Decision, Learned, learned};
pub use error::RunError;
pub use halt::Stop;
pub use job::{EndingRequest, Job, requests_in_flight};
pub use last_word::{End, Speaker, last_word};
pub use launch::{LaunchError, SharingPlace, launch};
pub use meter::Spent;
pub use open_files::raise_open_files;
pub use participate::Participation;
pub use records::longest_record;
pub use report::{Reporting, ReportingError};
pub use run::{Finished, run};
pub use scratch::{scratch_folder, state_folder};
pub use steps::{At, Moment, Probe, Steps, watched};
