//! What must hold after every scenario, from the logs of the doubles and from what was published.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::{
    doubles::Doubles,
    place::{Namespace, PATIENCE},
};

/// What the provider saw of each prompt.
#[derive(Debug, Default)]
pub(crate) struct Testimony {
    asked: BTreeMap<String, usize>,
    answered: BTreeMap<String, usize>,
}

impl Testimony {
    /// From the provider's log.
    pub(crate) async fn of_provider(namespace: &Namespace) -> Self {
        let mut testimony = Self::default();
        let mut prompts = HashMap::new();
        for event in log(namespace, "deployment/provider").await {
            let sequence = event["sequence"].as_u64().unwrap();
            match event["event"].as_str() {
                Some("received") => {
                    let prompt = event["prompt"].as_str().unwrap().to_owned();
                    *testimony.asked.entry(prompt.clone()).or_default() += 1;
                    prompts.insert(sequence, prompt);
                }
                Some("answered") if event["status"] == 200 && event["client_closed"] == false => {
                    *testimony.answered.entry(prompts[&sequence].clone()).or_default() += 1;
                }
                _ => {}
            }
        }
        testimony
    }

    /// How many requests were answered.
    pub(crate) fn answers(&self) -> usize {
        self.answered.values().sum()
    }

    /// How many requests were made.
    pub(crate) fn requests(&self) -> usize {
        self.asked.values().sum()
    }

    /// How many answers a prompt had already when it was answered again.
    pub(crate) fn answered_again(&self) -> usize {
        self.answers() - self.answered.len()
    }
}

/// Checks that each of so many lines was asked and has exactly one record, that what was published was written once, and
/// that the receipt says so; what the provider saw.
pub(crate) async fn conserved(namespace: &Namespace, doubles: &Doubles, lines: usize) -> Testimony {
    let testimony = Testimony::of_provider(namespace).await;
    assert_eq!(testimony.answered.len(), lines, "each line was answered");

    let results = doubles.published("results_final.jsonl").await.expect("results are published");
    let mut ids = BTreeSet::new();
    for line in results.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let id = record["prompt_id"].as_u64().unwrap();
        assert!(ids.insert(id), "line {id} has two records");
    }
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), (0..lines as u64).collect::<Vec<_>>());
    assert_eq!(doubles.published("errors.jsonl").await, None);

    let receipt = doubles.published("receipt.json").await.expect("a receipt is there");
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["ending"], "completed", "{receipt:#}");
    assert_eq!(receipt["outcomes"]["succeeded"], lines, "{receipt:#}");

    let writes = log(namespace, "deployment/storage").await;
    for name in ["out/results_final.jsonl", "out/receipt.json"] {
        let made = |entry: &&Value| {
            let operation = entry["operation"].as_str();
            entry["object"] == name
                && entry["applied"] == true
                && matches!(operation, Some("write" | "compose"))
        };
        assert_eq!(writes.iter().filter(made).count(), 1, "{name} was written once");
    }
    verified(namespace).await;
    testimony
}

/// Lets Penstock derive the receipt again, from the bucket alone.
async fn verified(namespace: &Namespace) {
    namespace.apply("verify.yaml").await;
    let wait = ["wait", "--for=condition=Complete", "--timeout=110s", "job/verify"];
    namespace.kubectl(wait).within(PATIENCE).run().await.unwrap();
}

/// The JSON lines that a double wrote.
async fn log(namespace: &Namespace, of: &str) -> Vec<Value> {
    let told = namespace.kubectl(["logs", of]).run().await.unwrap();
    // The address comes first, and the last line may still be written.
    told.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}
