//! Jobs that find their rate from the provider's answers, against a double over HTTP.

use std::{sync::Arc, time::Duration};

use penstock_executor::{
    Board, Job, Participation, Stop, learned, run,
    shared_state::{SharedState, StoredState},
};
use penstock_job::spec::{ProviderKind, RateMode};
use penstock_simulator::{Enforcement, LimitSettings, Quota, Slots, WhenFull};
use penstock_storage::{MemoryStore, Store};
use tokio::time::Instant;

use crate::scenario::{Scenario, quick};

/// A job that finds its rate by itself, of so many lines.
async fn adaptive(lines: u32) -> Scenario {
    let mut scenario = Scenario::prompts(lines).await;
    scenario.spec.limits.rate = Some(RateMode::Adaptive);
    scenario
}

/// A limit that no answer states.
fn hidden(per_minute: u64, enforcement: Enforcement) -> LimitSettings {
    LimitSettings { requests: Some(Quota { per_minute, enforcement }), ..LimitSettings::default() }
}

#[tokio::test]
async fn some_hundreds_of_lines_against_a_server_without_limits_end_in_seconds() {
    let scenario = adaptive(300).await;
    scenario.validate().await;
    let began = Instant::now();
    scenario.run().await.unwrap();
    let took = began.elapsed();
    scenario.published().await.assert_completed();
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test]
async fn a_hidden_limit_is_found_within_a_minute_and_kept_to() {
    const PER_MINUTE: u64 = 1_200;
    let scenario = adaptive(1_000).await;
    let settings = penstock_simulator::ProviderSettings {
        limits: hidden(PER_MINUTE, Enforcement::SecondBucket),
        ..quick()
    };
    scenario.server.update(settings).unwrap();
    scenario.validate().await;
    let job = scenario.job().await;
    let board = Arc::new(Board::default());
    let limit = Duration::from_secs(100);
    tokio::time::timeout(limit, run(job, Arc::clone(&board), Stop::new())).await.unwrap().unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert_eq!(published.receipt.outcomes.succeeded, 1_000, "a refusal for the rate fails no line");

    let log = scenario.server.log();
    let refused = log.iter().filter(|entry| entry.status() == Some(429)).count();
    assert!(refused * 100 <= log.len() * 3, "{refused} of {} refused", log.len());
    // The second half of the run, in which the limit is known.
    let half = log.len() / 2;
    let took = Duration::from_millis(log[log.len() - 1].at_ms - log[half].at_ms);
    let admitted = log[half..].iter().filter(|entry| entry.status() == Some(200)).count();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let share = admitted as f64 * 60.0 / took.as_secs_f64() / PER_MINUTE as f64;
    assert!(share >= 0.9, "{admitted} admitted in {took:?}: {share:.3} of the limit");

    let learned = learned(scenario.state().await.learner.as_ref()).expect("the state tells what was learned");
    assert!(!learned.belief.is_empty() && learned.decisions.len() > 1, "{learned:?}");
    assert_eq!(learned.gauges.refusals, refused as u64);
}

/// This scenario's job, as one that shares what it learns in `store`.
async fn sharing(scenario: &Scenario, store: &MemoryStore) -> Job {
    let state: Arc<dyn SharedState> = Arc::new(StoredState::new(Arc::new(store.clone())));
    let participation = Some(Participation { state, every: Duration::from_secs(1) });
    Job { participation, ..scenario.job().await }
}

#[tokio::test]
async fn what_a_job_finds_out_is_left_for_the_next_one_and_nothing_of_it_lies_in_the_output() {
    let shared = MemoryStore::new();
    let scenario = adaptive(200).await;
    let settings =
        penstock_simulator::ProviderSettings { limits: hidden(1_200, Enforcement::SecondBucket), ..quick() };
    scenario.server.update(settings).unwrap();
    scenario.validate().await;
    let job = sharing(&scenario, &shared).await;
    run(job, Arc::default(), Stop::new()).await.unwrap();
    scenario.published().await.assert_completed();
    let objects = shared.list("", None).await.unwrap().objects;
    let names: Vec<_> = objects.iter().map(|object| object.name.as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("remembered/simulated-")), "{names:?}");
    for object in &objects {
        let (_, bytes) = shared.get(&object.name, 10_000).await.unwrap().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let remembers = object.name.as_str().starts_with("remembered/");
        assert_eq!(text.contains("\"model\""), remembers, "a job that is over shares no more: {text}");
    }
    assert!(scenario.names().await.iter().all(|name| !name.contains("remembered")));
}

#[tokio::test]
async fn a_shared_state_that_does_not_work_holds_up_no_job() {
    let scenario = adaptive(50).await;
    scenario.validate().await;
    let broken = penstock_storage::faults::FaultyStore::new(MemoryStore::new(), |_| {
        Some(penstock_storage::faults::Fault::Refused)
    });
    let state: Arc<dyn SharedState> = Arc::new(StoredState::new(Arc::new(broken)));
    let participation = Some(Participation { state, every: Duration::from_secs(1) });
    let job = Job { participation, ..scenario.job().await };
    run(job, Arc::default(), Stop::new()).await.unwrap();
    scenario.published().await.assert_completed();
}

#[tokio::test]
async fn a_server_that_tells_its_load_is_filled_and_not_flooded() {
    const SLOTS: u32 = 8;
    let mut scenario = adaptive(400).await;
    scenario.spec.provider.kind = ProviderKind::OpenAiCompatible;
    let mut settings = quick();
    settings.slots = Some(Slots { at_once: SLOTS, when_full: WhenFull::Queue });
    settings.latency.start_ms = penstock_simulator::Distribution::Constant(100.0);
    scenario.server.update(settings).unwrap();
    scenario.validate().await;
    let board = Arc::new(Board::default());
    let job = scenario.job().await;
    let running = tokio::spawn(run(job, Arc::clone(&board), Stop::new()));
    let mut most = 0;
    while !running.is_finished() {
        most = most.max(board.progress().in_flight);
        tokio::task::yield_now().await;
    }
    running.await.unwrap().unwrap();
    scenario.published().await.assert_completed();
    assert!(most <= 100, "{most} in flight at {SLOTS} slots, of the 200 that may be");
}
