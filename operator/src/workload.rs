//! What a Kubernetes Job and its pods tell, in the words in which decisions are made. Pure.
//!
//! Which pods count, what an exit code means for the Job, and what the scheduler or the kubelet says of a pod that does
//! not start, is known here and nowhere else.

use std::cmp::Reverse;

use k8s_openapi::api::{
    batch::v1::{Job, JobCondition},
    core::v1::{ContainerState, Pod},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

/// The container of every pod that the operator makes.
pub const CONTAINER: &str = "penstock";

/// A Job of a BatchJob as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The Job's own uid, by which it is deleted and nothing else.
    pub uid: String,
    /// When it was made.
    pub made_at: Option<Time>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// Who has suspended it, if it is suspended.
    pub suspended_by: Option<Suspender>,
    /// Pods that ended without ending the Job.
    pub lost: u32,
    /// What was so when it was made.
    pub before: Before,
    /// The pods that are not over, the newest first.
    pub pods: Vec<LivePod>,
    /// How far it is.
    pub stage: Stage,
}

/// Who has suspended a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspender {
    /// The operator, which says so in an annotation of the Job.
    Operator,
    /// A queue, or a person: whoever it is resumes it.
    Other,
}

impl Suspender {
    /// The annotation of a Job that the operator has suspended.
    pub const ANNOTATION: &str = "penstock.dev/suspended";

    fn of(job: &Job) -> Option<Self> {
        let by = if job.annotations().contains_key(Self::ANNOTATION) { Self::Operator } else { Self::Other };
        job.spec.as_ref()?.suspend?.then_some(by)
    }
}

/// What was so of a job when one of its Jobs was made, kept in annotations of that Job: whether it comes further, and
/// whether its pods are lost one after the other, is told over several Jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// Pods lost before it, since the job had last come further.
    pub lost: u32,
    /// Lines that had an outcome.
    pub done: u64,
}

impl Before {
    const LOST: &str = "penstock.dev/lost-before";
    const DONE: &str = "penstock.dev/done-before";

    /// As annotations.
    pub fn annotations(self) -> [(String, String); 2] {
        [(Self::LOST.to_owned(), self.lost.to_string()), (Self::DONE.to_owned(), self.done.to_string())]
    }

    fn of(job: &Job) -> Self {
        let read = |name| job.annotations().get(name);
        Self {
            lost: read(Self::LOST).and_then(|lost| lost.parse().ok()).unwrap_or_default(),
            done: read(Self::DONE).and_then(|done| done.parse().ok()).unwrap_or_default(),
        }
    }
}

/// A pod that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePod {
    /// Its name.
    pub name: String,
    /// Its uid, which its reports must carry.
    pub uid: String,
    /// Its container runs.
    pub is_running: bool,
    /// Since when its container runs.
    pub started_at: Option<Time>,
}

/// How far a Job is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// No container runs; with what keeps it, if anybody says.
    Waiting(Option<String>),
    /// A container runs.
    Running,
    /// A pod has ended with exit code 0.
    Succeeded(Farewell),
    /// A pod has ended with an exit code after which no other is tried.
    Refused(Farewell),
    /// The Job has given up for another reason; with what it says.
    GivenUp(String),
}

/// How the pod ended that decided its Job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Farewell {
    /// Its exit code; `None` when the pod is gone.
    pub exit_code: Option<i32>,
    /// What it left as its termination message.
    pub message: Option<String>,
}

impl Workload {
    /// Reads a Job and those of `pods` that belong to it.
    pub fn read<'a>(job: &Job, pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let uid = job.uid().unwrap_or_default();
        let mut own: Vec<_> = pods.into_iter().filter(|pod| is_owned(pod, &uid)).collect();
        own.sort_by_key(|pod| Reverse(pod.creation_timestamp().map(|time| time.0)));
        let live: Vec<_> = own.iter().filter(|pod| !is_over(pod)).map(|pod| live(pod)).collect();
        let ended = own.iter().filter(|pod| phase(pod) == "Failed").count();
        let counted = job.status.as_ref().and_then(|status| status.failed).unwrap_or_default();
        // Pods that a policy ignores are not counted by the Job, and pods of a lost node are deleted.
        let lost = u32::try_from(ended).unwrap_or(u32::MAX).max(u32::try_from(counted).unwrap_or_default());
        Self {
            made_at: job.creation_timestamp(),
            is_deleting: job.metadata.deletion_timestamp.is_some(),
            suspended_by: Suspender::of(job),
            lost,
            before: Before::of(job),
            stage: stage(job, &own, &live),
            pods: live,
            uid,
        }
    }

    /// Whether the pod of this uid may speak for the Job.
    pub fn has_pod(&self, uid: &str) -> bool {
        self.pods.iter().any(|pod| pod.uid == uid)
    }

    /// Whether it will do nothing more by itself.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Succeeded(_) | Stage::Refused(_) | Stage::GivenUp(_))
    }
}

fn stage(job: &Job, own: &[&Pod], live: &[LivePod]) -> Stage {
    // Jobs and pods are watched apart: an end of the Job that is seen before that of its pod waits for what the pod said.
    let is_seen = live.is_empty();
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    for condition in conditions.filter(|condition| is_seen && condition.status == "True") {
        match condition.type_.as_str() {
            "Complete" => return Stage::Succeeded(farewell(own, |code| code == 0)),
            "Failed" => return failed(condition, own),
            _ => {}
        }
    }
    // The Job says so a moment later; until then it would look like one without a pod.
    if own.iter().any(|pod| phase(pod) == "Succeeded") {
        return Stage::Succeeded(farewell(own, |code| code == 0));
    }
    if live.iter().any(|pod| pod.is_running) {
        return Stage::Running;
    }
    Stage::Waiting(own.iter().filter(|pod| !is_over(pod)).find_map(|pod| waits_for(pod)))
}

fn failed(condition: &JobCondition, own: &[&Pod]) -> Stage {
    match condition.reason.as_deref() {
        Some("PodFailurePolicy") => Stage::Refused(farewell(own, |code| code != 0)),
        _ => Stage::GivenUp(condition.message.clone().unwrap_or_else(|| "the Job has failed".to_owned())),
    }
}

/// How the newest pod ended whose exit code is one of these.
fn farewell(own: &[&Pod], is_meant: impl Fn(i32) -> bool) -> Farewell {
    let ended = own.iter().filter_map(|pod| {
        let ended = container_state(pod)?.terminated.as_ref()?;
        is_meant(ended.exit_code)
            .then(|| Farewell { exit_code: Some(ended.exit_code), message: ended.message.clone() })
    });
    ended.into_iter().next().unwrap_or_default()
}

fn live(pod: &Pod) -> LivePod {
    let running = container_state(pod).and_then(|state| state.running.as_ref());
    LivePod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        is_running: running.is_some(),
        started_at: running.and_then(|running| running.started_at.clone()),
    }
}

/// What the scheduler or the kubelet says of a pod that does not start.
fn waits_for(pod: &Pod) -> Option<String> {
    if let Some(waiting) = container_state(pod).and_then(|state| state.waiting.as_ref())
        && let Some(reason) = waiting.reason.as_deref()
        && !matches!(reason, "ContainerCreating" | "PodInitializing")
    {
        return Some(sentence(reason, waiting.message.as_deref()));
    }
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let unscheduled = conditions
        .filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .find_map(|condition| Some(sentence(condition.reason.as_deref()?, condition.message.as_deref())));
    unscheduled.or_else(|| Some(format!("pod {} is being started", pod.name_any())))
}

fn sentence(reason: &str, message: Option<&str>) -> String {
    message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"))
}

fn container_state(pod: &Pod) -> Option<&ContainerState> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == CONTAINER)?.state.as_ref()
}

fn is_owned(pod: &Pod, job_uid: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.uid == job_uid)
}

fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Failed" | "Succeeded")
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn job(status: &Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "nightly", "uid": "job-1"}, "spec": {"template": {}}, "status": status
        }))
        .unwrap()
    }

    fn pod(name: &str, created: &str, status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "uid": format!("uid-{name}"), "creationTimestamp": created,
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "nightly", "uid": "job-1"}],
            },
            "status": status,
        }))
        .unwrap()
    }

    fn container(state: &Value) -> Value {
        json!([{
            "name": CONTAINER, "image": "penstock", "imageID": "", "ready": false, "restartCount": 0, "state": state
        }])
    }

    fn ended(code: i32, message: &str) -> Value {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        json!({
            "phase": phase,
            "containerStatuses": container(&json!({"terminated": {"exitCode": code, "message": message}})),
        })
    }

    #[test]
    fn a_job_without_pods_waits() {
        let workload = Workload::read(&job(&json!({})), []);
        assert_eq!(workload.stage, Stage::Waiting(None));
        assert!(!workload.is_over());
    }

    #[test]
    fn a_pod_that_is_not_scheduled_says_why() {
        let waiting = pod(
            "a",
            "2026-01-01T00:00:00Z",
            &json!({"phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"
            }]}),
        );
        let workload = Workload::read(&job(&json!({})), [&waiting]);
        assert_eq!(workload.stage, Stage::Waiting(Some("Unschedulable: 0/2 nodes are available".to_owned())));
        assert!(workload.has_pod("uid-a"));
    }

    #[test]
    fn a_pod_whose_image_is_not_there_says_so() {
        let waiting = pod(
            "a",
            "2026-01-01T00:00:00Z",
            &json!({"phase": "Pending", "containerStatuses": container(
                &json!({"waiting": {"reason": "ErrImageNeverPull", "message": "image is not present"}})
            )}),
        );
        let stage = Workload::read(&job(&json!({})), [&waiting]).stage;
        assert_eq!(stage, Stage::Waiting(Some("ErrImageNeverPull: image is not present".to_owned())));
    }

    #[test]
    fn pods_of_another_job_say_nothing_of_this_one() {
        let mut other = pod("a", "2026-01-01T00:00:00Z", &ended(137, ""));
        other.metadata.owner_references.as_mut().unwrap()[0].uid = "job-2".to_owned();
        let workload = Workload::read(&job(&json!({})), [&other]);
        assert_eq!((workload.lost, workload.pods.len()), (0, 0));
    }

    #[test]
    fn lost_pods_are_counted_also_where_the_job_ignores_them_or_they_are_gone() {
        let pods: Vec<_> =
            ["a", "b"].map(|name| pod(name, "2026-01-01T00:00:00Z", &ended(75, ""))).into_iter().collect();
        assert_eq!(Workload::read(&job(&json!({})), &pods).lost, 2);
        assert_eq!(Workload::read(&job(&json!({"failed": 5})), &pods).lost, 5);
    }

    #[test]
    fn who_has_suspended_a_job_stands_in_it() {
        let mut job = job(&json!({}));
        let by = |job: &Job| Workload::read(job, []).suspended_by;
        assert_eq!(by(&job), None);
        job.spec.as_mut().unwrap().suspend = Some(true);
        assert_eq!(by(&job), Some(Suspender::Other));
        job.metadata.annotations = Some([(Suspender::ANNOTATION.to_owned(), "true".to_owned())].into());
        assert_eq!(by(&job), Some(Suspender::Operator));
        job.spec.as_mut().unwrap().suspend = Some(false);
        assert_eq!(by(&job), None);
    }

    #[test]
    fn what_was_so_before_a_job_is_read_back_from_it() {
        let before = Before { lost: 3, done: 70_000 };
        let mut job = job(&json!({}));
        assert_eq!(Workload::read(&job, []).before, Before::default());
        job.metadata.annotations = Some(before.annotations().into());
        assert_eq!(Workload::read(&job, []).before, before);
    }

    #[test]
    fn the_last_word_is_that_of_the_pod_that_ended_the_job() {
        let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        let pods = [
            pod("a", "2026-01-01T00:00:00Z", &ended(137, "")),
            pod("b", "2026-01-01T01:00:00Z", &ended(0, "word")),
        ];
        let expected = Farewell { exit_code: Some(0), message: Some("word".to_owned()) };
        assert_eq!(Workload::read(&job(&complete), &pods).stage, Stage::Succeeded(expected));
        assert_eq!(Workload::read(&job(&complete), []).stage, Stage::Succeeded(Farewell::default()));
    }

    #[test]
    fn a_pod_that_has_ended_well_ends_its_job_before_the_job_says_so() {
        let pods = [
            pod("a", "2026-01-01T00:00:00Z", &ended(137, "")),
            pod("b", "2026-01-01T01:00:00Z", &ended(0, "word")),
        ];
        let workload = Workload::read(&job(&json!({})), &pods);
        assert_eq!(
            workload.stage,
            Stage::Succeeded(Farewell { exit_code: Some(0), message: Some("word".to_owned()) })
        );
        assert!(workload.is_over(), "it is not deleted");
    }

    #[test]
    fn a_job_is_not_over_before_its_pod_is_seen_to_be() {
        let refused =
            json!({"conditions": [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy"}]});
        let running = json!({"phase": "Running", "containerStatuses": container(&json!({"running": {"startedAt": null}}))});
        let seen_late = pod("a", "2026-01-01T00:00:00Z", &running);
        assert_eq!(Workload::read(&job(&refused), [&seen_late]).stage, Stage::Running);
        let over = pod("a", "2026-01-01T00:00:00Z", &ended(64, "word"));
        let expected = Farewell { exit_code: Some(64), message: Some("word".to_owned()) };
        assert_eq!(Workload::read(&job(&refused), [&over]).stage, Stage::Refused(expected));
    }

    #[test]
    fn a_job_that_is_refused_differs_from_one_that_was_tried_too_often() {
        let condition = |reason: &str| {
            json!({"conditions": [
                {"type": "FailureTarget", "status": "True"},
                {"type": "Failed", "status": "True", "reason": reason, "message": "told"},
            ]})
        };
        let pods = [pod("a", "2026-01-01T00:00:00Z", &ended(65, "word"))];
        let refused = Workload::read(&job(&condition("PodFailurePolicy")), &pods).stage;
        let expected = Farewell { exit_code: Some(65), message: Some("word".to_owned()) };
        assert_eq!(refused, Stage::Refused(expected));
        let given_up = Workload::read(&job(&condition("BackoffLimitExceeded")), &pods).stage;
        assert_eq!(given_up, Stage::GivenUp("told".to_owned()));
    }
}
