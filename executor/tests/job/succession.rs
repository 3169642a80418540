//! Executors that follow or overlap one another.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use penstock_executor::{At, Finished, Moment, Probe, RunError, Steps, Stop};
use penstock_job::{State, Step, document};
use penstock_simulator::Distribution;
use penstock_storage::{ObjectName, Store};

use crate::scenario::{Scenario, quick, run_within};

#[tokio::test]
async fn of_two_executors_the_newcomer_wins_and_the_older_changes_nothing() {
    let mut scenario = Scenario::prompts(400).await;
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(20.0);
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.max_in_flight = 8.try_into().ok();
    scenario.spec.limits.checkpoint_seconds = 1.try_into().unwrap();
    scenario.validate().await;
    let older = tokio::spawn(run_within(scenario.job().await, Stop::new()));
    while scenario.server.requests().succeeded < 20 {
        tokio::task::yield_now().await;
    }
    // Another machine: a scratch folder of its own.
    let mut newcomer = scenario.job().await;
    newcomer.scratch = scenario.folder.path().join("another scratch");
    let newer = tokio::spawn(run_within(newcomer, Stop::new()));
    assert!(matches!(older.await.unwrap(), Err(RunError::ClaimLost)));
    assert!(matches!(newer.await.unwrap().unwrap(), Finished::Published { .. }));
    scenario.published().await.assert_completed();
}

#[tokio::test(start_paused = true)]
async fn who_learns_at_the_ending_that_the_claim_is_lost_awaits_no_answer() {
    const WINDOW: Duration = Duration::from_secs(10);
    // While a blocking task runs, paused time passes only where the test says so.
    let (still, until_moving) = std::sync::mpsc::channel::<()>();
    let standing = tokio::task::spawn_blocking(move || until_moving.recv());
    let mut scenario = Scenario::prompts(2).await;
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(600_000.0);
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.deadline_seconds = WINDOW.as_secs().try_into().ok();
    // No checkpoint learns it first.
    scenario.spec.limits.checkpoint_seconds = 1_000.try_into().unwrap();
    scenario.validate().await;
    let older = tokio::spawn(run_within(scenario.job().await, Stop::new()));
    while scenario.server.requests().received < 2 {
        tokio::task::yield_now().await;
    }
    let mut newcomer = scenario.job().await;
    newcomer.scratch = scenario.folder.path().join("another scratch");
    newcomer.spec.limits.deadline_seconds = None;
    let newer = tokio::spawn(run_within(newcomer, Stop::new()));
    while scenario.state().await.epoch.0 < 2 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(WINDOW).await;
    drop(still);
    assert!(standing.await.unwrap().is_err());
    let ended = tokio::time::timeout(Duration::from_secs(20), older).await.expect("it awaits its answers");
    assert!(matches!(ended.unwrap(), Err(RunError::ClaimLost)));
    newer.abort();
    let _ = newer.await;
}

#[tokio::test]
async fn parts_that_no_checkpoint_lists_are_adopted_and_their_lines_not_sent_again() {
    let scenario = Scenario::prompts(2_000).await;
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    while !scenario.names().await.iter().any(|name| name.starts_with("parts/")) {
        tokio::task::yield_now().await;
    }
    // A killed process: nothing of it runs on.
    running.abort();
    let _ = running.await;
    let listed = scenario.state().await.parts.len();
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert!(published.receipt.parts.count > listed as u64);
    assert_eq!(published.receipt.epochs.0, 2);
    assert_eq!(scenario.requests().len(), 2_000);
}

#[tokio::test]
async fn a_state_of_another_version_is_refused_by_name_and_left_alone() {
    let scenario = Scenario::prompts(3).await;
    scenario.validate().await;
    let name = penstock_storage::ObjectName::from_static("state.json");
    let foreign = bytes::Bytes::from_static(br#"{"format":"penstock.state/2","surprise":1}"#);
    scenario.store.create(&name, foreign.clone()).await.unwrap();
    let error = scenario.run().await.unwrap_err().to_string();
    assert!(error.contains("penstock.state/2") && error.contains("penstock.state/1"), "{error}");
    assert_eq!(scenario.object("state.json").await.unwrap(), foreign);
    assert!(scenario.requests().is_empty());
}

#[tokio::test]
async fn published_files_without_a_state_are_not_built_upon() {
    let scenario = Scenario::prompts(3).await;
    scenario.validate().await;
    let name = penstock_storage::ObjectName::from_static("results_final.jsonl");
    scenario.store.create(&name, bytes::Bytes::from_static(b"{}\n")).await.unwrap();
    let error = scenario.run().await.unwrap_err();
    assert!(matches!(&error, RunError::Unexplained { name } if name == "results_final.jsonl"), "{error}");
}

#[tokio::test]
async fn two_finalisers_of_one_frozen_job_publish_the_same() {
    let scenario = Scenario::prompts(50).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let receipt = scenario.published().await.receipt;
    // Taken away as if the first finaliser had died before it wrote the receipt.
    let name = penstock_storage::ObjectName::from_static("receipt.json");
    let meta = scenario.store.head(&name).await.unwrap().unwrap();
    scenario.store.delete(&name, &meta.generation).await.unwrap();
    let first = tokio::spawn(run_within(scenario.job().await, Stop::new()));
    let second = tokio::spawn(run_within(scenario.job().await, Stop::new()));
    let ends = [first.await.unwrap(), second.await.unwrap()];
    assert!(ends.iter().any(|end| matches!(end, Ok(Finished::Published { .. }))), "{ends:?}");
    assert!(ends.iter().all(|end| matches!(end, Ok(_) | Err(RunError::ClaimLost))), "{ends:?}");
    let again = scenario.published().await.receipt;
    assert_eq!((again.decision, again.outputs), (receipt.decision, receipt.outputs));
    drop(Arc::clone(&scenario.store));
}

/// Holds a claim back, the first time, until somebody else has written the state.
#[derive(Debug)]
struct AwaitsWrite {
    store: Arc<dyn Store>,
    written: u64,
    has_waited: AtomicBool,
}

impl Probe for AwaitsWrite {
    fn at(&self, at: At<'_>) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        if at.step != Step::Look || at.moment != Moment::After || self.has_waited.swap(true, Relaxed) {
            return None;
        }
        let (store, written) = (Arc::clone(&self.store), self.written);
        Some(Box::pin(async move {
            let name = ObjectName::from_static("state.json");
            let write = async || {
                let (_, state) = store.get(&name, 1 << 20).await.unwrap().unwrap();
                document::read::<State>(&state).unwrap().write
            };
            while write().await <= written {
                tokio::task::yield_now().await;
            }
        }))
    }
}

#[tokio::test]
async fn a_claim_that_meets_the_checkpoint_of_a_living_run_is_made_again() {
    let mut scenario = Scenario::prompts(200).await;
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(60.0);
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.max_in_flight = 2.try_into().ok();
    scenario.spec.limits.checkpoint_seconds = 1.try_into().unwrap();
    scenario.validate().await;
    let older = tokio::spawn(run_within(scenario.job().await, Stop::new()));
    while scenario.object("state.json").await.is_none() || scenario.state().await.write < 2 {
        tokio::task::yield_now().await;
    }
    let mut newcomer = scenario.job().await;
    newcomer.scratch = scenario.folder.path().join("another scratch");
    let awaits = AwaitsWrite {
        store: Arc::clone(&scenario.store),
        written: scenario.state().await.write,
        has_waited: AtomicBool::new(false),
    };
    newcomer.steps = Steps::seen_by(Arc::new(awaits));
    let newer = tokio::spawn(run_within(newcomer, Stop::new()));
    assert!(matches!(older.await.unwrap(), Err(RunError::ClaimLost)));
    assert!(matches!(newer.await.unwrap().unwrap(), Finished::Published { .. }));
    let published = scenario.published().await;
    published.assert_completed();
    assert_eq!(published.receipt.epochs.0, 2);
}
