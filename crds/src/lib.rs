//! The kinds of Penstock in the Kubernetes API, and what their words mean. Pure: no client, no clock, no runtime.
//!
//! A tour, in the order in which a job meets it:
//!
//! | module | owns |
//! |---|---|
//! | [`batch_job`] | `BatchJob`: what a user asks for, and its status |
//! | [`provider`] | `Provider`: who answers, with which credentials and within which bounds |
//! | [`bounds`] | bounds of rate and retries, which both kinds have |
//! | [`quantity`] | amounts of a resource, as Kubernetes writes them |
//! | [`decimal`] | amounts of money, without floating point |
//! | [`state`] | the states of a job, and which one may follow which |
//! | [`names`] | the names of what the operator makes for a job, and how long they may be |
//! | [`definitions`] | the custom resource definitions that a cluster is given: `crds/yaml/` |

pub mod batch_job;
pub mod bounds;
pub mod decimal;
pub mod definitions;
pub mod names;
pub mod provider;
pub mod quantity;
mod rules;
mod schema;
pub mod state;

pub use batch_job::{BatchJob, BatchJobSpec, BatchJobStatus};
pub use provider::{Provider, ProviderSpec};
pub use state::State;

/// The API group of every kind.
pub const GROUP: &str = "penstock.dev";

/// The version of every kind.
pub const VERSION: &str = "v1alpha1";
