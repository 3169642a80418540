//! The rules that pace requests, against providers in virtual time.
//!
//! A [`Scenario`] is a readable file: a provider, the jobs that ask it, and the ranges in which the figures of each
//! [`Rule`] must lie. [`Scenario::judge`] runs one of its [`cases`](Scenario::cases), and says which ranges hold.
//!
//! Owns the scenarios, the rules for comparison and the ranges. The clock and the provider are the simulator's, the
//! learner is that of `penstock-rate`, driven by the code of its pipe.

mod catalogue;
mod figure;
mod generated;
mod learner;
mod oracle;
mod plot;
mod rule;
mod scenario;
mod script;
mod table;

pub use catalogue::{NAMES, named};
pub use figure::{Bounds, Figure};
pub use generated::{Survey, generated};
pub use plot::plot;
pub use rule::{Rule, UnknownRule};
pub use scenario::{Case, Held, Judged, Knowledge, KnownProfile, Scenario, ScenarioError};
pub use table::{enforcement_name, table};
