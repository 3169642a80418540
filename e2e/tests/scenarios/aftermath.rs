//! What the cluster shows of a scenario that failed: a suite whose cluster is gone by the time that somebody reads of it
//! must have told by then.

use crate::place::Cluster;

/// Of each answer, the lines that are told: the newest.
const LINES: usize = 20;

/// The nodes with what keeps pods away from them, the pods of the namespace, what went wrong there last, and the last words
/// of the pods that failed.
pub(crate) async fn of(cluster: &Cluster, namespace: &str) -> String {
    let taints = "--output=custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key";
    let questions: [&[&str]; 3] = [
        &["get", "nodes", taints],
        &["get", "pods", "--output=wide"],
        &["get", "events", "--field-selector=type=Warning", "--sort-by=.metadata.creationTimestamp"],
    ];
    let mut told = Vec::new();
    for question in questions {
        told.push(answer(cluster, namespace, question).await);
    }
    let failed = ["get", "pods", "--field-selector=status.phase=Failed", "--output=name"];
    for pod in asked(cluster, namespace, &failed).await.lines() {
        told.push(answer(cluster, namespace, &["logs", pod, "--all-containers"]).await);
    }
    told.join("\n")
}

/// A question to kubectl, and the newest lines of what it answers.
async fn answer(cluster: &Cluster, namespace: &str, question: &[&str]) -> String {
    let answer = asked(cluster, namespace, question).await;
    let lines: Vec<_> = answer.lines().collect();
    let newest = &lines[lines.len().saturating_sub(LINES)..];
    format!("  kubectl {}\n    {}", question.join(" "), newest.join("\n    "))
}

async fn asked(cluster: &Cluster, namespace: &str, question: &[&str]) -> String {
    let kubectl = cluster.kubectl().arguments(["--namespace", namespace]).arguments(question);
    kubectl.run().await.unwrap_or_else(|error| error.to_string())
}
