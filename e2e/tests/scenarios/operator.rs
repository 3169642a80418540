//! The operator and the API server in trouble, while a job goes on: a leader that is frozen, and an API server that is away.

use std::time::Duration;

use penstock_e2e::{cluster::control_plane, daemon::Daemon, layout::Layout, patience::until};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    batch_jobs::{ended, process, told},
    doubles::{Doubles, answered},
    helm::{self, OPERATOR, chart},
    place::{MANY, Namespace, PATIENCE},
    shared::{install_kinds, install_operator},
    witness::conserved,
};

/// How long the API server is away: longer than a lease, and than the patience of every watch and call.
const AWAY: Duration = Duration::from_mins(1);

/// With what a process ends that was killed.
const KILLED: i64 = 137;

pub(crate) async fn leader_frozen(namespace: Namespace) -> String {
    let lines = MANY;
    install_kinds(&namespace).await;
    let doubles = Doubles::start(&namespace, lines).await;
    helm::install(&namespace, &chart(), &["--set=replicas=2"]).await;
    namespace.apply("batchjob.yaml").await;
    answered(&namespace, lines / 10).await;
    let first = leader(&namespace, None).await;
    let frozen = process(&first);
    kill_process(frozen, Signal::STOP).unwrap();
    let second = leader(&namespace, Some(&first)).await;
    kill_process(frozen, Signal::CONT).unwrap();
    let code = until("the thawed leader to leave", PATIENCE, || left(&namespace, &first)).await.unwrap();
    assert_ne!(code, KILLED, "it leaves by itself");
    ended(&namespace, "condition=Succeeded").await;
    let leads = leader(&namespace, None).await;
    assert_eq!(leads["metadata"]["name"], second["metadata"]["name"], "who was thawed waits");
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "a job does not notice who leads");
    told(lines, &testimony)
}

/// The pod that leads, when it is another than `before`.
async fn leader(namespace: &Namespace, before: Option<&Value>) -> Value {
    let ask = || async {
        let pods = namespace.kubectl(["get", "pods", OPERATOR, "--output=json"]).run().await;
        let pods: Value = serde_json::from_str(&pods.map_err(|error| error.to_string())?).unwrap();
        let leads = |pod: &&Value| pod["metadata"]["labels"]["penstock.dev/leader"] == "true";
        let leaders: Vec<_> = pods["items"].as_array().unwrap().iter().filter(leads).collect();
        match leaders[..] {
            [pod] if before.is_none_or(|before| before["metadata"]["name"] != pod["metadata"]["name"]) => {
                Ok(pod.clone())
            }
            _ => Err(format!("{} pods have the label", leaders.len())),
        }
    };
    until("one other pod to lead", PATIENCE, ask).await.unwrap()
}

/// With what the first process of a pod has ended.
async fn left(namespace: &Namespace, pod: &Value) -> Result<i64, String> {
    let name = format!("pod/{}", pod["metadata"]["name"].as_str().unwrap());
    let pod = namespace.kubectl(["get", &name, "--output=json"]).run().await;
    let pod: Value = serde_json::from_str(&pod.map_err(|error| error.to_string())?).unwrap();
    let code = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"];
    code.as_i64().ok_or_else(|| "it runs".to_owned())
}

pub(crate) async fn api_server_away(namespace: Namespace) -> String {
    // More than can be asked while it is away, at 40 lines/s.
    let lines = 2 * MANY;
    let doubles = Doubles::start(&namespace, lines).await;
    install_operator(&namespace).await;
    namespace.apply("batchjob.yaml").await;
    answered(&namespace, lines / 20).await;
    let layout = Layout::of_this_repository();
    Daemon::new(&layout, "kube-apiserver").stop().await.unwrap();
    // How long it is away is what is tried here: there is nobody who could be asked.
    sleep(AWAY).await;
    control_plane::start_server(&layout).unwrap();
    let ready = || namespace.cluster.kubectl().arguments(["get", "--raw", "/readyz"]).run();
    until("the API server to be ready", PATIENCE, ready).await.unwrap();
    ended(&namespace, "condition=Succeeded").await;
    let doubles = doubles.reached_again(&namespace).await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "a job does not notice that the API server was away");
    told(lines, &testimony)
}
