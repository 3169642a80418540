//! Where everything of the cluster is: folders, addresses, and the names of the nodes.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

/// The bridge to which nodes and pods are connected.
pub const BRIDGE: &str = "penstock0";

/// The addresses of nodes and pods, one network for all.
pub const NETWORK: &str = "10.188.0.0/16";

/// The addresses of Services.
pub const SERVICES: &str = "10.189.0.0/16";

/// The API server as a Service.
pub const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 189, 0, 1);

/// The control plane, on the bridge.
pub const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(10, 188, 0, 1);

/// The name server, on the bridge.
pub const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 188, 0, 53);

/// What Service names end with.
pub const DOMAIN: &str = "cluster.local";

/// The port of the API server.
pub const API_PORT: u16 = 6443;

/// The port of etcd, on the loopback: beside one of the machine's own.
pub const ETCD_PORT: u16 = 22379;

/// The two nodes. Faults are for the first: what only watches is placed on the second.
pub const NODES: [Node; 2] = [Node { name: "node-a", number: 1 }, Node { name: "node-b", number: 2 }];

/// The label of the node on which the witnesses run.
pub const WITNESS: &str = "penstock.dev/witness=true";

/// One node: a containerd and a kubelet of its own on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// As Kubernetes calls it.
    pub name: &'static str,
    number: u8,
}

impl Node {
    /// Its own address on the bridge.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 188, 0, 10 + self.number)
    }

    /// The first and the last address of its pods.
    pub fn pods(self) -> (Ipv4Addr, Ipv4Addr) {
        (Ipv4Addr::new(10, 188, self.number, 1), Ipv4Addr::new(10, 188, self.number, 254))
    }

    /// A port of the loopback that only this node uses: both kubelets want the same ones.
    pub fn port(self, usual: u16) -> u16 {
        usual + 10_000 * u16::from(self.number)
    }

    /// Its own labels.
    pub fn labels(self) -> &'static str {
        if self == NODES[1] { WITNESS } else { "" }
    }

    /// Its cgroup, below the root of each hierarchy.
    pub fn cgroup(self) -> String {
        format!("penstock-{}", self.name)
    }
}

/// Where the state of the running cluster is, of which a machine has one. Not below the checkout, whose path may be long: that of
/// a socket has 107 bytes, and the kubelet leaves if it cannot bind `node-a/kubelet/pod-resources/kubelet.sock`.
const STATE: &str = "/var/lib/penstock-cluster";

/// The folders of a cluster.
#[derive(Debug, Clone)]
pub struct Layout {
    /// What was built, and what was written.
    root: PathBuf,
    state: PathBuf,
}

impl Layout {
    /// A cluster below this folder, which must be an absolute path.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { state: root.join("state"), root }
    }

    /// The cluster of this machine, with what this checkout builds.
    pub fn of_this_repository() -> Self {
        Self { state: STATE.into(), ..Self::at(repository().join("target/cluster")) }
    }

    /// What is built once and kept: the programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    /// What is built and handed to the nodes: images.
    pub fn image(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join("images").join(name)
    }

    /// What belongs to the running cluster, and goes with it.
    pub fn state(&self, name: impl AsRef<Path>) -> PathBuf {
        self.state.join(name)
    }

    /// What a process wrote. Stays when the cluster is gone.
    pub fn log(&self, process: &str) -> PathBuf {
        self.root.join("logs").join(format!("{process}.log"))
    }

    /// The way in for people and for the suite.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }
}

/// The root of this checkout.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_no_address_and_no_port() {
        let [a, b] = NODES;
        assert_ne!(a.address(), b.address());
        assert!(a.pods().1 < b.pods().0);
        assert_ne!(a.port(10_248), b.port(10_248));
    }
}
