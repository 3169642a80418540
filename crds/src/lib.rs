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
//! | [`state`] | the states of a job, and which one may follow which |
//! | [`mod@resolve`] | from both kinds to the job file of an executor |
//! | [`reason`] | the one reason why a job is not further, from what was seen |
//! | [`conditions`] | the conditions of a status, also for tools that know kstatus |
//! | [`openai`] | the states as OpenAI words them |
//! | [`progress`] | how far a job is, in the few characters of a column |
//! | [`names`] | the names of what the operator makes for a job, and how long they may be |
//! | [`definitions`] | the custom resource definitions that a cluster is given: `crds/yaml/` |

pub mod batch_job;
pub mod bounds;
pub mod conditions;
pub mod definitions;
pub mod names;
pub mod openai;
pub mod progress;
pub mod provider;
pub mod quantity;
pub mod reason;
pub mod resolve;
mod rules;
mod schema;
pub mod state;

pub use batch_job::{BatchJob, BatchJobSpec, BatchJobStatus};
pub use provider::{Provider, ProviderSpec};
pub use resolve::{FileSource, MountedFile, ResolveError, Resolved, resolve};
pub use state::State;

/// The API group of every kind.
pub const GROUP: &str = "penstock.dev";

/// The version of every kind.
pub const VERSION: &str = "v1alpha1";
