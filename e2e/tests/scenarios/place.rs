//! The cluster of the suite, and the namespace of one scenario.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use penstock_e2e::{
    command::{CommandError, Program},
    files,
    layout::{Layout, NODES, WITNESS, repository},
    patience::until,
};
use serde_json::{Value, json};

/// The image as the manifests name it.
const IMAGE: &str = "localhost/penstock:e2e";

/// How long a cluster may take for anything that is not a job's work.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Lines of a job that is to be met in mid-run. It answers 40 of them in a second, and to see that it runs may take as long as
/// half of it where the machine is busy.
pub(crate) const MANY: usize = 2000;

/// A cluster, and how it is reached.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    kubectl: OsString,
    helm: OsString,
    kubeconfig: OsString,
    image: String,
    ours: bool,
}

impl Cluster {
    /// The one that `KUBECONFIG` names, else ours. One of its nodes becomes that of the witnesses.
    pub(crate) async fn find() -> Self {
        let layout = Layout::of_this_repository();
        let program = |name: &str| {
            let own = layout.program(name);
            if own.is_file() { own.into() } else { OsString::from(name) }
        };
        let (kubectl, helm) = (program("kubectl"), program("helm"));
        let foreign = env::var_os("KUBECONFIG").filter(|path| *path != layout.kubeconfig());
        let ours = foreign.is_none();
        let kubeconfig = foreign.unwrap_or_else(|| layout.kubeconfig().into());
        let image = env::var("PENSTOCK_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
        let cluster = Self { kubectl, helm, kubeconfig, image, ours };
        let labelled =
            cluster.kubectl().arguments(["get", "nodes", "--output=name", "--selector", WITNESS]).run().await;
        if labelled.unwrap().is_empty() {
            let nodes = cluster.kubectl().arguments(["get", "nodes", "--output=name"]).run().await.unwrap();
            let last = nodes.lines().last().expect("a cluster has a node");
            cluster.kubectl().arguments(["label", last, WITNESS]).run().await.unwrap();
        }
        cluster
    }

    /// Whether its nodes are processes of this machine.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours
    }

    /// kubectl, with time enough for a machine on which everything else runs as well.
    pub(crate) fn kubectl(&self) -> Program {
        Program::new(&self.kubectl).variable("KUBECONFIG", &self.kubeconfig).within(PATIENCE)
    }

    /// Helm.
    pub(crate) fn helm(&self) -> Program {
        Program::new(&self.helm).variable("KUBECONFIG", &self.kubeconfig).within(PATIENCE)
    }

    /// The image, as the chart's values have it.
    pub(crate) fn image(&self) -> Value {
        let pull_policy = if self.image == IMAGE { "Never" } else { "IfNotPresent" };
        if let Some((repository, digest)) = self.image.split_once('@') {
            return json!({"repository": repository, "digest": digest, "pullPolicy": pull_policy});
        }
        let (repository, tag) = self.image.rsplit_once(':').expect("PENSTOCK_IMAGE has a tag or a digest");
        json!({"repository": repository, "tag": tag, "pullPolicy": pull_policy})
    }
}

/// A namespace and what is in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) cluster: Cluster,
    name: &'static str,
}

impl Namespace {
    /// A new one of this name.
    pub(crate) async fn make(cluster: &Cluster, name: &'static str) -> Self {
        Self::remove(cluster, name).await;
        cluster.kubectl().arguments(["create", "namespace", name]).run().await.unwrap();
        Self { cluster: cluster.clone(), name }
    }

    /// Removes it with all that is in it.
    pub(crate) async fn remove(cluster: &Cluster, name: &str) {
        let of_operator = format!("penstock-operator-{name}-cluster");
        for [kind, name] in [["clusterrole,clusterrolebinding", &of_operator], ["namespace", name]] {
            let delete = ["delete", kind, name, "--ignore-not-found"];
            cluster.kubectl().arguments(delete).within(PATIENCE).run().await.unwrap();
        }
    }

    /// kubectl in this namespace.
    pub(crate) fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Program {
        self.cluster.kubectl().arguments(["--namespace", self.name]).arguments(arguments)
    }

    /// Helm in this namespace.
    pub(crate) fn helm<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Program {
        self.cluster.helm().arguments(["--namespace", self.name]).arguments(arguments)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The command line that leads into this namespace, for a program that stays.
    pub(crate) fn long(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.cluster.kubectl);
        command
            .env("KUBECONFIG", &self.cluster.kubeconfig)
            .args(["--namespace", self.name])
            .kill_on_drop(true);
        command
    }

    /// Applies a manifest of `e2e/manifests`, with the image of this suite, for this namespace.
    pub(crate) async fn apply(&self, manifest: &str) {
        self.apply_text(self.manifest(manifest)).await;
    }

    /// A manifest of `e2e/manifests`, with the image of this suite, for this namespace.
    pub(crate) fn manifest(&self, name: &str) -> String {
        let path: PathBuf = repository().join("e2e/manifests").join(name);
        let text = files::read(&path).unwrap().replace("${NAMESPACE}", self.name);
        if self.cluster.image == IMAGE {
            return text;
        }
        text.replace(IMAGE, &self.cluster.image)
            .replace("imagePullPolicy: Never", "imagePullPolicy: IfNotPresent")
    }

    /// Applies a manifest that is at hand.
    pub(crate) async fn apply_text(&self, text: String) {
        self.kubectl(["apply", "--filename", "-"]).input(text).run().await.unwrap();
    }

    /// The pods of the job, as the API server tells them.
    pub(crate) async fn pods(&self) -> Result<Vec<Value>, CommandError> {
        let told = self.kubectl(["get", "pods", "--selector", "job-name=run", "--output=json"]).run().await?;
        let list: Value = serde_json::from_str(&told).unwrap();
        Ok(list["items"].as_array().unwrap().clone())
    }

    /// A pod of the job that runs and is not among those that are known.
    pub(crate) async fn running_pod(&self, known: &[&Value], limit: Duration) -> Value {
        let uid = |pod: &Value| pod["metadata"]["uid"].clone();
        let ask = || async {
            let pods = self.pods().await.map_err(|error| error.to_string())?;
            let new = |pod: &Value| known.iter().all(|known| uid(known) != uid(pod));
            let running = |pod: &Value| {
                pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
            };
            let phases: Vec<_> = pods.iter().map(|pod| pod["status"]["phase"].to_string()).collect();
            let found = pods.into_iter().find(|pod| new(pod) && running(pod));
            found.ok_or_else(|| format!("its pods are {}", phases.join(", ")))
        };
        until("a pod of the job to run", limit, ask).await.unwrap()
    }

    /// Waits until the job is complete.
    pub(crate) async fn completed(&self, limit: Duration) {
        let ask = || async {
            let told =
                self.kubectl(["get", "job", "run", "--output=jsonpath={.status.conditions}"]).run().await;
            let told = told.map_err(|error| error.to_string())?;
            assert!(!told.contains(r#""type":"Failed""#), "the job failed: {told}");
            if told.contains(r#""type":"Complete""#) { Ok(()) } else { Err(told) }
        };
        until("the job to be complete", limit, ask).await.unwrap();
    }
}

/// The node for faults.
pub(crate) const VICTIM: &str = NODES[0].name;
