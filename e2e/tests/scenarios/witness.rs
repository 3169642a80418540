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
    assert_eq!(ids(doubles, "results_final.jsonl").await, (0..lines as u64).collect());
    assert_eq!(doubles.published("errors.jsonl").await, None);
    let receipt = receipt(doubles, "completed").await;
    assert_eq!(receipt["outcomes"]["succeeded"], lines, "{receipt:#}");
    published_once(namespace, &["results_final.jsonl", "receipt.json"]).await;
    verified(namespace).await;
    testimony
}

/// The same for a job that was cancelled: every line has one record, and those that were answered have their answer.
pub(crate) async fn conserved_when_cancelled(
    namespace: &Namespace,
    doubles: &Doubles,
    lines: usize,
) -> Testimony {
    let testimony = Testimony::of_provider(namespace).await;
    let (succeeded, undone) = (ids(doubles, "results_final.jsonl").await, ids(doubles, "errors.jsonl").await);
    assert_eq!(succeeded.union(&undone).copied().collect::<BTreeSet<_>>(), (0..lines as u64).collect());
    assert_eq!(succeeded.len() + undone.len(), lines, "no line has two records");
    let receipt = receipt(doubles, "cancelled").await;
    assert_eq!(receipt["outcomes"]["succeeded"], succeeded.len(), "{receipt:#}");
    assert_eq!(receipt["outcomes"]["cancelled"], undone.len(), "{receipt:#}");
    assert_eq!(testimony.answered.len(), succeeded.len(), "what was answered is published");
    published_once(namespace, &["results_final.jsonl", "errors.jsonl", "receipt.json"]).await;
    verified(namespace).await;
    testimony
}

/// The ids of the records of a published file, each of which stands there once.
async fn ids(doubles: &Doubles, name: &str) -> BTreeSet<u64> {
    let content = doubles.published(name).await.unwrap_or_else(|| panic!("{name} is published"));
    let mut ids = BTreeSet::new();
    for line in content.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let id = record["prompt_id"].as_u64().unwrap();
        assert!(ids.insert(id), "line {id} has two records in {name}");
    }
    ids
}

async fn receipt(doubles: &Doubles, ending: &str) -> Value {
    let receipt = doubles.published("receipt.json").await.expect("a receipt is there");
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["ending"], ending, "{receipt:#}");
    receipt
}

/// No published object was written over.
async fn published_once(namespace: &Namespace, names: &[&str]) {
    let writes = log(namespace, "deployment/storage").await;
    for name in names {
        let object = format!("out/{name}");
        let made = |entry: &&Value| {
            let operation = entry["operation"].as_str();
            entry["object"] == *object
                && entry["applied"] == true
                && matches!(operation, Some("write" | "compose"))
        };
        assert_eq!(writes.iter().filter(made).count(), 1, "{name} was written once");
    }
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
