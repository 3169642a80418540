//! The Jobs of a BatchJob. Each is made once and its spec never applied again: others may suspend it, move it to other
//! nodes or queue it, and are not fought over.

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use kube::ResourceExt;
use penstock_crds::BatchJob;
use penstock_job::ExitCode;

use super::{metadata, pod};
use crate::{
    decide::{QUEUE_LABEL, Work},
    settings::Settings,
    workload::{Before, CONTAINER},
};

/// Pods that a Job tries; ignored ones do not count.
const BACKOFF_LIMIT: i32 = 20;
/// After these exit codes no other pod would do better.
const FINAL: [ExitCode; 4] =
    [ExitCode::Configuration, ExitCode::OutputOccupied, ExitCode::StorageDamaged, ExitCode::Defect];

/// The Job for some work of a BatchJob, whose pods mount what `files` names.
pub fn job(batch_job: &BatchJob, work: Work, before: Before, files: &pod::Files, settings: &Settings) -> Job {
    let mut metadata = metadata(batch_job, work.child());
    metadata.annotations.get_or_insert_default().extend(before.annotations());
    // Only the executor waits in a queue: what validates or publishes is small, and the latter must not wait.
    if work == Work::Execute
        && let Some(queue) = batch_job.labels().get(QUEUE_LABEL)
    {
        metadata.labels.get_or_insert_default().insert(QUEUE_LABEL.to_owned(), queue.clone());
    }
    Job {
        metadata,
        spec: Some(JobSpec {
            backoff_limit: Some(BACKOFF_LIMIT),
            completions: Some(1),
            parallelism: Some(1),
            pod_failure_policy: Some(pod_failure_policy()),
            // Two executors of one job are safe, but the first one's answers would be paid for twice.
            pod_replacement_policy: Some("Failed".to_owned()),
            template: pod::template(batch_job, work, files, settings),
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// The first rule that fits decides.
fn pod_failure_policy() -> PodFailurePolicy {
    let exit_codes = |codes: &[ExitCode]| {
        let mut values: Vec<i32> = codes.iter().map(|code| i32::from(code.code())).collect();
        values.sort_unstable();
        Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(CONTAINER.to_owned()),
            operator: "In".to_owned(),
            values,
        })
    };
    let rule =
        |action: &str| PodFailurePolicyRule { action: action.to_owned(), ..PodFailurePolicyRule::default() };
    PodFailurePolicy {
        rules: vec![
            PodFailurePolicyRule { on_exit_codes: exit_codes(&FINAL), ..rule("FailJob") },
            PodFailurePolicyRule {
                on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                    type_: "DisruptionTarget".to_owned(),
                    status: "True".to_owned(),
                }]),
                ..rule("Ignore")
            },
            PodFailurePolicyRule { on_exit_codes: exit_codes(&[ExitCode::Stopped]), ..rule("Ignore") },
        ],
    }
}
