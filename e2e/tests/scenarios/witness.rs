//! What must hold after every scenario, from the logs of the doubles and from what was published.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use serde_json::Value;

use crate::{
    doubles::Doubles,
    place::{Namespace, PATIENCE},
};

/// What the provider saw of each prompt.
#[derive(Debug, Default)]
pub(crate) struct Testimony {
    /// When, since the epoch.
    asked: BTreeMap<String, Vec<Duration>>,
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
                    let at = Duration::from_millis(event["at_ms"].as_u64().unwrap());
                    testimony.asked.entry(prompt.clone()).or_default().push(at);
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

    /// What it saw of the prompts that begin like this.
    pub(crate) fn of(&self, beginning: &str) -> Self {
        fn begins<T: Clone>(prompts: &BTreeMap<String, T>, beginning: &str) -> BTreeMap<String, T> {
            let prompts = prompts.iter().filter(|(prompt, _)| prompt.starts_with(beginning));
            prompts.map(|(prompt, seen)| (prompt.clone(), seen.clone())).collect()
        }
        Self { asked: begins(&self.asked, beginning), answered: begins(&self.answered, beginning) }
    }

    /// How many requests were answered.
    pub(crate) fn answers(&self) -> usize {
        self.answered.values().sum()
    }

    /// How many requests were made.
    pub(crate) fn requests(&self) -> usize {
        self.asked.values().map(Vec::len).sum()
    }

    /// When the first request was made after this moment. Both are since the epoch.
    pub(crate) fn first_after(&self, moment: Duration) -> Option<Duration> {
        self.asked.values().flatten().filter(|at| **at > moment).min().copied()
    }

    /// How many answers a prompt had already when it was answered again.
    pub(crate) fn answered_again(&self) -> usize {
        self.answers() - self.answered.len()
    }
}

/// A job as the witnesses know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    /// The path of its output in the bucket.
    pub(crate) output: &'a str,
    /// What all prompts of its input begin with, and those of no other job.
    pub(crate) prompts: &'a str,
    /// How many lines its input has. Their ids count from 0.
    pub(crate) lines: usize,
}

impl Account<'_> {
    /// The job of the manifests.
    fn of_the_only_job(lines: usize) -> Self {
        Self { output: "out", prompts: "", lines }
    }
}

/// Checks that each of so many lines was asked and has exactly one record, that what was published was written once, and
/// that the receipt says so; what the provider saw.
pub(crate) async fn conserved(namespace: &Namespace, doubles: &Doubles, lines: usize) -> Testimony {
    conserved_as("completed", namespace, doubles, Account::of_the_only_job(lines)).await
}

/// The same for a job that was cancelled: every line has one record, and those that were answered have their answer.
pub(crate) async fn conserved_when_cancelled(
    namespace: &Namespace,
    doubles: &Doubles,
    lines: usize,
) -> Testimony {
    conserved_as("cancelled", namespace, doubles, Account::of_the_only_job(lines)).await
}

/// The same for any job whose lines are all valid: lines that were not answered are recorded as the ending says, or as
/// abandoned where it failed. One that is completed has none.
pub(crate) async fn conserved_as(
    ending: &str,
    namespace: &Namespace,
    doubles: &Doubles,
    account: Account<'_>,
) -> Testimony {
    let Account { output, prompts, lines } = account;
    let testimony = Testimony::of_provider(namespace).await.of(prompts);
    let succeeded = ids(doubles, output, "results_final.jsonl").await;
    let undone = ids(doubles, output, "errors.jsonl").await;
    assert_eq!(succeeded.union(&undone).copied().collect::<BTreeSet<_>>(), (0..lines as u64).collect());
    assert_eq!(succeeded.len() + undone.len(), lines, "no line has two records");
    let receipt = receipt(doubles, output, ending).await;
    let outcome = if ending == "failed" { "abandoned" } else { ending };
    let recorded = if ending == "completed" { 0 } else { undone.len() };
    assert_eq!(undone.len(), recorded, "a line of a completed job is answered");
    assert_eq!(receipt["outcomes"]["succeeded"], succeeded.len(), "{receipt:#}");
    assert_eq!(receipt["outcomes"][outcome].as_u64().unwrap_or_default(), recorded as u64, "{receipt:#}");
    assert_eq!(testimony.answered.len(), succeeded.len(), "what was answered is published");
    let files =
        [("results_final.jsonl", succeeded.len()), ("errors.jsonl", undone.len()), ("receipt.json", 1)];
    let published = files.iter().filter(|(_, records)| *records > 0).map(|(name, _)| *name);
    published_once(namespace, output, published).await;
    verified(namespace, output).await;
    testimony
}

/// The ids of the records of a published file, each of which stands there once; none of a file that is not there.
async fn ids(doubles: &Doubles, output: &str, name: &str) -> BTreeSet<u64> {
    let content = doubles.published(output, name).await.unwrap_or_default();
    let mut ids = BTreeSet::new();
    for line in content.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        // Nobody knows the id of a line whose file is gone; the ids of our lines are their ordinals.
        let [prompt_id, ordinal] = [&record["prompt_id"], &record["ordinal"]].map(Value::as_u64);
        let custom_id = || record["custom_id"].as_str()?.parse().ok();
        let id = prompt_id.or_else(custom_id).or(ordinal).unwrap_or_else(|| panic!("{record} has an id"));
        assert!(ids.insert(id), "line {id} has two records in {output}/{name}");
    }
    ids
}

/// The receipt of a job that ended so.
pub(crate) async fn receipt(doubles: &Doubles, output: &str, ending: &str) -> Value {
    let receipt = doubles.published(output, "receipt.json").await;
    let receipt = receipt.unwrap_or_else(|| panic!("{output} has a receipt"));
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["ending"], ending, "{receipt:#}");
    receipt
}

/// No published object was written over.
async fn published_once<'a>(namespace: &Namespace, output: &str, names: impl Iterator<Item = &'a str>) {
    let writes = log(namespace, "deployment/storage").await;
    for name in names {
        let object = format!("{output}/{name}");
        let made = |entry: &&Value| {
            let operation = entry["operation"].as_str();
            entry["object"] == *object
                && entry["applied"] == true
                && matches!(operation, Some("write" | "compose"))
        };
        assert_eq!(writes.iter().filter(made).count(), 1, "{object} was written once");
    }
}

/// Lets Penstock derive the receipt again, from the bucket alone.
async fn verified(namespace: &Namespace, output: &str) {
    let verify = format!("verify-{output}");
    let manifest = namespace.manifest("verify.yaml");
    let manifest = manifest
        .replace("name: verify\n", &format!("name: {verify}\n"))
        .replace("gs://ours/out", &format!("gs://ours/{output}"));
    namespace.apply_text(manifest).await;
    let job = format!("job/{verify}");
    let wait = ["wait", "--for=condition=Complete", "--timeout=110s", &job];
    namespace.kubectl(wait).within(PATIENCE).run().await.unwrap();
}

/// The JSON lines that a double wrote.
async fn log(namespace: &Namespace, of: &str) -> Vec<Value> {
    let told = namespace.kubectl(["logs", of]).run().await.unwrap();
    // The address comes first, and the last line may still be written.
    told.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}
