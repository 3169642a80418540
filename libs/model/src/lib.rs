//! The job protocol (`docs/protocol.md`) as a model that is checked exhaustively: every order of steps, every crash,
//! every ambiguous write and every zombie, in a small world. `docs/model.md` says what is modelled and why that is enough.
//!
//! | module | owns |
//! |---|---|
//! | [`configuration`] | how large the world is, which faults happen in it, which rule is left out |
//! | [`action`] | what can happen: a step of a process, named as in the code, or a fault |
//! | [`state`], [`storage`], [`scratch`], [`process`], [`witness`] | the state: what is stored, what is in files, what a process knows, what only a witness sees |
//! | `turn`, `claim`, `run`, `finalise` | what each step does |
//! | [`protocol`] | the transition system, as stateright's `Model` |
//! | [`properties`] | what must hold in every state |
//! | [`liveness`] | that a receipt stays reachable |
//! | [`trace`] | sequences of actions for tests of the real code |

pub mod action;
pub mod by_kind;
mod claim;
pub mod configuration;
mod finalise;
pub mod lines;
pub mod liveness;
pub mod process;
pub mod properties;
pub mod protocol;
mod run;
pub mod scratch;
mod search;
pub mod state;
pub mod storage;
pub mod trace;
mod turn;
pub mod witness;

pub use action::{Action, Fate, Subject};
pub use configuration::{Configuration, Faults, Omission};
pub use protocol::Protocol;
pub use state::State;
pub use trace::Trace;
