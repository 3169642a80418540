//! One namespace with one pair of doubles and one operator for several BatchJobs, each with an input, an output and
//! prompts of its own name.

use std::time::Duration;

use penstock_e2e::layout::repository;
use serde_json::{Value, json};

use crate::{
    doubles::{Doubles, answered_of},
    helm,
    place::{Namespace, PATIENCE},
    witness::{Account, Testimony, conserved_as},
};

/// How long a job may take to get somewhere: lost pods, the kubelet's look at Secrets and waits of minutes included.
const LIMIT: Duration = Duration::from_mins(5);

/// The namespace and what runs in it.
pub(crate) struct Shared {
    pub(crate) namespace: Namespace,
    pub(crate) doubles: Doubles,
}

/// A BatchJob by its name, and how many lines its input has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) name: &'a str,
    pub(crate) lines: usize,
}

impl Job<'_> {
    /// Its lines, in the format of prompts.
    pub(crate) fn prompts(self) -> String {
        self.each(|id, prompt| json!({"prompt_id": id, "prompt": prompt}))
    }

    /// Its lines, in the format of OpenAI's Batch API.
    pub(crate) fn requests(self) -> String {
        self.each(|id, prompt| {
            let body = json!({"model": "gpt-5.4-mini", "messages": [{"role": "user", "content": prompt}]});
            json!({"custom_id": id.to_string(), "method": "POST", "url": "/v1/chat/completions", "body": body})
        })
    }

    fn each(self, line: impl Fn(usize, String) -> Value) -> String {
        let lines = (0..self.lines).map(|id| line(id, format!("{}{id}", self.beginning())).to_string());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What its prompts begin with, and those of no other job.
    fn beginning(self) -> String {
        format!("{} line ", self.name)
    }
}

impl Shared {
    /// Starts the doubles, with these settings and faults, and the operator.
    pub(crate) async fn start(namespace: Namespace, provider: Value, faults: Value) -> Self {
        let doubles = Doubles::with(&namespace, &provider, &faults).await;
        install_operator(&namespace).await;
        let shared = Self { namespace, doubles };
        shared.provide("double", json!({})).await;
        shared
    }

    /// Makes a Provider that leads to the double, with these further fields.
    pub(crate) async fn provide(&self, name: &str, more: Value) {
        let spec = over(json!({"kind": "Simulated", "baseUrl": "http://provider:8000"}), more);
        self.apply("Provider", name, &spec).await;
    }

    /// Lays the input of a job, in the format of prompts.
    pub(crate) async fn lay(&self, job: Job<'_>) {
        self.lay_text(job.name, &job.prompts()).await;
    }

    /// Lays any input for the job of this name.
    pub(crate) async fn lay_text(&self, name: &str, text: &str) {
        self.doubles.lay(&format!("{name}.jsonl"), text.as_bytes()).await;
    }

    /// Applies a BatchJob, with these further fields of its spec, or others.
    pub(crate) async fn submit(&self, name: &str, more: Value) {
        let spec = json!({
            "input": {"uri": format!("gs://ours/{name}.jsonl")},
            "output": {"uri": format!("gs://ours/{name}")},
            "providerRef": {"name": "double"},
            "rate": {"mode": "Fixed", "maxInFlight": 4},
        });
        self.apply("BatchJob", name, &over(spec, more)).await;
    }

    /// Lays the input of a job and applies it.
    pub(crate) async fn begin(&self, job: Job<'_>, more: Value) {
        self.lay(job).await;
        self.submit(job.name, more).await;
    }

    async fn apply(&self, kind: &str, name: &str, spec: &Value) {
        let manifest = json!({
            "apiVersion": "penstock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.namespace.apply_text(manifest.to_string()).await;
    }

    /// Changes fields of the spec of a BatchJob.
    pub(crate) async fn change(&self, name: &str, spec: Value) {
        let (object, patch) = (format!("batchjob/{name}"), json!({"spec": spec}).to_string());
        let change = ["patch", &object, "--type=merge", "--patch", &patch];
        self.namespace.kubectl(change).run().await.unwrap();
    }

    /// Deletes the pod of a BatchJob, and waits until it is gone.
    pub(crate) async fn lose_pod(&self, name: &str) {
        let selector = format!("job-name={name}");
        self.namespace.kubectl(["delete", "pods", "--selector", &selector]).run().await.unwrap();
    }

    /// Waits until a BatchJob is in this state.
    pub(crate) async fn state(&self, name: &str, state: &str) {
        self.wait(name, &format!("jsonpath={{.status.state}}={state}")).await;
    }

    /// Waits until this is the reason why a BatchJob is not further.
    pub(crate) async fn reason(&self, name: &str, reason: &str) {
        self.wait(name, &format!("jsonpath={{.status.reason}}={reason}")).await;
    }

    /// Waits until so many executors have claimed a BatchJob.
    pub(crate) async fn epoch(&self, name: &str, epoch: u32) {
        self.wait(name, &format!("jsonpath={{.status.epoch}}={epoch}")).await;
    }

    /// Waits until a BatchJob is completed, as people do.
    pub(crate) async fn succeeds(&self, name: &str) {
        self.wait(name, "condition=Succeeded").await;
    }

    async fn wait(&self, name: &str, condition: &str) {
        let (object, condition) = (format!("batchjob/{name}"), format!("--for={condition}"));
        let limit = format!("--timeout={}s", LIMIT.as_secs());
        let waited = self.namespace.kubectl(["wait", &object, &condition, &limit]).within(LIMIT + PATIENCE);
        if let Err(error) = waited.run().await {
            panic!("{error}\n{:#}", self.status(name).await);
        }
    }

    /// The status of a BatchJob.
    pub(crate) async fn status(&self, name: &str) -> Value {
        let object = format!("batchjob/{name}");
        let told = self.namespace.kubectl(["get", &object, "--output=jsonpath={.status}"]).run().await;
        serde_json::from_str(&told.unwrap()).unwrap()
    }

    /// Waits until a BatchJob failed for this reason, and checks that its message says as much and what to do.
    pub(crate) async fn fails(&self, name: &str, reason: &str, help: &str) {
        self.state(name, "Failed").await;
        let status = self.status(name).await;
        assert_eq!(status["reason"], reason, "{status:#}");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(help), "{message}");
    }

    /// Waits until the provider has answered so many requests of a job.
    pub(crate) async fn answered(&self, name: &str, least: usize) {
        answered_of(&self.namespace, &Job { name, lines: 0 }.beginning(), least).await;
    }

    /// What the provider saw of a job.
    pub(crate) async fn asked(&self, name: &str) -> Testimony {
        Testimony::of_provider(&self.namespace).await.of(&Job { name, lines: 0 }.beginning())
    }

    /// Checks that nothing was asked for a job and that it published nothing.
    pub(crate) async fn untouched(&self, name: &str) {
        assert_eq!(self.asked(name).await.requests(), 0, "{name} asks nothing");
        for file in ["results_final.jsonl", "errors.jsonl", "receipt.json"] {
            assert_eq!(self.doubles.published(name, file).await, None, "{name} publishes nothing");
        }
    }

    /// Checks that each line of a job that ended so has one record, from the provider's log and what was published.
    pub(crate) async fn conserved(&self, job: Job<'_>, ending: &str) -> Testimony {
        let prompts = job.beginning();
        let account = Account { output: job.name, prompts: &prompts, lines: job.lines };
        conserved_as(ending, &self.namespace, &self.doubles, account).await
    }
}

/// Installs the kinds, and the operator of one namespace.
pub(crate) async fn install_operator(namespace: &Namespace) {
    install_kinds(namespace).await;
    helm::install(namespace, &helm::chart(), &[]).await;
}

/// Installs the kinds, or brings them up to date.
pub(crate) async fn install_kinds(namespace: &Namespace) {
    let kinds = repository().join("crds/yaml");
    let apply = ["apply", "--server-side", "--force-conflicts", "--filename"];
    namespace.cluster.kubectl().arguments(apply).argument(kinds).run().await.unwrap();
}

/// An object with fields set, or set to another value.
fn over(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
