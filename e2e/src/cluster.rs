//! Starting and stopping the cluster: the order of its parts, and the proof that it works.

pub mod certificates;
pub mod cgroups;
pub mod control_plane;
pub mod images;
pub mod kubeconfig;
pub mod network;
pub mod node;
pub mod remains;
pub mod requirements;
pub mod tools;

use std::time::Duration;

use serde_json::json;

use crate::{
    command::{CommandError, Program},
    daemon::{Daemon, DaemonError},
    files::{self, FileError},
    layout::{DOMAIN, Layout, NODES, Node, repository},
    patience::{TooLate, until},
};

/// How long a part may take to answer on a machine that is busy with other work.
const PATIENCE: Duration = Duration::from_mins(3);

/// A cluster that does not start or end.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The machine lacks something.
    #[error(transparent)]
    Requirement(#[from] requirements::RequirementError),
    /// A program of it is not built.
    #[error(transparent)]
    Tool(#[from] tools::ToolError),
    /// An image of it is not built.
    #[error(transparent)]
    Image(#[from] images::ImageError),
    /// Its certificates.
    #[error(transparent)]
    Certificate(#[from] certificates::CertificateError),
    /// Its network.
    #[error(transparent)]
    Network(#[from] network::NetworkError),
    /// A process of the control plane.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A node.
    #[error(transparent)]
    Node(#[from] node::NodeError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A program.
    #[error(transparent)]
    Program(#[from] CommandError),
    /// It is not ready in time.
    #[error(transparent)]
    TooLate(#[from] TooLate),
}

/// Builds what is missing, starts what does not run, and returns when pods run on both nodes and find Services by name.
pub async fn up(layout: &Layout) -> Result<(), ClusterError> {
    requirements::check()?;
    tools::build(layout).await?;
    let archives = images::build(layout).await?;
    if !Daemon::new(layout, "kube-apiserver").runs() {
        // What a machine that was switched off left behind would contradict what is started now.
        down(layout).await?;
    }
    network::up(layout).await?;
    certificates::make(layout)?;
    let names = control_plane::CLIENTS.into_iter().chain(NODES.map(|node| node.name));
    kubeconfig::write(layout, &names.collect::<Vec<_>>())?;
    requirements::check_room(&layout.state(""))?;
    control_plane::start_server(layout)?;
    for node in NODES {
        node::start_containerd(layout, node).await?;
        for archive in &archives {
            node::load_image(layout, node, archive).await?;
        }
    }
    until("the API server to be ready", PATIENCE, || {
        kubectl(layout).arguments(["get", "--raw", "/readyz"]).run()
    })
    .await?;
    let own = repository().join("e2e/manifests/cluster.yaml");
    kubectl(layout).arguments(["apply", "--filename"]).argument(own).run().await?;
    control_plane::start_clients(layout)?;
    // One after the other: each kubelet binds a socket below /var/lib/kubelet/device-plugins, wherever its own folders
    // are, once it has taken away the one that it finds there. Two that do so at the same moment fail.
    for node in NODES {
        node::start_kubelet(layout, node)?;
        ready(layout, node).await?;
    }
    for node in NODES {
        finds_services(layout, node).await?;
    }
    Ok(())
}

/// Stops everything and takes away what it left on the machine. The logs and what was built stay.
pub async fn down(layout: &Layout) -> Result<(), ClusterError> {
    for node in NODES {
        node::stop(layout, node).await?;
    }
    control_plane::stop(layout).await?;
    remains::clear(layout)?;
    network::down(layout).await?;
    files::remove(&layout.kubeconfig())?;
    Ok(files::remove(&layout.state(""))?)
}

/// The client of the cluster, with all rights.
pub fn kubectl(layout: &Layout) -> Program {
    Program::new(layout.program("kubectl")).argument("--kubeconfig").argument(layout.kubeconfig())
}

async fn ready(layout: &Layout, node: Node) -> Result<(), ClusterError> {
    let what =
        format!("{} to be ready (its log is {})", node.name, node::kubelet(layout, node).log().display());
    let ask = || {
        let name = format!("node/{}", node.name);
        kubectl(layout).arguments(["wait", "--for=condition=Ready", "--timeout=5s", &name]).run()
    };
    until(&what, PATIENCE, ask).await?;
    Ok(())
}

/// Runs a pod on the node that looks up the API server by the name of its Service.
async fn finds_services(layout: &Layout, node: Node) -> Result<(), ClusterError> {
    let name = format!("probe-{}", node.name);
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node.name,
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "probe",
                "image": images::PAUSE,
                "imagePullPolicy": "Never",
                "args": ["resolve", format!("kubernetes.default.svc.{DOMAIN}")],
            }],
        },
    });
    let probe = format!("pod/{name}");
    // The service account of pods is made by a controller, a moment after the namespace.
    let apply = || kubectl(layout).arguments(["apply", "--filename", "-"]).input(pod.to_string()).run();
    until(&format!("{name} to be accepted"), PATIENCE, apply).await?;
    let succeeded = || {
        let wait = ["wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=5s", &probe];
        kubectl(layout).arguments(wait).run()
    };
    until(&format!("{name} to find a Service by its name"), PATIENCE, succeeded).await?;
    kubectl(layout).arguments(["delete", &probe]).run().await?;
    Ok(())
}
