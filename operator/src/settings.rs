//! What the operator is set up with: what decisions and manifests need of its command line.

use std::collections::BTreeMap;

/// How pods of jobs are made and reached.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The image of every pod.
    pub image: String,
    /// How the image is pulled; by default as Kubernetes does.
    pub image_pull_policy: Option<String>,
    /// Variables of the environment of every pod, such as the address of a private storage endpoint.
    pub environment: BTreeMap<String, String>,
    /// What a pod asks for where its job does not say.
    pub requests: BTreeMap<String, String>,
    /// The most that a pod may use where its job does not say.
    pub limits: BTreeMap<String, String>,
    /// How much local disk a pod may use for windows and for answers that are not durable yet.
    pub scratch_size: String,
    /// The priority class of pods of jobs.
    pub priority_class: Option<String>,
    /// Seconds that a pod has to leave when it is told to.
    pub grace_period_seconds: i64,
    /// Where jobs on one key tell each other what they learn of its rate; `None`: each learns alone.
    pub shared_state: Option<String>,
    /// Where executors report, such as `https://penstock-progress.penstock.svc:8443`.
    pub progress_url: String,
}
