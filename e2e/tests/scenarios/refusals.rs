//! What a BatchJob refers to is missing, wrong or changes: its Provider, the Secret, its input, its output. It says so, and
//! goes on by itself when that is mended.

use serde_json::json;

use crate::{
    place::{MANY, Namespace},
    shared::{Job, Shared},
};

/// What the doubled provider takes for a key.
const KEY: &str = "right";

pub(crate) async fn providers(namespace: Namespace) -> String {
    let shared = Shared::start(namespace, json!({"api_keys": [KEY]}), json!([])).await;
    secret(&shared, "good", KEY).await;
    secret(&shared, "bad", "wrong").await;
    for (name, secret) in [("leaves", "good"), ("returns", "good"), ("refused", "bad"), ("keyless", "later")]
    {
        provide(&shared, name, secret).await;
    }
    let job = |name, lines| Job { name, lines };
    let [leaves, returns, refused, keyless, without] =
        [job("leaves", MANY), job("returns", 20), job("refused", 20), job("keyless", 20), job("without", 20)];
    for job in [refused, keyless, without] {
        shared.begin(job, json!({"providerRef": {"name": job.name}})).await;
    }
    shared.reason(keyless.name, "Misconfigured").await;
    secret(&shared, "later", KEY).await;
    shared.reason(without.name, "Misconfigured").await;
    provide(&shared, without.name, "good").await;
    shared.reason(refused.name, "CredentialsRefused").await;
    secret(&shared, "bad", KEY).await;
    gone_in_mid_run(&shared, leaves).await;
    gone_before_the_start(&shared, returns).await;
    for job in [refused, keyless, without, leaves, returns] {
        shared.succeeds(job.name).await;
        let testimony = shared.conserved(job, "completed").await;
        assert_eq!(testimony.answered_again(), 0, "{}: no answer is asked for again", job.name);
    }
    "a key that was wrong, a Secret and a Provider that came late, 2 Providers that went".to_owned()
}

/// A job takes what its Provider said when its executor was made. Its next pod does, too.
async fn gone_in_mid_run(shared: &Shared, job: Job<'_>) {
    shared.begin(job, json!({"providerRef": {"name": job.name}})).await;
    shared.answered(job.name, job.lines / 20).await;
    remove_provider(shared, job.name).await;
    shared.lose_pod(job.name).await;
    assert!(shared.asked(job.name).await.requests() < job.lines, "{} is met in mid-run", job.name);
}

async fn gone_before_the_start(shared: &Shared, job: Job<'_>) {
    shared.begin(job, json!({"providerRef": {"name": job.name}, "suspend": true})).await;
    shared.reason(job.name, "Suspended").await;
    remove_provider(shared, job.name).await;
    shared.change(job.name, json!({"suspend": false})).await;
    shared.reason(job.name, "Misconfigured").await;
    provide(shared, job.name, "good").await;
}

async fn provide(shared: &Shared, name: &str, secret: &str) {
    shared.provide(name, json!({"apiKeySecretRef": {"name": secret}})).await;
}

async fn remove_provider(shared: &Shared, name: &str) {
    shared.namespace.kubectl(["delete", "provider", name]).run().await.unwrap();
}

/// Makes a Secret with a key for the provider, or puts another key into it.
async fn secret(shared: &Shared, name: &str, key: &str) {
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"api-key": key},
    });
    shared.namespace.apply_text(manifest.to_string()).await;
}

pub(crate) async fn buckets(namespace: Namespace) -> String {
    let refuse = |operations: &[&str], object: &str, times: u32| {
        let fault = json!({"error_before": {"status": 403}});
        json!({"fault": fault, "operations": operations, "object": object, "calls": {"first": times}})
    };
    let writing = ["write", "start_upload"];
    let faults = json!([
        refuse(&writing, "unvalidated/*", 2),
        refuse(&writing, "unclaimed/state.json", 1),
        refuse(&writing, "unstored/parts/*", 4),
    ]);
    let shared = Shared::start(namespace, json!({}), faults).await;
    let job = |name, lines| Job { name, lines };
    let [queued, running] = [job("queued", 20), job("running", MANY)];
    let unwritable = [job("unvalidated", 20), job("unclaimed", 20), job("unstored", 20)];
    for job in unwritable {
        shared.begin(job, json!({})).await;
    }
    shared.begin(running, json!({})).await;
    shared.begin(queued, json!({"suspend": true})).await;
    shared.reason("unstored", "StorageRefused").await;
    replaced_before_the_start(&shared, queued).await;
    replaced_in_mid_run(&shared, running).await;
    shared.reason("unvalidated", "Misconfigured").await;
    for job in unwritable {
        shared.succeeds(job.name).await;
        let testimony = shared.conserved(job, "completed").await;
        assert_eq!(testimony.requests(), job.lines, "{}: nothing is asked twice", job.name);
    }
    "an output that could not be written at first, in 3 places; an input that was replaced, at 2 moments"
        .to_owned()
}

async fn replaced_before_the_start(shared: &Shared, job: Job<'_>) {
    shared.reason(job.name, "Suspended").await;
    shared.lay_text(job.name, &other(job).prompts()).await;
    shared.change(job.name, json!({"suspend": false})).await;
    modified(shared, job).await;
    assert_eq!(shared.asked(job.name).await.requests(), 0, "what was validated is gone");
}

/// The pod has read ahead; the next one finds that what it would read is gone.
async fn replaced_in_mid_run(shared: &Shared, job: Job<'_>) {
    shared.answered(job.name, job.lines / 20).await;
    shared.lay_text(job.name, &other(job).prompts()).await;
    shared.lose_pod(job.name).await;
    modified(shared, job).await;
}

/// The input of a job as somebody else writes it.
fn other(job: Job<'_>) -> Job<'_> {
    Job { name: "replaced", ..job }
}

/// It ends, says what to do, and has asked no line of the other file.
async fn modified(shared: &Shared, job: Job<'_>) {
    shared.fails(job.name, "InputModified", "another name and another output").await;
    shared.conserved(job, "failed").await;
    assert_eq!(shared.asked(other(job).name).await.requests(), 0, "no line of the other file is asked");
}
