//! The operator: BatchJobs become pods, and what their pods and the bucket say becomes a status.
//!
//! A tour, in the order in which a job meets it:
//!
//! | module | owns |
//! |---|---|
//! | [`serve`] | the life of the process: definitions, lease, work, and the way back |
//! | [`controller`] | which watches lead to which passes |
//! | [`reconcile`] | one pass: observe, decide, act, report |
//! | [`caches`], [`observe`], [`workload`] | what is seen |
//! | [`mod@decide`] | what is to be done and said: a pure function of what is seen |
//! | [`act`], [`manifests`] | the one place that changes the cluster, and what it makes |
//! | [`mod@status`] | what is said in the status |
//! | [`mod@intake`], [`intakes`] | what an output holds already, else the validation of the input |
//! | [`progress`] | reports of executors, and what they are told |
//! | [`health`], [`metrics`] | what the kubelet and Prometheus ask |
//! | [`leadership`], [`call`], [`settings`], [`arguments`] | the process and its surroundings |

pub mod act;
#[cfg(test)]
mod api_double;
pub mod arguments;
pub mod caches;
pub mod call;
pub mod controller;
pub mod decide;
pub mod health;
pub mod intake;
pub mod intakes;
pub mod leadership;
pub mod manifests;
pub mod metrics;
pub mod observe;
pub mod progress;
pub mod reconcile;
pub mod serve;
pub mod settings;
pub mod status;
pub mod workload;
