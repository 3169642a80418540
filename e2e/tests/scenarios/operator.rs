//! The operator and the API server in trouble: a leader that is frozen, an operator that is killed while there is a job in
//! every state, and an API server that is away.

use std::time::Duration;

use penstock_e2e::{cluster::control_plane, daemon::Daemon, layout::Layout, patience::until};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    batch_jobs::{ended, process, told},
    doubles::{Doubles, answered},
    helm::{self, OPERATOR, chart},
    place::{MANY, Namespace, PATIENCE},
    shared::{Job, Shared, install_kinds, install_operator},
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

/// With a job in each state there is, those that are over included.
pub(crate) async fn killed_in_every_state(namespace: Namespace) -> String {
    let few = |name| Job { name, lines: 20 };
    let many = |name| Job { name, lines: 2 * MANY };
    let [awaited, validating, queued, finalizing, over] =
        [few("awaited"), few("validating"), few("queued"), few("finalizing"), few("over")];
    let [running, cancelling, expired] = [many("running"), many("cancelling"), many("expired")];
    // So long is each of these held up where it is to be met: three answers that do not come.
    let faults = ["validating.jsonl", "finalizing/results_final.jsonl", "cancelling/results_final.jsonl"];
    let faults = faults.map(|object| {
        let operations = ["read", "compose"];
        json!({"fault": "stall_before", "operations": operations, "object": object, "calls": {"first": 3}})
    });
    let shared = Shared::start(namespace, json!({}), json!(faults)).await;
    shared.submit(awaited.name, json!({})).await;
    shared.lay_text("refused", "").await;
    shared.submit("refused", json!({})).await;
    shared.begin(queued, json!({"suspend": true})).await;
    shared.begin(expired, json!({"completionWindowSeconds": 10})).await;
    for job in [over, running, cancelling] {
        shared.begin(job, json!({})).await;
    }
    shared.state(awaited.name, "AwaitingUpload").await;
    shared.state("refused", "Failed").await;
    shared.state(expired.name, "Expired").await;
    shared.succeeds(over.name).await;
    shared.answered(running.name, 20).await;
    shared.answered(cancelling.name, 20).await;
    shared.begin(finalizing, json!({})).await;
    shared.state(finalizing.name, "Finalizing").await;
    shared.lay(validating).await;
    shared.submit(validating.name, json!({})).await;
    shared.change(cancelling.name, json!({"cancel": true})).await;
    shared.state(validating.name, "Validating").await;
    shared.state(cancelling.name, "Cancelling").await;
    let states = states(&shared.namespace).await;
    kill_process(process(&leader(&shared.namespace, None).await), Signal::KILL).unwrap();
    let met = [
        (awaited.name, "AwaitingUpload"),
        (cancelling.name, "Cancelling"),
        (expired.name, "Expired"),
        (finalizing.name, "Finalizing"),
        (over.name, "Completed"),
        (queued.name, "Queued"),
        ("refused", "Failed"),
        (running.name, "Running"),
        (validating.name, "Validating"),
    ];
    assert_eq!(states, met.map(|(name, state)| format!("{name} {state}")), "each is met in its state");
    shared.lay(awaited).await;
    shared.change(queued.name, json!({"suspend": false})).await;
    for job in [awaited, validating, queued, running, finalizing, over] {
        shared.succeeds(job.name).await;
        let testimony = shared.conserved(job, "completed").await;
        assert_eq!(testimony.requests(), job.lines, "{}: nothing is asked twice", job.name);
    }
    for (job, ending) in [(cancelling, "Cancelled"), (expired, "Expired")] {
        shared.state(job.name, ending).await;
        let testimony = shared.conserved(job, &ending.to_lowercase()).await;
        assert!(testimony.requests() < job.lines, "{}: it has stopped asking", job.name);
    }
    shared.state("refused", "Failed").await;
    shared.untouched("refused").await;
    let operator = leader(&shared.namespace, None).await;
    assert_eq!(operator["status"]["containerStatuses"][0]["restartCount"], 1, "it was killed once");
    format!("killed with {} BatchJobs, each in another state", met.len())
}

/// The state of each BatchJob, in the order of their names.
async fn states(namespace: &Namespace) -> Vec<String> {
    let each = r#"--output=jsonpath={range .items[*]}{.metadata.name} {.status.state}{"\n"}{end}"#;
    let told = namespace.kubectl(["get", "batchjobs", each]).run().await.unwrap();
    told.lines().map(str::to_owned).collect()
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
