//! One job as a `batch/v1` Job, without an operator: undisturbed, with its pod deleted, and with its node drained.

use std::time::Duration;

use penstock_e2e::command::Program;
use serde_json::Value;

use crate::{
    doubles::{Doubles, answered},
    place::{Cluster, MANY, Namespace, PATIENCE, VICTIM},
    witness::{Testimony, conserved},
};

/// How long a job of some hundred lines may take, a lost pod and the Job controller's ten seconds included.
const JOB: Duration = Duration::from_mins(4);

pub(crate) async fn whole(namespace: Namespace) -> String {
    let lines = 200;
    let doubles = Doubles::start(&namespace, lines).await;
    namespace.apply("job.yaml").await;
    namespace.completed(JOB).await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "nothing is asked twice");
    told(lines, &testimony)
}

pub(crate) async fn pod_deleted(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = Doubles::start(&namespace, lines).await;
    namespace.apply("job.yaml").await;
    answered(&namespace, lines / 10).await;
    let first = namespace.running_pod(&[], PATIENCE).await;
    let name = first["metadata"]["name"].as_str().unwrap();
    namespace.kubectl(["delete", "pod", name, "--wait=false"]).run().await.unwrap();
    gone_on(&namespace, &doubles, &first, lines).await
}

pub(crate) async fn drained(namespace: Namespace) -> String {
    let lines = MANY;
    let cluster = namespace.cluster.clone();
    let doubles = Doubles::start(&namespace, lines).await;
    namespace.apply("job.yaml").await;
    answered(&namespace, lines / 10).await;
    let first = namespace.running_pod(&[], PATIENCE).await;
    let node = first["spec"]["nodeName"].as_str().unwrap();
    assert!(!cluster.is_ours() || node == VICTIM, "the job runs beside the witnesses, on {node}");
    let drain = ["drain", node, "--pod-selector=job-name=run", "--delete-emptydir-data", "--timeout=110s"];
    let drained = cluster.kubectl().arguments(drain).within(PATIENCE).run().await;
    // Others need the node, too, whatever comes of this.
    uncordon(&cluster, node).await;
    drained.unwrap();
    gone_on(&namespace, &doubles, &first, lines).await
}

async fn uncordon(cluster: &Cluster, node: &str) {
    let uncordon: Program = cluster.kubectl().arguments(["uncordon", node]);
    uncordon.run().await.unwrap();
}

/// Another pod ends the job, and no answer is asked for again: the first had time to store them.
async fn gone_on(namespace: &Namespace, doubles: &Doubles, first: &Value, lines: usize) -> String {
    namespace.running_pod(&[first], PATIENCE).await;
    namespace.completed(JOB).await;
    let testimony = conserved(namespace, doubles, lines).await;
    assert_eq!(testimony.answered_again(), 0, "a pod that leaves in peace stores its answers");
    told(lines, &testimony)
}

fn told(lines: usize, testimony: &Testimony) -> String {
    let (requests, again) = (testimony.requests(), testimony.answered_again());
    format!("{lines} lines, {requests} requests, {again} answered again")
}
