//! A BatchJob whose budget is used up: it is held, sends nothing more, not even from another pod, and publishes when it is
//! cancelled.

use serde_json::json;

use crate::{
    place::Namespace,
    shared::{Job, Shared},
};

/// Some eighty lines' worth.
const TOKENS: u32 = 5000;

pub(crate) async fn reached(namespace: Namespace) -> String {
    let shared = Shared::start(namespace, json!({}), json!([])).await;
    let price =
        json!({"model": "simulated", "inputPerMillionTokens": "250", "outputPerMillionTokens": "1000"});
    shared.provide("priced", json!({"prices": {"currency": "EUR", "models": [price]}})).await;
    let job = Job { name: "bounded", lines: 400 };
    let priced = json!({"name": "priced"});
    shared
        .begin(job, json!({"providerRef": priced, "model": "simulated", "budget": {"tokens": TOKENS}}))
        .await;
    shared.reason(job.name, "CostCapReached").await;
    let status = shared.status(job.name).await;
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("of 5,000 tokens") && message.contains("`spec.cancel`"), "{message}");
    let requests = shared.asked(job.name).await.requests();
    assert!(requests > 0 && requests < job.lines, "{requests} of {} lines were asked", job.lines);

    shared.lose_pod(job.name).await;
    shared.epoch(job.name, 2).await;
    shared.reason(job.name, "CostCapReached").await;
    assert_eq!(shared.asked(job.name).await.requests(), requests, "another pod sends nothing either");

    shared.change(job.name, json!({"cancel": true})).await;
    shared.state(job.name, "Cancelled").await;
    let testimony = shared.conserved(job, "cancelled").await;
    assert_eq!(testimony.requests(), requests);
    let cost = shared.status(job.name).await["cost"].as_str().unwrap().to_owned();
    let wide = ["get", "batchjobs", "--output=wide"];
    let shown = shared.namespace.kubectl(wide).run().await.unwrap();
    assert!(cost.ends_with(" EUR") && shown.contains("COST") && shown.contains(&cost), "{cost}\n{shown}");
    format!("{requests} of {} lines for {TOKENS} tokens, {cost}", job.lines)
}
