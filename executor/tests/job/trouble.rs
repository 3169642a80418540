//! Trouble with the provider or the input while a job runs: what was paid for is kept, and nothing stays stuck.

use std::{
    fs,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use penstock_executor::{Board, Finished, Job, Stop, run};
use penstock_job::{
    Reason,
    receipt::ReceiptEnding,
    spec::{KeySource, RateMode},
};
use penstock_simulator::{Distribution, Enforcement, Fault, FaultRule, Moment, Quota, RetryAfter};
use penstock_storage::{Action, ErrorKind, Generation, Input, StorageError};

use crate::scenario::{Scenario, quick, run_within};

/// An input whose lines cannot be read again once `is_lost`.
#[derive(Debug)]
struct Fading {
    input: Arc<dyn Input>,
    is_lost: AtomicBool,
}

#[async_trait]
impl Input for Fading {
    fn uri(&self) -> &str {
        self.input.uri()
    }

    fn generation(&self) -> &Generation {
        self.input.generation()
    }

    fn size_bytes(&self) -> u64 {
        self.input.size_bytes()
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        if self.is_lost.load(Relaxed) {
            let problem = "it was replaced";
            return Err(StorageError::new(
                ErrorKind::Changed,
                Action::Read,
                self.uri(),
                problem,
                "put it back",
            ));
        }
        self.input.read(range).await
    }

    async fn verify_unchanged(&self) -> Result<(), StorageError> {
        self.input.verify_unchanged().await
    }
}

#[tokio::test]
async fn answers_that_are_on_their_way_when_the_input_changes_are_kept() {
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(1_000.0);
    // The first line to arrive fails and has to be read again, from the input.
    let first = Some(Moment { requests: 1, elapsed_ms: 0 });
    settings.faults = vec![FaultRule { until: first, ..FaultRule::always(Fault::InternalError) }];
    let lines = (0..10).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let scenario = Scenario::new(lines, settings).await;
    scenario.validate().await;
    let job = scenario.job().await;
    let fading =
        Arc::new(Fading { input: Arc::clone(job.input.as_ref().unwrap()), is_lost: AtomicBool::new(false) });
    let running = tokio::spawn(run_within(Job { input: Some(fading.clone()), ..job }, Stop::new()));
    while scenario.server.log().is_empty() {
        tokio::task::yield_now().await;
    }
    fading.is_lost.store(true, Relaxed);
    running.await.unwrap().unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Failed);
    let outcomes = published.receipt.outcomes;
    assert_eq!((outcomes.succeeded, outcomes.abandoned), (9, 1));
}

#[tokio::test]
async fn lines_that_wait_for_memory_are_not_sent_after_a_stop() {
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(300.0);
    // Each is so long that only one can be in memory at a time.
    let text = "word ".repeat(7 << 18);
    let lines = (0..4).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"{text}"}}"#)).collect();
    let mut scenario = Scenario::new(lines, settings).await;
    scenario.spec.max_line_bytes = 16 << 20;
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    while scenario.server.log().is_empty() {
        tokio::task::yield_now().await;
    }
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    assert_eq!(scenario.server.log().len(), 1);
    scenario.run().await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.succeeded, 4);
    assert_eq!(scenario.server.log().len(), 4);
}

#[tokio::test]
async fn a_model_goes_on_when_the_line_that_probed_it_fails_for_good() {
    let mut settings = quick();
    settings.limits.requests = Some(Quota { per_minute: 1_200, enforcement: Enforcement::SecondBucket });
    settings.limits.retry_after = RetryAfter::Milliseconds;
    settings.faults = vec![FaultRule { share: 0.5, ..FaultRule::always(Fault::InternalError) }];
    let lines = (0..60).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let mut scenario = Scenario::new(lines, settings).await;
    scenario.spec.limits.max_attempts = 1.try_into().unwrap();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert!(published.receipt.outcomes.failed > 5 && published.receipt.outcomes.succeeded > 5);
    assert!(published.receipt.requests.throttled > 0, "the limit was met");
}

#[tokio::test]
async fn a_key_that_is_refused_in_mid_run_pauses_the_job_until_its_file_holds_another() {
    let mut settings = quick();
    settings.api_keys = vec!["sk-old".to_owned(), "sk-new".to_owned()];
    settings.latency.start_ms = Distribution::Constant(20.0);
    settings.faults = vec![FaultRule {
        from: Moment { requests: 40, elapsed_ms: 0 },
        only_key: Some("sk-old".to_owned()),
        ..FaultRule::always(Fault::Unauthorized)
    }];
    let lines =
        (0..400).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let mut scenario = Scenario::new(lines, settings).await;
    let key = scenario.folder.path().join("key");
    fs::write(&key, "sk-old").unwrap();
    scenario.spec.provider.api_key = Some(KeySource::File(key.clone()));
    scenario.spec.limits.max_in_flight = 8.try_into().ok();
    scenario.validate().await;
    let board = Arc::new(Board::default());
    let job = Job { fail_fast: false, ..scenario.job().await };
    let running = tokio::spawn(run(job, Arc::clone(&board), Stop::new()));
    let refused = |board: &Board| {
        board.progress().reason.is_some_and(|(reason, _)| reason == Reason::CredentialsRefused)
    };
    while !refused(&board) {
        tokio::task::yield_now().await;
    }
    fs::write(&key, "sk-new").unwrap();
    while board.progress().outcomes.succeeded < 100 {
        tokio::task::yield_now().await;
    }
    assert!(!refused(&board), "it is not refused any more");
    running.await.unwrap().unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert_eq!(published.receipt.outcomes.succeeded, 400);
    let refusals = scenario.server.log().iter().filter(|entry| entry.status() == Some(401)).count();
    assert!(refusals <= 8, "{refusals}: no more than were in flight");
}

/// Milliseconds between the arrivals of one request and the next at the double.
fn gaps(scenario: &Scenario) -> Vec<u64> {
    let log = scenario.server.log();
    log.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect()
}

#[tokio::test]
async fn a_job_with_a_request_limit_of_its_own_sends_evenly_at_that_rate() {
    let mut scenario = Scenario::prompts(21).await;
    scenario.spec.limits.rpm = 1_200.try_into().ok();
    scenario.validate().await;
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    let gaps = gaps(&scenario);
    let sum: u64 = gaps.iter().sum();
    assert_eq!(gaps.len(), 20);
    assert!((990..3_000).contains(&sum), "20 gaps of 50 ms: {gaps:?}");
    assert!(gaps.iter().filter(|gap| **gap < 30).count() <= 4, "no bursts: {gaps:?}");
}

#[tokio::test]
async fn a_job_in_mode_aimd_starts_at_ten_requests_a_minute() {
    let mut scenario = Scenario::prompts(2).await;
    scenario.spec.limits.rate = Some(RateMode::Aimd);
    scenario.validate().await;
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    let gaps = gaps(&scenario);
    assert!(gaps[0].abs_diff(6_000) < 500, "{gaps:?}");
}

#[tokio::test]
async fn a_job_with_a_token_limit_keeps_to_it_once_it_knows_how_long_answers_are() {
    let mut scenario = Scenario::prompts(13).await;
    let mut settings = quick();
    settings.output_length.tokens = Distribution::Constant(400.0);
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.tpm = 120_000.try_into().ok();
    scenario.spec.limits.max_in_flight = 1.try_into().ok();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let log = scenario.server.log();
    let answered: u32 = log[1..12].iter().map(|entry| entry.answer.unwrap().output_tokens).sum();
    let took = Duration::from_millis(log[12].at_ms - log[1].at_ms);
    // 2,000 tokens a second.
    assert!(took.as_secs_f64() * 2_000.0 * 1.1 > f64::from(answered), "{answered} tokens in {took:?}");
}
