//! One node: a containerd and a kubelet with folders, sockets, ports and a cgroup of their own.

use std::{path::PathBuf, process::Command, time::Duration};

use serde_json::json;

use super::{certificates, cgroups, images::PAUSE, kubeconfig};
use crate::{
    command::{CommandError, Program},
    daemon::{Daemon, DaemonError},
    files::{self, FileError},
    layout::{BRIDGE, CONTROL_PLANE, DOMAIN, Layout, NAME_SERVER, NETWORK, Node},
    patience::{TooLate, until},
};

/// Where Debian puts the network plugins.
pub const PLUGINS: &str = "/usr/lib/cni/bridge";

/// A node that does not start or end.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its processes.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// Its settings.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its containers.
    #[error(transparent)]
    Program(#[from] CommandError),
    /// It does not come up in time.
    #[error(transparent)]
    TooLate(#[from] TooLate),
}

/// The kubelet of a node.
pub fn kubelet(layout: &Layout, node: Node) -> Daemon {
    Daemon::new(layout, format!("kubelet-{}", node.name))
}

fn containerd(layout: &Layout, node: Node) -> Daemon {
    Daemon::new(layout, format!("containerd-{}", node.name))
}

/// Where containerd keeps what has become of a container: JSON, with `FinishedAt` and `ExitCode`. Needs no kubelet.
pub fn container_status(layout: &Layout, node: Node, container: &str) -> PathBuf {
    folder(layout, node)
        .join("containerd/io.containerd.grpc.v1.cri/containers")
        .join(container)
        .join("status")
}

/// The folder of everything that this node keeps.
fn folder(layout: &Layout, node: Node) -> PathBuf {
    layout.state(node.name)
}

/// The socket of its containerd. A short path: a socket's has 108 bytes at most.
fn socket(layout: &Layout, node: Node) -> PathBuf {
    folder(layout, node).join("c.sock")
}

/// Starts its containerd and waits until it answers.
pub async fn start_containerd(layout: &Layout, node: Node) -> Result<(), NodeError> {
    let settings = folder(layout, node).join("containerd.toml");
    files::write(&settings, containerd_settings(layout, node))?;
    files::write(&folder(layout, node).join("cni/10-penstock.conflist"), network_settings(layout, node))?;
    let daemon = containerd(layout, node);
    daemon.start(Command::new("containerd").arg("--config").arg(settings))?;
    let what = format!("containerd of {} to answer (its log is {})", node.name, daemon.log().display());
    until(&what, Duration::from_mins(1), || ctr(layout, node).argument("version").run()).await?;
    Ok(())
}

/// Gives it an image.
pub async fn load_image(layout: &Layout, node: Node, archive: &std::path::Path) -> Result<(), NodeError> {
    let import = ctr(layout, node).arguments(["images", "import"]).argument(archive);
    import.within(Duration::from_mins(10)).run().await?;
    Ok(())
}

/// Starts its kubelet.
pub fn start_kubelet(layout: &Layout, node: Node) -> Result<(), NodeError> {
    cgroups::make(&node.cgroup())?;
    let settings = folder(layout, node).join("kubelet.json");
    files::write(&settings, kubelet_settings(layout, node))?;
    let mut command = Command::new(layout.program("kubelet"));
    command
        .arg(format!("--config={}", settings.display()))
        .arg(format!("--kubeconfig={}", kubeconfig::of(layout, node.name).display()))
        .arg(format!("--root-dir={}", folder(layout, node).join("kubelet").display()))
        .arg(format!("--hostname-override={}", node.name))
        .arg(format!("--node-labels={}", node.labels()))
        .arg(format!("--node-ip={}", node.address()));
    Ok(kubelet(layout, node).start(&mut command)?)
}

/// Stops it, and every container with it.
pub async fn stop(layout: &Layout, node: Node) -> Result<(), NodeError> {
    kubelet(layout, node).stop().await?;
    let daemon = containerd(layout, node);
    if daemon.runs() {
        let tasks = ctr(layout, node).arguments(["tasks", "list", "--quiet"]).run().await?;
        for task in tasks.lines() {
            // One that ended in the meantime is gone already; what stays is killed with its cgroup.
            let _ = ctr(layout, node).arguments(["tasks", "delete", "--force", task]).run().await;
        }
    }
    daemon.stop().await?;
    cgroups::end(&node.cgroup()).await?;
    Ok(())
}

/// containerd's own client.
fn ctr(layout: &Layout, node: Node) -> Program {
    Program::new("ctr")
        .argument("--address")
        .argument(socket(layout, node))
        .arguments(["--namespace", "k8s.io"])
}

fn containerd_settings(layout: &Layout, node: Node) -> String {
    let path = |name: &str| folder(layout, node).join(name).display().to_string();
    let (root, state, optional, cni) = (path("containerd"), path("run"), path("opt"), path("cni"));
    let (socket, plugins) = (path("c.sock"), PLUGINS.trim_end_matches("/bridge"));
    // `restrict_oom_score_adj`: without CAP_SYS_RESOURCE no process may be made less likely to be killed than it is, and
    // every pod would die of the attempt.
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{optional}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{cni}"
"#
    )
}

fn network_settings(layout: &Layout, node: Node) -> String {
    let (first, last) = node.pods();
    let settings = json!({
        "cniVersion": "0.4.0",
        "name": "penstock",
        "plugins": [{
            "type": "bridge",
            "bridge": BRIDGE,
            // A pod may ask a Service that leads back to it.
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "dataDir": folder(layout, node).join("addresses"),
                "ranges": [[{"subnet": NETWORK, "rangeStart": first, "rangeEnd": last, "gateway": CONTROL_PLANE}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    settings.to_string()
}

fn kubelet_settings(layout: &Layout, node: Node) -> String {
    let certificate = certificates::certificate(layout, node.name);
    let settings = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "healthzPort": node.port(10_248),
        "containerRuntimeEndpoint": format!("unix://{}", socket(layout, node).display()),
        "tlsCertFile": certificate.certificate,
        "tlsPrivateKeyFile": certificate.key,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": certificates::authority(layout)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", node.cgroup()),
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": DOMAIN,
        "failSwapOn": false,
        // The disk is the machine's, and its owner decides how full it may be. No share of it: a hundredth of a large disk
        // is more than a whole run of the suite takes.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "100Mi",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "100Mi",
            "imagefs.inodesFree": "1%",
        },
        // Nothing could be pulled again.
        "imageGCHighThresholdPercent": 100,
        // The logs of the doubles are witnesses: they are read from the beginning.
        "containerLogMaxSize": "1Gi",
        // Renewed at a quarter of it.
        "nodeLeaseDurationSeconds": 12,
        "nodeStatusUpdateFrequency": "5s",
        // Its helper chains would stay behind; kube-proxy makes those that are needed.
        "makeIPTablesUtilChains": false,
        "podLogsDir": folder(layout, node).join("logs"),
        "volumePluginDir": folder(layout, node).join("volume-plugins"),
    });
    settings.to_string()
}
