//! What the operator takes to see one job among many in its caches, to decide, and to find what to say: in this process,
//! since that is a pure function.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;
use kube::{
    Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::{
        reflector::{self, Store},
        watcher::Event,
    },
};
use penstock_crds::{BatchJob, resolve::resolve, state::State};
use penstock_operator::{
    caches::Caches,
    decide::decide,
    observe::{IntakeSeen, Observed},
    status::status,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::LINES;
use crate::{
    row::{Bound, Row, Unit, grouped},
    spread::{Spread, number},
    workplace::Workplace,
};

/// One in so many may take longer.
const RANK: usize = 100;

pub(super) fn measure(place: &Workplace) -> Row {
    let (finished, running) = (place.sizes.finished_jobs, place.sizes.running_jobs);
    let caches = caches(finished, running);
    let figure = Spread::of((0..place.sizes.rounds).map(|_| round(&caches)));
    Row {
        measure: "one job seen and decided, the 99th percentile".to_owned(),
        floor: Bound::AtMost(1_000.0),
        aim: Some(Bound::AtMost(200.0)),
        unit: Unit::Microseconds,
        figure,
        judged: figure.median,
        details: vec![format!(
            "caches, job file, decision and status, among {} finished and {} running jobs; each looked at once a round",
            grouped(number(finished)),
            grouped(number(running))
        )],
        commands: Vec::new(),
    }
}

/// Microseconds that all but one pass in a hundred stay below.
fn round(caches: &Caches) -> f64 {
    let jobs: Vec<_> = caches.batch_jobs.state();
    let mut took: Vec<_> =
        jobs.iter().filter_map(|job| job.0.as_ref().ok()).map(|job| pass(caches, job)).collect();
    took.sort_unstable();
    took[took.len() - 1 - took.len() / RANK].as_secs_f64() * 1e6
}

fn pass(caches: &Caches, batch_job: &BatchJob) -> Duration {
    let batch_job = Arc::new(batch_job.clone());
    let began = Instant::now();
    let jobs = caches.jobs_of(&batch_job);
    let resolved = caches.provider_of(&batch_job).map(|provider| resolve(&batch_job, &provider));
    let seen = Observed {
        now: Timestamp::now(),
        problem: resolved.and_then(Result::err).map(|error| error.to_string()),
        intake: IntakeSeen::None,
        heard: None,
        rival: caches.rival_of(&batch_job, &jobs),
        jobs,
        batch_job,
    };
    let decision = decide(&seen);
    black_box(decision.finding.as_ref().map(|finding| status(&seen.batch_job, finding, seen.now)));
    began.elapsed()
}

fn caches(finished: u64, running: u64) -> Caches {
    let jobs: Vec<_> = (0..finished + running).map(|number| Objects::of(number, number < finished)).collect();
    let provider = json!({
        "metadata": {"name": "gateway", "namespace": "team", "uid": "provider"},
        "spec": {"kind": "OpenAICompatible", "baseUrl": "http://gateway.invalid/v1"},
    });
    Caches::new(
        holding(jobs.iter().map(|objects| &objects.batch_job)),
        holding([&provider]),
        holding(jobs.iter().map(|objects| &objects.job)),
        holding(jobs.iter().map(|objects| &objects.pod)),
    )
}

fn holding<'a, K>(objects: impl IntoIterator<Item = &'a Value>) -> Store<DeserializeGuard<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    for object in objects {
        let object: DeserializeGuard<K> =
            serde_json::from_value(object.clone()).expect("invariant: a guard reads any object");
        assert!(object.0.is_ok(), "invariant: {} can be read", object.name_any());
        writer.apply_watcher_event(&Event::Apply(object));
    }
    store
}

/// What there is of one job.
struct Objects {
    batch_job: Value,
    job: Value,
    pod: Value,
}

impl Objects {
    fn of(number: u64, is_over: bool) -> Self {
        let name = format!("nightly-{number:04}");
        let state = if is_over { State::Completed } else { State::Running };
        let labels = json!({
            "app.kubernetes.io/managed-by": "penstock-operator",
            "penstock.dev/batch-job": name,
        });
        let metadata = |uid: &str, owner: &str, owner_uid: &str| {
            json!({
                "name": name, "namespace": "team", "uid": format!("{uid}-{number}"), "labels": labels,
                "creationTimestamp": "2026-01-01T12:00:00Z",
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": owner, "name": name, "controller": true,
                    "uid": format!("{owner_uid}-{number}"),
                }],
            })
        };
        let ended = json!([{"type": "Complete", "status": "True"}]);
        Self {
            batch_job: json!({
                "metadata": {
                    "name": name, "namespace": "team", "uid": format!("batch-job-{number}"), "generation": 1,
                    "creationTimestamp": "2026-01-01T12:00:00Z",
                },
                "spec": {
                    "input": {"uri": "gs://bucket/in.jsonl"},
                    "output": {"uri": format!("gs://bucket/out/{name}")},
                    "providerRef": {"name": "gateway"},
                    "model": "m",
                },
                "status": {
                    "state": state,
                    "identity": "0123456789abcdef".repeat(4),
                    "startTime": "2026-01-01T12:00:00Z",
                    "completionTime": is_over.then_some("2026-01-01T13:00:00Z"),
                    "validation": {"generation": "7", "lines": LINES, "rejected": 0},
                },
            }),
            job: json!({
                "metadata": metadata("job", "BatchJob", "batch-job"),
                "status": {"conditions": if is_over { ended } else { json!([]) }},
            }),
            pod: json!({
                "metadata": metadata("pod", "Job", "job"),
                "status": {
                    "phase": if is_over { "Succeeded" } else { "Running" },
                    "containerStatuses": [{
                        "name": "penstock", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                        "state": if is_over {
                            json!({"terminated": {"exitCode": 0}})
                        } else {
                            json!({"running": {"startedAt": "2026-01-01T12:00:00Z"}})
                        },
                    }],
                },
            }),
        }
    }
}
