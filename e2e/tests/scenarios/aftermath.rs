//! What the cluster shows of a scenario that failed: a suite whose cluster is gone by the time that somebody reads of it
//! must have told by then.

use crate::place::Cluster;

/// Of each answer, the lines that are told: the newest.
const LINES: usize = 20;

/// The nodes with what keeps pods away from them, the pods of the namespace, and what went wrong there last.
pub(crate) async fn of(cluster: &Cluster, namespace: &str) -> String {
    let taints = "--output=custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key";
    let questions: [&[&str]; 3] = [
        &["get", "nodes", taints],
        &["get", "pods", "--output=wide"],
        &["get", "events", "--field-selector=type=Warning", "--sort-by=.metadata.creationTimestamp"],
    ];
    let mut told = Vec::new();
    for question in questions {
        let kubectl = cluster.kubectl().arguments(["--namespace", namespace]).arguments(question);
        let answer = kubectl.run().await.unwrap_or_else(|error| error.to_string());
        let lines: Vec<_> = answer.lines().collect();
        let newest = &lines[lines.len().saturating_sub(LINES)..];
        told.push(format!("  kubectl {}\n    {}", question.join(" "), newest.join("\n    ")));
    }
    told.join("\n")
}
