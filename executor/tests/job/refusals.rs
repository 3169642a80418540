//! Whole jobs at a provider that refuses: what passes by itself costs no attempt, what holds every line up pauses the job
//! with a reason and a time, and what concerns one line alone fails alone.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::join_all;
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

/// How a provider refuses is told in the same way whether anybody learns from it or not.
const MODES: [RateMode; 2] = [RateMode::Fixed, RateMode::Adaptive];

const OLD_KEY: &str = "sk-old";
const NEW_KEY: &str = "sk-new";

/// A scenario that is answered by a provider of this kind, at a rate that is found like this, and the file with its key.
async fn at(kind: ProviderKind, rate: RateMode, lines: Vec<String>) -> (Scenario, PathBuf) {
    let mut settings = quick();
    settings.api_keys = vec![OLD_KEY.to_owned(), NEW_KEY.to_owned()];
    let mut scenario = Scenario::new(lines, settings).await;
    let key = scenario.folder.path().join("key");
    fs::write(&key, OLD_KEY).unwrap();
    scenario.spec.provider.kind = kind;
    scenario.spec.limits.rate = Some(rate);
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
    settings.limits.tokens = Some(Quota { per_minute: 9_000, enforcement: Enforcement::MinuteBucket });
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
    let cases = [
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
    ];
    let of_case = |(kind, fault, reason, evidence)| {
        MODES.map(|rate| pauses_until_the_key_is_another(kind, rate, fault, reason, evidence))
    };
    join_all(cases.into_iter().flat_map(of_case)).await;
}

async fn pauses_until_the_key_is_another(
    kind: ProviderKind,
    rate: RateMode,
    fault: Fault,
    reason: Reason,
    evidence: &str,
) {
    let (scenario, key) = at(kind, rate, prompts(20)).await;
    with_fault(&scenario, FaultRule { only_key: Some(OLD_KEY.to_owned()), ..FaultRule::always(fault) });
    scenario.validate().await;
    let board = Arc::new(Board::default());
    let job = Job { fail_fast: false, ..scenario.job().await };
    let running = tokio::spawn(run(job, Arc::clone(&board), Stop::new()));
    let told = paused(&board, reason).await;
    assert!(told.starts_with(evidence), "{kind} {rate:?} {fault:?}: {told}");
    // With another account's key the provider answers, which the job notices by itself.
    fs::write(&key, NEW_KEY).unwrap();
    running.await.unwrap().unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    let succeeded = published.receipt.outcomes.succeeded;
    assert_eq!(succeeded, 20, "{kind} {rate:?} {fault:?}: no line was given up");
}

#[tokio::test]
async fn who_is_asked_to_come_back_does_so_without_using_up_an_attempt() {
    let cases = [
        (ProviderKind::OpenAi, Fault::SlowDown),
        (ProviderKind::Gemini, Fault::Overloaded),
        (ProviderKind::AzureOpenAi, Fault::Overloaded),
        (ProviderKind::Anthropic, Fault::RateLimited { wait_ms: 5 }),
    ];
    let of_case = |(kind, fault)| MODES.map(|rate| comes_back(kind, rate, fault));
    join_all(cases.into_iter().flat_map(of_case)).await;
}

async fn comes_back(kind: ProviderKind, rate: RateMode, fault: Fault) {
    // Who learns from refusals sends less after each, whatever it was for.
    let lines = if rate == RateMode::Adaptive { 4 } else { 20 };
    let (mut scenario, _) = at(kind, rate, prompts(lines)).await;
    with_fault(&scenario, FaultRule { first_attempts: Some(1), ..FaultRule::always(fault) });
    scenario.spec.limits.max_attempts = 1.try_into().unwrap();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    assert_eq!(published.receipt.outcomes.succeeded, u64::from(lines), "{kind} {rate:?} {fault:?}");
    assert!(scenario.requests().values().all(|times| *times == 2), "{kind} {rate:?} {fault:?}");
    let throttled = if fault == Fault::Overloaded { 0 } else { u64::from(lines) };
    assert_eq!(published.receipt.requests.throttled, throttled, "{kind}: overload is no matter of the rate");
}

#[tokio::test]
async fn a_queue_that_is_full_for_the_moment_costs_no_attempt() {
    // In mode adaptive they go one after the other at first.
    let (mut scenario, _) = at(ProviderKind::OpenAi, RateMode::Fixed, prompts(20)).await;
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
    for rate in MODES {
        let (mut scenario, _) = at(ProviderKind::Anthropic, rate, prompts(5)).await;
        with_fault(&scenario, FaultRule::always(Fault::Overloaded));
        scenario.spec.limits.max_attempts = 2.try_into().unwrap();
        scenario.validate().await;
        scenario.run().await.unwrap();
        assert_eq!(scenario.published().await.receipt.outcomes.failed, 5, "{rate:?}");
        assert!(scenario.requests().values().all(|times| *times == 2), "{rate:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_larger_than_the_limit_fails_alone() {
    // OpenAI says so at once; at Azure it shows since others are answered, at Anthropic by refusal after refusal.
    let cases = [
        (ProviderKind::OpenAi, RateMode::Fixed, 15, "rate_limit_exceeded", 1),
        (ProviderKind::OpenAi, RateMode::Adaptive, 15, "rate_limit_exceeded", 1),
        (ProviderKind::AzureOpenAi, RateMode::Fixed, 15, "request_too_large", 1),
        (ProviderKind::AzureOpenAi, RateMode::Adaptive, 15, "request_too_large", 1),
        (ProviderKind::Anthropic, RateMode::Fixed, 15, "request_too_large", 5),
        (ProviderKind::Anthropic, RateMode::Adaptive, 15, "request_too_large", 5),
        (ProviderKind::Anthropic, RateMode::Adaptive, 0, "request_too_large", 5),
    ];
    let of_case = |(kind, rate, large, code, times)| one_of_them_fails(kind, rate, large, code, times);
    join_all(cases.map(of_case)).await;
}

/// Of twenty lines the one at `large` fails.
async fn one_of_them_fails(kind: ProviderKind, rate: RateMode, large: usize, code: &str, times: usize) {
    let mut lines = prompts(20);
    let text = "word ".repeat(10_000);
    lines[large] = format!(r#"{{"prompt_id":{large},"prompt":"{text}"}}"#);
    let (mut scenario, _) = at(kind, rate, lines).await;
    scenario.server.update(small_limit()).unwrap();
    scenario.spec.limits.max_in_flight = 4.try_into().ok();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    let outcomes = published.receipt.outcomes;
    assert_eq!((outcomes.succeeded, outcomes.failed), (19, 1), "{kind} {rate:?}");
    let errors = errors(&scenario).await;
    assert_eq!(errors[0]["prompt_id"], large);
    assert_eq!(errors[0]["error"]["code"], code, "{kind} {rate:?}: {}", errors[0]["error"]);
    assert_eq!(errors[0]["attempts"].as_array().unwrap().len(), times, "{kind} {rate:?}");
}

#[tokio::test]
async fn a_line_that_azure_never_lets_pass_does_not_stand_in_the_way_of_others() {
    join_all(MODES.map(others_pass_it)).await;
}

async fn others_pass_it(rate: RateMode) {
    let mut lines = prompts(20);
    let text = "word ".repeat(10_000);
    lines[0] = format!(r#"{{"prompt_id":0,"prompt":"{text}"}}"#);
    let (mut scenario, key) = at(ProviderKind::AzureOpenAi, rate, lines).await;
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
