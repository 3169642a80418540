//! The contract that the executor, the operator and `penstock verify` share about one job. Pure: no I/O, no clock, no runtime.
//!
//! A tour, in the order in which a job meets it:
//!
//! | module | owns |
//! |---|---|
//! | [`spec`] | what a user asks for (the job file), and its canonical form: what determines the answers |
//! | [`identity`] | the hash of the canonical form, and the first field in which two forms differ |
//! | [`layout`] | the names of the objects below a job's output |
//! | [`incarnation`] | who runs a job: epoch and incarnation |
//! | [`checksum`] | the CRC32C of an object |
//! | [`ordinals`] | a set of lines, and its base64 form |
//! | [`identity_sum`] | the order-free sum that ties published ids to the input's |
//! | [`validation`] | `validation.json`: what validation found |
//! | [`state`] | `state.json`: the checkpoint |
//! | [`finals`] | which published files a manifest becomes, and the decision that fixes them |
//! | [`receipt`] | `receipt.json`: the proof of conservation |
//! | [`money`] | amounts of money, without floating point |
//! | [`usage`] | the tokens that a job has used up, and what they cost |
//! | [`document`] | how these documents are read: nothing unknown is accepted, and the field is named |
//! | [`report`] | what an executor tells the operator of its run |
//! | [`directives`] | what the operator answers |
//! | [`last_word`] | how an executor's process ended |
//! | [`clipped`] | text of a bounded size |
//! | [`step`] | the steps at which a job may be interrupted |
//! | [`exit`] | exit codes |
//! | [`reason`] | the one word that says why a job is not further |

pub mod checksum;
pub mod clipped;
pub mod directives;
pub mod document;
pub mod exit;
pub mod finals;
pub mod identity;
pub mod identity_sum;
pub mod incarnation;
pub mod last_word;
pub mod layout;
pub mod money;
pub mod ordinals;
pub mod reason;
pub mod receipt;
pub mod report;
pub mod schema;
pub mod spec;
pub mod state;
pub mod step;
pub mod usage;
pub mod validation;

pub use directives::Directives;
pub use document::DocumentError;
pub use exit::ExitCode;
pub use identity::Identity;
pub use incarnation::{Epoch, Incarnation};
pub use last_word::LastWord;
pub use ordinals::OrdinalSet;
pub use reason::Reason;
pub use receipt::Receipt;
pub use report::Report;
pub use spec::{CanonicalSpec, JobSpec};
pub use state::State;
pub use step::Step;
pub use validation::Validation;
