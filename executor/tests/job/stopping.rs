//! Being told to stop while something does not come to an end: a store that refuses, an answer that is awaited.
//!
//! Whatever it is, the run leaves in time and keeps what it has paid for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use penstock_executor::{Finished, Stop};
use penstock_simulator::Distribution;
use penstock_storage::{
    Action, MemoryStore, ObjectName,
    faults::{Call, Fault, FaultyStore},
};

use crate::scenario::{Scenario, quick, run_within};

/// Well below the ten seconds after which a refused write is tried again.
const SOON: Duration = Duration::from_secs(5);
/// How long answers are awaited in these tests.
const DRAIN: Duration = Duration::from_millis(800);

/// A switch that makes a store refuse writes, and a count of those that it refused.
#[derive(Debug, Default)]
struct Refusal {
    on: AtomicBool,
    refused: AtomicU64,
}

impl Refusal {
    /// A store over `memory` that refuses the writes of `which` while the switch is on.
    fn over(
        self: &Arc<Self>,
        memory: MemoryStore,
        which: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static,
    ) -> Arc<FaultyStore<MemoryStore>> {
        let refusal = Arc::clone(self);
        Arc::new(FaultyStore::new(memory, move |call| {
            let writes = matches!(call.action, Action::Create | Action::Replace);
            let refuse = writes && refusal.on.load(Relaxed) && which(call);
            refuse.then(|| {
                refusal.refused.fetch_add(1, Relaxed);
                Fault::Refused
            })
        }))
    }

    async fn seen(&self) {
        while self.refused.load(Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn slow(milliseconds: f64) -> penstock_simulator::ProviderSettings {
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(milliseconds);
    settings
}

async fn over_memory(count: u32) -> (Scenario, MemoryStore) {
    let memory = MemoryStore::new();
    let mut scenario = Scenario::prompts(count).await;
    scenario.store = Arc::new(memory.clone());
    (scenario, memory)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_store_refuses_leaves_in_time_and_no_answered_line_is_sent_again() {
    let (mut scenario, memory) = over_memory(60).await;
    scenario.server.update(slow(300.0)).unwrap();
    scenario.spec.limits.max_in_flight = 8.try_into().ok();
    scenario.spec.limits.checkpoint_seconds = 1.try_into().unwrap();
    scenario.validate().await;
    let refusal = Arc::new(Refusal::default());
    let store = refusal.over(memory, |_| true);
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job_over(store).await, stop.clone()));
    while scenario.server.requests().succeeded < 8 {
        tokio::task::yield_now().await;
    }
    refusal.on.store(true, Relaxed);
    // From here on a checkpoint or a part is under way that the store does not take.
    refusal.seen().await;
    let asked = Instant::now();
    stop.request_with(DRAIN);
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    assert!(asked.elapsed() < SOON, "left after {:?}", asked.elapsed());

    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(scenario.requests().values().copied().max(), Some(1), "answers of the drain are in scratch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_an_expired_job_awaits_its_answers_leaves_in_time() {
    let (mut scenario, _) = over_memory(20).await;
    scenario.server.update(slow(30_000.0)).unwrap();
    scenario.spec.limits.deadline_seconds = 1.try_into().ok();
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    while scenario.object("state.json").await.is_none() || scenario.state().await.ending.is_none() {
        tokio::task::yield_now().await;
    }
    let asked = Instant::now();
    stop.request_with(Duration::from_millis(100));
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    assert!(asked.elapsed() < SOON, "left after {:?}", asked.elapsed());

    scenario.run().await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.expired, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_decision_cannot_be_stored_leaves_in_time() {
    let (scenario, memory) = over_memory(30).await;
    scenario.validate().await;
    let refusal = Arc::new(Refusal::default());
    refusal.on.store(true, Relaxed);
    // The first claim creates the state, and so short a job has no checkpoint before it is decided.
    let store = refusal.over(memory, |call| call.object == "state.json" && call.action == Action::Replace);
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job_over(store).await, stop.clone()));
    refusal.seen().await;
    let asked = Instant::now();
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    assert!(asked.elapsed() < SOON, "left after {:?}", asked.elapsed());

    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(scenario.requests().values().copied().max(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_recovered_answers_cannot_be_stored_loses_none_of_them() {
    let (mut scenario, _) = over_memory(4_000).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    // As if a killed run had left every answer in scratch, and somebody had deleted its output.
    let answers = scenario.object("results_final.jsonl").await.unwrap();
    std::fs::create_dir_all(scenario.scratch()).unwrap();
    std::fs::write(scenario.scratch().join("00000001-00000001-r.jsonl"), answers).unwrap();
    let memory = MemoryStore::new();
    scenario.store = Arc::new(memory.clone());
    scenario.validate().await;

    let refusal = Arc::new(Refusal::default());
    refusal.on.store(true, Relaxed);
    let store = refusal.over(memory, |call| call.object.starts_with("parts/"));
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job_over(store).await, stop.clone()));
    refusal.seen().await;
    let asked = Instant::now();
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    assert!(asked.elapsed() < SOON, "left after {:?}", asked.elapsed());

    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(scenario.requests().values().sum::<usize>(), 4_000, "no answer is paid for twice");
}

#[tokio::test]
async fn a_job_whose_window_is_over_when_it_resumes_sends_nothing() {
    let (mut scenario, _) = over_memory(50).await;
    scenario.server.update(slow(20.0)).unwrap();
    scenario.spec.limits.max_in_flight = 2.try_into().ok();
    scenario.spec.limits.deadline_seconds = 3_600.try_into().ok();
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    while scenario.server.requests().succeeded < 5 {
        tokio::task::yield_now().await;
    }
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    let sent = scenario.requests().len();
    let mut state = scenario.state().await;
    state.created_at_ms = 0;
    let name = ObjectName::from_static("state.json");
    let generation = scenario.store.head(&name).await.unwrap().unwrap().generation;
    let content = penstock_job::document::write(&state).into();
    scenario.store.replace(&name, content, &generation).await.unwrap();

    scenario.run().await.unwrap();
    assert_eq!(scenario.requests().len(), sent);
    let outcomes = scenario.published().await.receipt.outcomes;
    assert_eq!((outcomes.succeeded, outcomes.expired), (sent as u64, 50 - sent as u64));
}
