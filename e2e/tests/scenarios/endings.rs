//! BatchJobs that end before every line was answered: cancelled in each state, and at the end of their window.

use serde_json::json;

use crate::{
    place::Namespace,
    shared::{Job, Shared},
};

/// More lines than can be answered within the window, at 40 of them in a second.
const FOR_LONG: usize = 4000;

pub(crate) async fn every_ending(namespace: Namespace) -> String {
    let faults = json!([
        // Whoever validates this input never reads a line of it.
        {"fault": "stall_before", "operations": ["read"], "object": "validating.jsonl"},
        // Whoever publishes these results has to wait for the bucket.
        {"fault": "stall_before", "object": "finalizing/results_final.jsonl", "calls": {"first": 3}},
    ]);
    let shared = Shared::start(namespace, json!({}), faults).await;
    let window = Job { name: "window", lines: FOR_LONG };
    shared.begin(window, json!({"completionWindowSeconds": 30})).await;
    before_anything_is_sent(&shared).await;
    while_queued(&shared).await;
    while_finalizing(&shared).await;
    shared.state(window.name, "Expired").await;
    let status = shared.status(window.name).await;
    assert_eq!(status["reason"], "CompletionWindowOver", "{status:#}");
    let testimony = shared.conserved(window, "expired").await;
    let answers = testimony.answers();
    assert!(answers > 0 && answers < window.lines, "{answers} of {} lines were answered", window.lines);
    let done = format!("{answers}/{}", window.lines);
    assert_eq!(status["progress"]["done"], done, "what was not run is not done: {status:#}");
    format!("cancelled in 4 states; {answers} of {FOR_LONG} lines in a window of 30 s")
}

/// Nothing was begun, so nothing is published.
async fn before_anything_is_sent(shared: &Shared) {
    let validating = Job { name: "validating", lines: 20 };
    shared.begin(validating, json!({})).await;
    shared.submit("awaited", json!({})).await;
    for (name, state) in [(validating.name, "Validating"), ("awaited", "AwaitingUpload")] {
        shared.state(name, state).await;
        shared.change(name, json!({"cancel": true})).await;
        shared.state(name, "Cancelled").await;
        shared.untouched(name).await;
    }
}

/// A job that has not begun is published without an executor. Its Job for that has the longest name of all.
async fn while_queued(shared: &Shared) {
    let queued = Job { name: "a-job-whose-name-has-as-many-characters-as-names-may", lines: 20 };
    shared.begin(queued, json!({"suspend": true})).await;
    shared.reason(queued.name, "Suspended").await;
    shared.change(queued.name, json!({"cancel": true})).await;
    shared.state(queued.name, "Cancelled").await;
    let testimony = shared.conserved(queued, "cancelled").await;
    assert_eq!(testimony.requests(), 0, "a job that waits asks nothing");
}

/// A cancellation that comes when the outcome is decided changes nothing.
async fn while_finalizing(shared: &Shared) {
    let finalizing = Job { name: "finalizing", lines: 20 };
    shared.begin(finalizing, json!({})).await;
    shared.state(finalizing.name, "Finalizing").await;
    shared.change(finalizing.name, json!({"cancel": true})).await;
    shared.succeeds(finalizing.name).await;
    shared.conserved(finalizing, "completed").await;
}
