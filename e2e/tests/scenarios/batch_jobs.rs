//! A BatchJob and the operator: applied again when it is done and in mid-run, cancelled, suspended by its spec and by a queue,
//! with its executor killed again and again and its operator replaced.

use std::time::Duration;

use penstock_e2e::{
    cluster::node,
    files,
    layout::{Layout, NODES},
    patience::until,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    doubles::{Doubles, answered},
    helm::OPERATOR,
    place::{MANY, Namespace, PATIENCE},
    shared::install_operator,
    witness::{Testimony, conserved, conserved_when_cancelled},
};

/// How long a job of some hundred lines may take, a lost pod and the Job controller's ten seconds included.
const JOB: Duration = Duration::from_mins(4);

pub(crate) async fn applied_twice(namespace: Namespace) -> String {
    let lines = 200;
    let doubles = started(&namespace, lines).await;
    ended(&namespace, "condition=Succeeded").await;
    let first = conserved(&namespace, &doubles, lines).await;
    assert_eq!(first.requests(), lines, "nothing is asked twice");
    namespace.kubectl(["delete", "batchjob/run"]).within(PATIENCE).run().await.unwrap();
    namespace.apply("batchjob.yaml").await;
    ended(&namespace, "condition=Succeeded").await;
    let again = Testimony::of_provider(&namespace).await;
    assert_eq!(again.requests(), first.requests(), "a job that is done asks nothing");
    told(lines, &again)
}

pub(crate) async fn cancelled(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = started(&namespace, lines).await;
    answered(&namespace, 100).await;
    let cancel = ["patch", "batchjob/run", "--type=merge", r#"--patch={"spec":{"cancel":true}}"#];
    namespace.kubectl(cancel).run().await.unwrap();
    ended(&namespace, "jsonpath={.status.state}=Cancelled").await;
    let testimony = conserved_when_cancelled(&namespace, &doubles, lines).await;
    assert!(testimony.requests() < lines, "a cancelled job stops asking");
    told(lines, &testimony)
}

pub(crate) async fn executor_killed(namespace: Namespace) -> String {
    // It is to be met in mid-run three times.
    let lines = 2 * MANY;
    let doubles = started(&namespace, lines).await;
    let mut killed = Vec::new();
    // After the third the operator makes another Job: that of the first would wait for longer and longer.
    for time in 1..=3 {
        killed.push(namespace.running_pod(&killed.iter().collect::<Vec<_>>(), JOB).await);
        answered(&namespace, time * lines / 20).await;
        kill_process(process(&killed[time - 1]), Signal::KILL).unwrap();
    }
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    told(lines, &testimony)
}

pub(crate) async fn operator_replaced(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = started(&namespace, lines).await;
    answered(&namespace, lines / 10).await;
    let kill = ["delete", "pods", OPERATOR, "--grace-period=0", "--force"];
    namespace.kubectl(kill).within(PATIENCE).run().await.unwrap();
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "a job does not notice that its operator is another one");
    told(lines, &testimony)
}

/// By somebody who suspends its Job, and by its own spec.
pub(crate) async fn suspended(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = started(&namespace, lines).await;
    let mut met = Vec::new();
    for object in ["job/run", "batchjob/run"] {
        met.push(namespace.running_pod(&met.iter().collect::<Vec<_>>(), JOB).await);
        answered(&namespace, lines / 10).await;
        suspend(&namespace, object, true).await;
        stands_still(&namespace).await;
        let suspended = ["get", "job/run", "--output=jsonpath={.spec.suspend}"];
        assert_eq!(namespace.kubectl(suspended).run().await.unwrap(), "true", "it stays suspended");
        suspend(&namespace, object, false).await;
    }
    let before = Testimony::of_provider(&namespace).await.requests();
    assert!(before < lines, "it was suspended before its end");
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.answered_again(), 0, "a pod that leaves in peace stores its answers");
    told(lines, &testimony)
}

/// A queue suspends the Job and lets it run, twice. The operator lets it have its way.
pub(crate) async fn suspended_by_queue(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = Doubles::start(&namespace, lines).await;
    install_operator(&namespace).await;
    let label = "metadata:\n  name: run\n  labels: {kueue.x-k8s.io/queue-name: night}\n";
    let manifest = namespace.manifest("batchjob.yaml").replace("metadata:\n  name: run\n", label);
    namespace.apply_text(manifest).await;
    let mut met = Vec::new();
    for time in 1..=2 {
        met.push(namespace.running_pod(&met.iter().collect::<Vec<_>>(), JOB).await);
        answered(&namespace, time * lines / 10).await;
        suspend(&namespace, "job/run", true).await;
        stands_still(&namespace).await;
        suspend(&namespace, "job/run", false).await;
    }
    let queue = "jsonpath={.metadata.labels.kueue\\.x-k8s\\.io/queue-name}";
    let queue = namespace.kubectl(["get", "job/run", "--output", queue]).run().await.unwrap();
    assert_eq!(queue, "night", "the Job is in the queue that the BatchJob names");
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.answered_again(), 0, "a pod that leaves in peace stores its answers");
    told(lines, &testimony)
}

/// Waits until a job is suspended and its pod is gone.
async fn stands_still(namespace: &Namespace) {
    ended(namespace, "jsonpath={.status.reason}=Suspended").await;
    let no_pod = || async {
        let pods = namespace.pods().await.map_err(|error| error.to_string())?;
        if pods.is_empty() { Ok(()) } else { Err(format!("{} are there", pods.len())) }
    };
    until("the pod to leave", PATIENCE, no_pod).await.unwrap();
}

pub(crate) async fn deleted_in_mid_run(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = started(&namespace, lines).await;
    answered(&namespace, lines / 10).await;
    namespace.kubectl(["delete", "batchjob/run"]).within(PATIENCE).run().await.unwrap();
    namespace.apply("batchjob.yaml").await;
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    told(lines, &testimony)
}

pub(crate) async fn deleted_in_the_foreground(namespace: Namespace) -> String {
    let lines = MANY;
    let doubles = started(&namespace, lines).await;
    answered(&namespace, lines / 10).await;
    let delete = ["delete", "batchjob/run", "--cascade=foreground"];
    namespace.kubectl(delete).within(PATIENCE).run().await.unwrap();
    assert_eq!(namespace.pods().await.unwrap(), Vec::<Value>::new(), "its pods have ended before it is gone");
    let before = Testimony::of_provider(&namespace).await.requests();
    assert!(before < lines, "it was deleted before its end");
    namespace.apply("batchjob.yaml").await;
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.answered_again(), 0, "a pod that leaves in peace stores its answers");
    told(lines, &testimony)
}

async fn suspend(namespace: &Namespace, object: &str, suspend: bool) {
    let patch = format!(r#"--patch={{"spec":{{"suspend":{suspend}}}}}"#);
    namespace.kubectl(["patch", object, "--type=merge", &patch]).run().await.unwrap();
}

/// The doubles, the operator and the job.
async fn started(namespace: &Namespace, lines: usize) -> Doubles {
    let doubles = Doubles::start(namespace, lines).await;
    install_operator(namespace).await;
    namespace.apply("batchjob.yaml").await;
    doubles
}

pub(crate) async fn ended(namespace: &Namespace, condition: &str) {
    let (condition, limit) = (format!("--for={condition}"), format!("--timeout={}s", JOB.as_secs()));
    let wait = ["wait", "batchjob/run", &condition, &limit];
    namespace.kubectl(wait).within(JOB + PATIENCE).run().await.unwrap();
}

/// The process of a pod's one container, on this machine.
pub(crate) fn process(pod: &Value) -> Pid {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
    let id = id.trim_start_matches("containerd://");
    let on =
        NODES.iter().find(|node| pod["spec"]["nodeName"] == node.name).expect("it runs on a node of ours");
    let status = files::read(&node::container_status(&Layout::of_this_repository(), *on, id)).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    let pid = status["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(Pid::from_raw).expect("it has a process")
}

pub(crate) fn told(lines: usize, testimony: &Testimony) -> String {
    let (requests, again) = (testimony.requests(), testimony.answered_again());
    format!("{lines} lines, {requests} requests, {again} answered again")
}
