//! A zombie: the kubelet of a node is frozen, the API server gives the job to a second pod on another node, and the
//! container of the first goes on all the while.

use std::time::Duration;

use penstock_e2e::{
    cluster::node,
    files,
    layout::{Layout, NODES},
    patience::until,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    doubles::{Doubles, answered},
    place::{Cluster, Namespace, PATIENCE, VICTIM},
    witness::conserved,
};

/// How long a job of some thousand lines may take that two nodes run.
const JOB: Duration = Duration::from_mins(6);

/// What tells Kubernetes that nothing of a node runs any more. Here it is not true.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The exit code of a run from which another has taken the job.
const TAKEN_OVER: i64 = 76;

pub(crate) async fn frozen_kubelet(namespace: Namespace) -> String {
    // More than the first pod can do before the second comes: that takes about 70 s, at 40 lines/s.
    let lines = 6000;
    let layout = Layout::of_this_repository();
    let doubles = Doubles::start(&namespace, lines).await;
    namespace.apply("job.yaml").await;
    answered(&namespace, 100).await;
    let first = namespace.running_pod(&[], PATIENCE).await;
    assert_eq!(first["spec"]["nodeName"], VICTIM);
    let frozen = Frozen::freeze(&layout);
    let victim = format!("node/{VICTIM}");
    let lost = ["wait", "--for=condition=Ready=Unknown", "--timeout=110s", &victim];
    namespace.kubectl(lost).within(PATIENCE).run().await.unwrap();
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    namespace
        .cluster
        .kubectl()
        .arguments(["taint", "node", VICTIM, &taint, "--overwrite"])
        .run()
        .await
        .unwrap();
    namespace.running_pod(&[&first], PATIENCE).await;
    let code = until("the zombie to leave", PATIENCE, || async { exit_code(&layout, &first) }).await;
    drop(frozen);
    mend(&namespace.cluster).await;
    assert_eq!(code.unwrap(), TAKEN_OVER, "a run that lost its job says so");
    namespace.completed(JOB).await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    let (requests, again) = (testimony.requests(), testimony.answered_again());
    format!("{lines} lines, {requests} requests, {again} answered again; the zombie left with {TAKEN_OVER}")
}

/// A kubelet that does nothing while this lives.
struct Frozen<'a>(&'a Layout);

impl<'a> Frozen<'a> {
    fn freeze(layout: &'a Layout) -> Self {
        node::kubelet(layout, NODES[0]).signal(Signal::STOP).unwrap();
        Self(layout)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        // It is stopped for good where it does not run any more.
        let _ = node::kubelet(self.0, NODES[0]).signal(Signal::CONT);
    }
}

/// Takes the taint away and waits until the node is back.
async fn mend(cluster: &Cluster) {
    let gone = format!("{OUT_OF_SERVICE}-");
    cluster.kubectl().arguments(["taint", "node", VICTIM, &gone]).run().await.unwrap();
    let victim = format!("node/{VICTIM}");
    let back = ["wait", "--for=condition=Ready", "--timeout=110s", &victim];
    cluster.kubectl().arguments(back).within(PATIENCE).run().await.unwrap();
}

/// With what the container of a pod has ended. Its kubelet is frozen, so containerd is asked, in whose files it stands.
fn exit_code(layout: &Layout, pod: &Value) -> Result<i64, String> {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
    let id = id.trim_start_matches("containerd://");
    let path = node::container_status(layout, NODES[0], id);
    let status: Value = serde_json::from_str(&files::read(&path).unwrap()).unwrap();
    if status["FinishedAt"] == 0 {
        Err("it is still running".to_owned())
    } else {
        Ok(status["ExitCode"].as_i64().unwrap())
    }
}
