//! The chart: linted, rendered as it is committed, taken by the API server; installed beside a job that goes on, tested by
//! `helm test`, and upgraded under a job.

use std::env;

use penstock_e2e::{command::Program, files, layout::repository, patience::until};
use serde_json::json;

use crate::{
    batch_jobs::{ended, told},
    doubles::{Doubles, answered},
    helm::{self, RELEASE, chart},
    place::{MANY, Namespace, PATIENCE},
    shared::install_kinds,
    witness::{Testimony, conserved},
};

/// The sets of values in `charts/penstock/tests`, each with what the chart makes of them.
const SETS: [&str; 2] = ["all-namespaces", "one-namespace"];

/// Where the rendered manifests say that they are.
const RENDERED_FOR: [&str; 2] = ["penstock-system", "nightly"];

/// The group of the monitors, which a cluster has from the Prometheus operator only.
const FOREIGN: &str = "apiVersion: monitoring.coreos.com/v1";

pub(crate) async fn sound(namespace: Namespace) -> String {
    // Pods are refused before a controller has made it, a moment after the namespace.
    let account = || namespace.kubectl(["get", "serviceaccount", "default"]).run();
    until("the service account of pods", PATIENCE, account).await.unwrap();
    for set in SETS {
        let folder = chart().join("tests");
        let (values, snapshot) =
            (folder.join(format!("{set}.values.yaml")), folder.join(format!("{set}.rendered.yaml")));
        let values = format!("--values={}", values.display());
        let lint = namespace.helm(["lint", "--strict", &values]).argument(chart());
        lint.run().await.unwrap();
        let place = format!("--namespace={}", RENDERED_FOR[0]);
        let render = ["template", RELEASE, &place, &values, "--set=crds.enabled=false"];
        let rendered = namespace.cluster.helm().arguments(render).argument(chart()).run().await.unwrap();
        if env::var_os("UPDATE_CHART").is_some() {
            files::write(&snapshot, &rendered).unwrap();
        }
        let committed = files::read(&snapshot).unwrap();
        assert_eq!(committed, rendered, "{}: set UPDATE_CHART=1 and run again", snapshot.display());
        taken(&namespace, &rendered).await;
    }
    format!("{} sets of values", SETS.len())
}

/// The API server would make each object, with all of its fields.
async fn taken(namespace: &Namespace, rendered: &str) {
    let here = RENDERED_FOR.into_iter().fold(rendered.to_owned(), |text, name| {
        text.replace(&format!("namespace: {name}\n"), &format!("namespace: {}\n", namespace.name()))
    });
    let known: Vec<_> = here.split("---\n").filter(|document| !document.contains(FOREIGN)).collect();
    let apply = ["apply", "--dry-run=server", "--validate=strict", "--filename=-"];
    namespace.cluster.kubectl().arguments(apply).input(known.join("---\n")).run().await.unwrap();
}

/// The job is part of the release: Helm waits until it is accepted, and not until it is over.
pub(crate) async fn beside_a_long_job(namespace: Namespace) -> String {
    let lines = MANY;
    install_kinds(&namespace).await;
    let doubles = Doubles::start(&namespace, lines).await;
    let provider = json!({
        "apiVersion": "penstock.dev/v1alpha1", "kind": "Provider", "metadata": {"name": "double"},
        "spec": {"kind": "Simulated", "baseUrl": "http://provider:8000"},
    });
    let job = json!({
        "apiVersion": "penstock.dev/v1alpha1", "kind": "BatchJob", "metadata": {"name": "run"},
        "spec": {
            "input": {"uri": "gs://ours/in.jsonl"},
            "output": {"uri": "gs://ours/out"},
            "providerRef": {"name": "double"},
            "rate": {"mode": "Fixed", "maxInFlight": 4},
        },
    });
    let objects = format!("--set-json=extraObjects={}", json!([provider, job]));
    helm::install(&namespace, &chart(), &[&objects]).await;
    let state = ["get", "batchjob/run", "--output=jsonpath={.status.state}"];
    let state = namespace.kubectl(state).run().await.unwrap();
    assert!(["Queued", "Running"].contains(&state.as_str()), "it is {state:?} when Helm calls it ready");
    namespace.helm(["test", RELEASE, "--timeout=110s"]).within(PATIENCE).run().await.unwrap();
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "nothing is asked twice");
    told(lines, &testimony)
}

/// From the chart and the kinds of the commit before the last change of them to those of this one, with one image.
pub(crate) async fn upgraded(namespace: Namespace) -> String {
    let lines = MANY;
    let (folder, commit) = previous().await;
    let old = folder.path().join("charts/penstock");
    // They are in the cluster already, from the suite itself.
    let kinds = ["--set=crds.enabled=true", "--take-ownership", "--force-conflicts"];
    helm::install(&namespace, &old, &kinds).await;
    let doubles = Doubles::start(&namespace, lines).await;
    namespace.apply("batchjob.yaml").await;
    answered(&namespace, lines / 10).await;
    helm::upgrade(&namespace, &chart(), &kinds).await;
    let during = Testimony::of_provider(&namespace).await.requests();
    assert!(during < lines, "it was upgraded in mid-run");
    ended(&namespace, "condition=Succeeded").await;
    let testimony = conserved(&namespace, &doubles, lines).await;
    assert_eq!(testimony.requests(), lines, "a job does not notice that its operator is another one");
    format!("{}; from {commit}", told(lines, &testimony))
}

/// The chart before its last change or that of the kinds, and its commit. A clone without history has this commit's alone.
async fn previous() -> (tempfile::TempDir, String) {
    let git = || Program::new("git").inside(repository());
    let paths = ["charts/penstock", "crds/yaml"];
    let last = git().arguments(["rev-list", "--max-count=1", "HEAD", "--"]).arguments(paths);
    let before = format!("{}^", last.run().await.unwrap().trim());
    let known = git().arguments(["rev-parse", "--verify", "--short", &before]).run().await;
    let commit = known.map_or_else(|_| "HEAD".to_owned(), |commit| commit.trim().to_owned());
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("previous.tar");
    let output = format!("--output={}", archive.display());
    git().arguments(["archive", &output, &commit, "charts/penstock"]).run().await.unwrap();
    let unpack = Program::new("tar").arguments(["--extract", "--file"]).argument(&archive);
    unpack.inside(folder.path()).run().await.unwrap();
    (folder, commit)
}
