//! The control plane: etcd, the API server, the controllers, the scheduler, Services and names. Processes of this
//! machine, not pods.

use std::{path::Path, process::Command};

use serde_json::json;

use super::{
    certificates::{self, TOKENS, certificate},
    kubeconfig,
};
use crate::{
    daemon::{Daemon, DaemonError},
    files,
    layout::{API_PORT, CONTROL_PLANE, DOMAIN, ETCD_PORT, Layout, NAME_SERVER, NODES, SERVICES},
};

/// The processes in the order in which they are started.
pub const PROCESSES: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"];

/// Those that speak to the API server as users of it.
pub const CLIENTS: [&str; 4] = ["kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns"];

/// Starts etcd and the API server.
pub fn start_server(layout: &Layout) -> Result<(), DaemonError> {
    Daemon::new(layout, "etcd").start(&mut etcd(layout))?;
    Daemon::new(layout, "kube-apiserver").start(&mut api_server(layout))
}

/// Starts what works through the API server.
pub fn start_clients(layout: &Layout) -> Result<(), DaemonError> {
    Daemon::new(layout, "kube-controller-manager").start(&mut controller_manager(layout))?;
    Daemon::new(layout, "kube-scheduler").start(&mut scheduler(layout))?;
    files::write(&layout.state("kube-proxy.json"), proxy_settings(layout))?;
    Daemon::new(layout, "kube-proxy").start(&mut proxy(layout))?;
    files::write(&layout.state("Corefile"), name_server_settings(layout))?;
    Daemon::new(layout, "coredns").start(&mut name_server(layout))
}

/// Stops all of it, the last first.
pub async fn stop(layout: &Layout) -> Result<(), DaemonError> {
    for name in PROCESSES.into_iter().rev() {
        Daemon::new(layout, name).stop().await?;
    }
    Ok(())
}

/// `--name=path`.
fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn etcd(layout: &Layout) -> Command {
    let (clients, peers) =
        (format!("http://127.0.0.1:{ETCD_PORT}"), format!("http://127.0.0.1:{}", ETCD_PORT + 1));
    let mut command = Command::new("etcd");
    command
        .arg(flag("data-dir", &layout.state("etcd")))
        .arg(format!("--listen-client-urls={clients}"))
        .arg(format!("--advertise-client-urls={clients}"))
        .arg(format!("--listen-peer-urls={peers}"))
        .arg(format!("--initial-advertise-peer-urls={peers}"))
        .arg(format!("--initial-cluster=default={peers}"))
        // The cluster does not outlive the machine, and a slow disk must not slow it down.
        .arg("--unsafe-no-fsync");
    command
}

fn api_server(layout: &Layout) -> Command {
    let (own, to_kubelets, tokens) = (
        certificate(layout, "kube-apiserver"),
        certificate(layout, "kubelet-client"),
        certificate(layout, TOKENS),
    );
    let authority = certificates::authority(layout);
    let mut command = Command::new(layout.program("kube-apiserver"));
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"))
        .arg(format!("--advertise-address={CONTROL_PLANE}"))
        .arg(format!("--bind-address={CONTROL_PLANE}"))
        .arg(format!("--secure-port={API_PORT}"))
        .arg(format!("--service-cluster-ip-range={SERVICES}"))
        .arg("--authorization-mode=Node,RBAC")
        .arg("--enable-admission-plugins=NodeRestriction")
        .arg("--allow-privileged=true")
        .arg(flag("client-ca-file", &authority))
        .arg(flag("tls-cert-file", &own.certificate))
        .arg(flag("tls-private-key-file", &own.key))
        .arg(flag("kubelet-certificate-authority", &authority))
        .arg(flag("kubelet-client-certificate", &to_kubelets.certificate))
        .arg(flag("kubelet-client-key", &to_kubelets.key))
        // The names of the nodes are known to nobody else.
        .arg("--kubelet-preferred-address-types=InternalIP")
        .arg(format!("--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}"))
        .arg(flag("service-account-key-file", &tokens.certificate))
        .arg(flag("service-account-signing-key-file", &tokens.key));
    command
}

fn controller_manager(layout: &Layout) -> Command {
    let mut command = Command::new(layout.program("kube-controller-manager"));
    command
        .arg(flag("kubeconfig", &kubeconfig::of(layout, "kube-controller-manager")))
        .arg(flag("root-ca-file", &certificates::authority(layout)))
        .arg(flag("service-account-private-key-file", &certificate(layout, TOKENS).key))
        .args(["--use-service-account-credentials=true", "--leader-elect=false", "--bind-address=127.0.0.1"])
        // A test of a lost node should not wait for the usual 50 s. Leases are renewed every 3 s (`node`).
        .args(["--node-monitor-grace-period=20s", "--node-monitor-period=2s"]);
    command
}

fn scheduler(layout: &Layout) -> Command {
    let mut command = Command::new(layout.program("kube-scheduler"));
    command
        .arg(flag("kubeconfig", &kubeconfig::of(layout, "kube-scheduler")))
        .args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
    command
}

/// One for both nodes: they share the machine's network.
fn proxy(layout: &Layout) -> Command {
    let mut command = Command::new(layout.program("kube-proxy"));
    command
        .arg(flag("config", &layout.state("kube-proxy.json")))
        .arg(format!("--hostname-override={}", NODES[0].name));
    command
}

fn proxy_settings(layout: &Layout) -> String {
    let settings = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig::of(layout, "kube-proxy")},
        "bindAddress": CONTROL_PLANE,
        "healthzBindAddress": "127.0.0.1:20256",
        "metricsBindAddress": "127.0.0.1:20249",
        "mode": "iptables",
        // Both ends of a connection are on one bridge: an answer would not pass the rules that gave it its address.
        "iptables": {"masqueradeAll": true, "minSyncPeriod": "0s"},
        // Inside a container these settings of the kernel are not ours to change.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
            "udpTimeout": "0s",
            "udpStreamTimeout": "0s",
        },
    });
    settings.to_string()
}

fn name_server(layout: &Layout) -> Command {
    let mut command = Command::new(layout.program("coredns"));
    command.arg("-conf").arg(layout.state("Corefile"));
    command
}

/// Nothing is cached: a test asks for a Service in the moment in which it is there.
fn name_server_settings(layout: &Layout) -> String {
    let kubeconfig = kubeconfig::of(layout, "coredns");
    format!(
        ".:53 {{\n  bind {NAME_SERVER}\n  errors\n  kubernetes {DOMAIN} in-addr.arpa {{\n    kubeconfig {}\n    \
         ttl 1\n  }}\n  forward . /etc/resolv.conf\n}}\n",
        kubeconfig.display()
    )
}
