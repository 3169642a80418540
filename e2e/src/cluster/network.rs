//! The network of the cluster: a bridge for nodes and pods, forwarding, and the way out. Services are kube-proxy's.

use std::{net::Ipv4Addr, path::Path, time::Duration};

use crate::{
    command::{CommandError, Program},
    files::{self, FileError},
    layout::{BRIDGE, CONTROL_PLANE, Layout, NAME_SERVER, NETWORK, NODES, Node},
};

/// Whether the machine forwards between its interfaces.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// The chain of our own rules, in the tables `nat` and `filter`.
const CHAIN: &str = "PENSTOCK-CLUSTER";

/// The bridge's own address. Without one a bridge has that of a port, and another one when the pod behind it goes: for 45 s
/// no other pod reaches a Service then.
const BRIDGE_ADDRESS: &str = "02:00:0a:bc:00:01";

/// What the names of chains begin with that the cluster made: ours, and those of kube-proxy.
const CHAINS: [&str; 2] = ["PENSTOCK-", "KUBE-"];

/// A network that cannot be made or taken away.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A program says why.
    #[error(transparent)]
    Program(#[from] CommandError),
    /// A setting of the kernel.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Connects nodes and pods.
pub async fn up(layout: &Layout) -> Result<(), NetworkError> {
    if !Path::new("/sys/class/net").join(BRIDGE).exists() {
        ip(&["link", "add", BRIDGE, "type", "bridge"]).await?;
    }
    ip(&["link", "set", BRIDGE, "address", BRIDGE_ADDRESS]).await?;
    // The first address is that of the bridge for packets whose sender is masked.
    let addresses = [CONTROL_PLANE, NAME_SERVER].into_iter().chain(NODES.map(Node::address));
    for address in addresses {
        ip(&["address", "replace", &within_network(address), "dev", BRIDGE]).await?;
    }
    ip(&["link", "set", BRIDGE, "up"]).await?;
    let before = layout.state("ip_forward");
    if !before.exists() {
        files::write(&before, files::read(Path::new(FORWARDING))?)?;
    }
    files::write(Path::new(FORWARDING), "1")?;
    let ours = iptables(&["--table", "nat", "--list-rules", CHAIN]).await;
    if ours.is_err() {
        for rule in rules() {
            iptables(&rule.split(' ').collect::<Vec<_>>()).await?;
        }
    }
    Ok(())
}

/// Takes everything away that the cluster brought into the machine's network.
pub async fn down(layout: &Layout) -> Result<(), NetworkError> {
    for family in ["iptables", "ip6tables"] {
        let saved = Program::new(format!("{family}-save")).run().await?;
        let kept = without_ours(&saved);
        if kept.lines().count() < saved.lines().count() {
            Program::new(format!("{family}-restore"))
                .input(kept)
                .within(Duration::from_mins(1))
                .run()
                .await?;
        }
    }
    if Path::new("/sys/class/net").join(BRIDGE).exists() {
        ip(&["link", "delete", BRIDGE]).await?;
    }
    if let Ok(before) = files::read(&layout.state("ip_forward")) {
        files::write(Path::new(FORWARDING), before)?;
    }
    Ok(())
}

/// With the length of the network's prefix.
fn within_network(address: Ipv4Addr) -> String {
    let (_, length) = NETWORK.split_once('/').unwrap_or((NETWORK, "32"));
    format!("{address}/{length}")
}

/// Pods reach what is outside under the machine's address, and nobody's policy drops what they send.
fn rules() -> Vec<String> {
    vec![
        format!("-t nat -N {CHAIN}"),
        format!("-t nat -A {CHAIN} -s {NETWORK} ! -d {NETWORK} -j MASQUERADE"),
        format!("-t nat -A POSTROUTING -j {CHAIN}"),
        format!("-t filter -N {CHAIN}"),
        format!("-t filter -A {CHAIN} -s {NETWORK} -j ACCEPT"),
        format!("-t filter -A {CHAIN} -d {NETWORK} -j ACCEPT"),
        format!("-t filter -I FORWARD -j {CHAIN}"),
    ]
}

/// The rules of `iptables-save` without those of the cluster.
fn without_ours(saved: &str) -> String {
    let names = |word: &str| CHAINS.iter().any(|prefix| word.trim_start_matches(':').starts_with(prefix));
    let kept: Vec<_> = saved.lines().filter(|line| !line.split_whitespace().any(names)).collect();
    kept.join("\n") + "\n"
}

async fn ip(arguments: &[&str]) -> Result<String, CommandError> {
    Program::new("ip").arguments(arguments).run().await
}

async fn iptables(arguments: &[&str]) -> Result<String, CommandError> {
    Program::new("iptables").arguments(["--wait", "10"]).arguments(arguments).run().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rules_of_the_cluster_are_taken_away() {
        let saved = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:DOCKER - [0:0]\n\
             -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
             -A POSTROUTING -j PENSTOCK-CLUSTER\n-A PREROUTING -j DOCKER\nCOMMIT\n";
        let kept = "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n-A PREROUTING -j DOCKER\nCOMMIT\n";
        assert_eq!(without_ours(saved), kept);
    }
}
