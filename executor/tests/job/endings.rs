//! Jobs that end before every line was answered: cancelled, expired, stopped, input changed.

use std::time::{Duration, SystemTime};

use penstock_batchfile::OutcomeKind;
use penstock_executor::{EndingRequest, Finished, Job, Stop};
use penstock_job::receipt::ReceiptEnding;
use penstock_simulator::Distribution;

use crate::scenario::{Scenario, quick, run_within};

fn slow(start_ms: f64) -> penstock_simulator::ProviderSettings {
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(start_ms);
    settings
}

/// Waits until the double has answered so many requests.
async fn answered(scenario: &Scenario, count: u64) {
    while scenario.server.requests().succeeded < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_cancelled_job_publishes_what_was_answered_and_records_the_rest() {
    let mut scenario = Scenario::prompts(200).await;
    scenario.server.update(slow(20.0)).unwrap();
    scenario.spec.limits.max_in_flight = 4.try_into().ok();
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    answered(&scenario, 20).await;
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));

    scenario.end(EndingRequest::cancelled()).await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Cancelled);
    assert!(published.receipt.outcomes.succeeded >= 20);
    assert!(published.receipt.outcomes.cancelled > 0);
    assert_eq!(published.receipt.identity.found, Some(published.receipt.identity.expected), "ids are kept");
    let errors = String::from_utf8(scenario.object("errors.jsonl").await.unwrap()).unwrap();
    assert!(errors.lines().all(|line| line.contains("batch_cancelled")));
}

#[tokio::test]
async fn after_a_stop_no_line_that_was_answered_is_sent_again() {
    let mut scenario = Scenario::prompts(300).await;
    scenario.server.update(slow(10.0)).unwrap();
    scenario.spec.limits.max_in_flight = 8.try_into().ok();
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    answered(&scenario, 50).await;
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(scenario.requests().values().copied().max(), Some(1), "every answer arrived within the drain");
}

#[tokio::test]
async fn an_expired_job_keeps_its_answers_and_records_the_rest_as_expired() {
    let mut scenario = Scenario::prompts(50).await;
    scenario.server.update(slow(100.0)).unwrap();
    scenario.spec.limits.max_in_flight = 2.try_into().ok();
    scenario.spec.limits.deadline_seconds = 1.try_into().ok();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Expired);
    assert!(published.receipt.outcomes.succeeded > 0 && published.receipt.outcomes.expired > 0);
}

#[tokio::test]
async fn a_changed_input_ends_the_job_and_what_was_answered_is_published() {
    let mut scenario = Scenario::prompts(100).await;
    scenario.server.update(slow(20.0)).unwrap();
    scenario.spec.limits.max_in_flight = 2.try_into().ok();
    scenario.validate().await;
    let stop = Stop::new();
    let job = scenario.job().await;
    let again = scenario.job().await;
    let running = tokio::spawn(run_within(job, stop.clone()));
    answered(&scenario, 10).await;
    stop.request();
    assert!(matches!(running.await.unwrap().unwrap(), Finished::Stopped));
    let changed = std::fs::File::open(scenario.input_path()).unwrap();
    changed.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();

    run_within(again, Stop::new()).await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.ending, ReceiptEnding::Failed);
    assert!(published.receipt.outcomes.succeeded >= 10 && published.receipt.outcomes.abandoned > 0);
    let abandoned = published.records.values().filter(|(outcome, _)| *outcome == OutcomeKind::Abandoned);
    assert!(abandoned.clone().all(|(_, id)| id.is_none()), "ids were lost with the input");
    assert_eq!(published.receipt.identity.found, None);
}

#[tokio::test]
async fn a_job_whose_input_is_gone_is_abandoned_without_a_request() {
    let scenario = Scenario::prompts(10).await;
    scenario.validate().await;
    let job = scenario.job().await;
    run_within(Job { input: None, provider: None, ..job }, Stop::new()).await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.abandoned, 10);
    assert!(scenario.requests().is_empty());
}

#[tokio::test]
async fn cancelling_a_job_with_nothing_left_to_do_completes_it() {
    let mut scenario = Scenario::prompts(10).await;
    scenario.spec.keep_parts = true;
    scenario.validate().await;
    scenario.run().await.unwrap();
    assert!(matches!(
        scenario.end(EndingRequest::cancelled()).await.unwrap(),
        Finished::Published { before: true, .. }
    ));
    scenario.published().await.assert_completed();
}
