//! The bridge of our own cluster: pods come and go without a trace in the connections of the others.

use penstock_e2e::{
    command::Program,
    files,
    layout::{BRIDGE, NODES},
};

use crate::place::Namespace;

/// A port of the bridge, and its address: lower than any that the kernel draws.
const PORT: [&str; 2] = ["penstock-first", "02:00:00:00:00:00"];

/// A bridge takes the lowest address of its ports for its own unless it was given one. Pods have learnt it as that of their
/// gateway, and when the pod whose address it was goes, the others reach no Service until they ask again: for 45 s.
pub(crate) async fn kept(_: Namespace) -> String {
    let before = address();
    let [port, lowest] = PORT;
    // Left behind by a run that was stopped.
    let _ = ip(&["link", "delete", port]).run().await;
    ip(&["link", "add", port, "address", lowest, "type", "veth"]).run().await.unwrap();
    ip(&["link", "set", port, "master", BRIDGE, "up"]).run().await.unwrap();
    let beside = address();
    ip(&["link", "delete", port]).run().await.unwrap();
    assert_eq!(beside, before, "a pod changes the address of the bridge");
    format!("the bridge of {} nodes keeps its address", NODES.len())
}

fn address() -> String {
    files::read(format!("/sys/class/net/{BRIDGE}/address").as_ref()).unwrap()
}

fn ip(arguments: &[&str]) -> Program {
    Program::new("ip").arguments(arguments)
}
