//! Whole jobs at a provider that refuses: what passes by itself costs no attempt, what holds every line up pauses the job
//! with a reason and a time, and what concerns one line alone fails alone.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use penstock_executor::{Board, Job, Stop, run};
use penstock_job::{
    Reason,
    spec::{KeySource, ProviderKind, RateMode},
};
use penstock_simulator::{
    Distribution, Enforcement, Fault, FaultRule, ProviderSettings, Quota, RateLimitHeaders, RetryAfter,
    Slots, TokenCharge, WhenFull,
};
use serde_json::Value;

use crate::scenario::{Scenario, quick};

const OLD_KEY: &str = "sk-old";
const NEW_KEY: &str = "sk-new";

/// A scenario that is answered by a provider of this kind, and the file with its key.
async fn at(kind: ProviderKind, lines: Vec<String>) -> (Scenario, PathBuf) {
    let mut settings = quick();
    settings.api_keys = vec![OLD_KEY.to_owned(), NEW_KEY.to_owned()];
    let mut scenario = Scenario::new(lines, settings).await;
    let key = scenario.folder.path().join("key");
    fs::write(&key, OLD_KEY).unwrap();
    scenario.spec.provider.kind = kind;
    // Refusals that come whatever is sent are no limit that could be found.
    scenario.spec.limits.rate = Some(RateMode::Fixed);
    scenario.spec.provider.base_url = Some(scenario.server.origin());
    scenario.spec.provider.api_key = Some(KeySource::File(key.clone()));
    (scenario, key)
}

fn prompts(count: u32) -> Vec<String> {
    (0..count).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect()
}

/// Lets the provider meet some requests with a fault.
fn with_fault(scenario: &Scenario, rule: FaultRule) {
    let mut settings = quick();
    settings.api_keys = vec![OLD_KEY.to_owned(), NEW_KEY.to_owned()];
    settings.limits.retry_after = RetryAfter::Seconds;
    settings.faults = vec![rule];
    scenario.server.update(settings).unwrap();
}

/// A provider with a limit on tokens that is soon reached.
fn small_limit() -> ProviderSettings {
    let mut settings = quick();
    settings.api_keys = vec![OLD_KEY.to_owned(), NEW_KEY.to_owned()];
    settings.limits.tokens = Some(Quota { per_minute: 5_000, enforcement: Enforcement::MinuteBucket });
    settings.limits.token_charge = TokenCharge::Actual;
    settings.limits.headers = RateLimitHeaders::Honest;
    settings.limits.retry_after = RetryAfter::Seconds;
    settings.output_length.tokens = Distribution::Constant(1.0);
    settings
}

/// What is told of a job that is held up for this reason.
async fn paused(board: &Board, reason: Reason) -> String {
    let waiting = async {
        loop {
            match board.progress().reason {
                Some((found, told)) if found == reason => return told,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the job goes on")
}

async fn errors(scenario: &Scenario) -> Vec<Value> {
    let text = String::from_utf8(scenario.object("errors.jsonl").await.unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn what_no_line_gets_past_pauses_the_job_with_its_reason_and_the_time_that_is_known() {
    for (kind, fault, reason, evidence) in [
        (ProviderKind::Gemini, Fault::DayQuota, Reason::DayQuotaExhausted, "resumes at 0"),
        (ProviderKind::OpenAi, Fault::DayQuota, Reason::DayQuotaExhausted, "resumes at "),
        (ProviderKind::AzureOpenAi, Fault::SpendLimit, Reason::BillingOrZeroQuota, "Billing hard limit"),
        (ProviderKind::Anthropic, Fault::DayQuota, Reason::DayQuotaExhausted, "Number of request tokens"),
        (
            ProviderKind::Gemini,
            Fault::ZeroQuota,
            Reason::BillingOrZeroQuota,
            "You exceeded your current quota",
        ),
        (ProviderKind::OpenAi, Fault::InsufficientQuota, Reason::BillingOrZeroQuota, "You exceeded"),
        (
            ProviderKind::Anthropic,
            Fault::InsufficientQuota,
            Reason::BillingOrZeroQuota,
            "Your credit balance",
        ),
        (ProviderKind::Anthropic, Fault::SpendLimit, Reason::BillingOrZeroQuota, "resumes "),
    ] {
        let (scenario, key) = at(kind, prompts(20)).await;
        with_fault(&scenario, FaultRule { only_key: Some(OLD_KEY.to_owned()), ..FaultRule::always(fault) });
        scenario.validate().await;
        let board = Arc::new(Board::default());
        let job = Job { fail_fast_on_credentials: false, ..scenario.job().await };
        let running = tokio::spawn(run(job, Arc::clone(&board), Stop::new()));
        let told = paused(&board, reason).await;
        assert!(told.starts_with(evidence), "{kind} {fault:?}: {told}");
        // With another account's key the provider answers, which the job notices by itself.
        fs::write(&key, NEW_KEY).unwrap();
        running.await.unwrap().unwrap();
        let published = scenario.published().await;
        published.assert_completed();
        assert_eq!(published.receipt.outcomes.succeeded, 20, "{kind} {fault:?}: no line was given up");
    }
}

#[tokio::test]
async fn who_is_asked_to_come_back_does_so_without_using_up_an_attempt() {
    for (kind, fault) in [
        (ProviderKind::OpenAi, Fault::SlowDown),
        (ProviderKind::Gemini, Fault::Overloaded),
        (ProviderKind::AzureOpenAi, Fault::Overloaded),
        (ProviderKind::Anthropic, Fault::RateLimited { wait_ms: 5 }),
    ] {
        let (mut scenario, _) = at(kind, prompts(20)).await;
        with_fault(&scenario, FaultRule { first_attempts: Some(1), ..FaultRule::always(fault) });
        scenario.spec.limits.max_attempts = 1.try_into().unwrap();
        scenario.validate().await;
        scenario.run().await.unwrap();
        let published = scenario.published().await;
        published.assert_completed();
        assert_eq!(published.receipt.outcomes.succeeded, 20, "{kind} {fault:?}");
        assert!(scenario.requests().values().all(|times| *times == 2), "{kind} {fault:?}");
        let throttled = if fault == Fault::Overloaded { 0 } else { 20 };
        assert_eq!(
            published.receipt.requests.throttled, throttled,
            "{kind}: overload is no matter of the rate"
        );
    }
}

#[tokio::test]
async fn a_queue_that_is_full_for_the_moment_costs_no_attempt() {
    let (mut scenario, _) = at(ProviderKind::OpenAi, prompts(20)).await;
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(50.0);
    settings.slots = Some(Slots { at_once: 4, when_full: WhenFull::Refuse });
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.max_attempts = 1.try_into().unwrap();
    scenario.spec.limits.max_in_flight = 10.try_into().ok();
    scenario.validate().await;
    scenario.run().await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.succeeded, 20);
    assert!(scenario.server.log().iter().any(|entry| entry.status() == Some(503)), "the queue was full");
}

#[tokio::test]
async fn an_overload_that_promises_nothing_uses_up_attempts() {
    let (mut scenario, _) = at(ProviderKind::Anthropic, prompts(5)).await;
    with_fault(&scenario, FaultRule::always(Fault::Overloaded));
    scenario.spec.limits.max_attempts = 2.try_into().unwrap();
    scenario.validate().await;
    scenario.run().await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.failed, 5);
    assert!(scenario.requests().values().all(|times| *times == 2));
}

#[tokio::test]
async fn a_request_that_is_larger_than_the_limit_fails_alone() {
    // OpenAI says so at once; at Azure it shows since others are answered, at Anthropic by refusal after refusal.
    for (kind, code, times) in [
        (ProviderKind::OpenAi, "rate_limit_exceeded", 1),
        (ProviderKind::AzureOpenAi, "request_too_large", 1),
        (ProviderKind::Anthropic, "request_too_large", 5),
    ] {
        let mut lines = prompts(20);
        let text = "word ".repeat(10_000);
        lines[7] = format!(r#"{{"prompt_id":7,"prompt":"{text}"}}"#);
        let (mut scenario, _) = at(kind, lines).await;
        scenario.server.update(small_limit()).unwrap();
        scenario.spec.limits.max_in_flight = 4.try_into().ok();
        scenario.validate().await;
        scenario.run().await.unwrap();
        let published = scenario.published().await;
        published.assert_completed();
        let outcomes = published.receipt.outcomes;
        assert_eq!((outcomes.succeeded, outcomes.failed), (19, 1), "{kind}");
        let errors = errors(&scenario).await;
        assert_eq!(errors[0]["prompt_id"], 7);
        assert_eq!(errors[0]["error"]["code"], code, "{}", errors[0]["error"]);
        assert_eq!(errors[0]["attempts"].as_array().unwrap().len(), times, "{kind}");
    }
}

#[tokio::test]
async fn a_line_that_azure_never_lets_pass_does_not_stand_in_the_way_of_others() {
    let mut lines = prompts(20);
    let text = "word ".repeat(10_000);
    lines[0] = format!(r#"{{"prompt_id":0,"prompt":"{text}"}}"#);
    let (mut scenario, key) = at(ProviderKind::AzureOpenAi, lines).await;
    scenario.server.update(small_limit()).unwrap();
    scenario.spec.limits.max_in_flight = 1.try_into().ok();
    scenario.validate().await;
    let (board, stop) = (Arc::new(Board::default()), Stop::new());
    let running = tokio::spawn(run(scenario.job().await, Arc::clone(&board), stop.clone()));
    let told = paused(&board, Reason::BillingOrZeroQuota).await;
    assert!(!told.contains("resumes"), "nobody knows when: {told}");
    fs::write(&key, NEW_KEY).unwrap();
    while board.progress().outcomes.succeeded < 19 {
        tokio::task::yield_now().await;
    }
    stop.request();
    running.await.unwrap().unwrap();
    assert_eq!(scenario.requests().values().max(), Some(&1), "the first line has not come back yet");
}
