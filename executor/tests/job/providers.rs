//! Whole jobs in the API of each provider, with refusals and errors among the answers. The log of the double is the
//! witness for what was asked, how it was answered, and what it cost.

use std::{collections::BTreeMap, fs};

use futures_util::future::join_all;
use penstock_batchfile::OutcomeKind;
use penstock_executor::Finished;
use penstock_job::spec::{KeySource, ProviderKind, RateMode};
use penstock_simulator::{Fault, FaultRule, LogEntry, ProviderSettings, ShareOf};
use serde_json::Value;

use crate::scenario::{Scenario, quick};

const KEY: &str = "right";

/// How the rate is found, and so many lines: who learns from refusals sends less after each, whatever it was for.
const MODES: [(RateMode, u32); 2] = [(RateMode::Fixed, 120), (RateMode::Adaptive, 20)];

/// A provider that refuses some prompts for good and the first attempts at others for every passing reason.
fn moody() -> ProviderSettings {
    let of_prompts = |fault, share| FaultRule { share, of: ShareOf::Prompts, ..FaultRule::always(fault) };
    let at_first = |fault, share| FaultRule { share, first_attempts: Some(1), ..FaultRule::always(fault) };
    let mut settings = quick();
    settings.api_keys = vec![KEY.to_owned()];
    settings.output_length.thought_tokens = 3;
    settings.faults = vec![
        of_prompts(Fault::RejectedPrompt, 0.1),
        of_prompts(Fault::FilteredAnswer, 0.1),
        at_first(Fault::InternalError, 0.2),
        at_first(Fault::Overloaded, 0.2),
        at_first(Fault::RateLimited { wait_ms: 5 }, 0.2),
        at_first(Fault::TruncatedBody, 0.1),
    ];
    settings
}

/// Lets a scenario's job be answered by a provider of this kind, with its key in a file.
fn answered_by(kind: ProviderKind, rate: RateMode, mut scenario: Scenario) -> Scenario {
    let key = scenario.folder.path().join("key");
    fs::write(&key, KEY).unwrap();
    scenario.server.update(moody()).unwrap();
    scenario.spec.provider.kind = kind;
    scenario.spec.limits.rate = Some(rate);
    scenario.spec.provider.base_url = Some(scenario.server.origin());
    scenario.spec.provider.api_key = Some(KeySource::File(key));
    scenario
}

/// What the double saw last of each prompt, and how often it came.
fn seen(scenario: &Scenario) -> BTreeMap<String, (LogEntry, usize)> {
    let mut seen: BTreeMap<String, (LogEntry, usize)> = BTreeMap::new();
    for entry in scenario.server.log() {
        let times = seen.get(&entry.prompt).map_or(0, |(_, times)| *times);
        seen.insert(entry.prompt.clone(), (entry, times + 1));
    }
    seen
}

fn last_fault(entry: &LogEntry) -> Option<Fault> {
    entry.answer.and_then(|answer| answer.fault)
}

async fn records(scenario: &Scenario, name: &str) -> Vec<Value> {
    let text = String::from_utf8(scenario.object(name).await.unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn prompts_are_answered_in_the_own_api_of_each_provider() {
    let cases = [
        (ProviderKind::Gemini, "/v1beta/models/model:generateContent"),
        (ProviderKind::Anthropic, "/v1/messages"),
        (ProviderKind::AzureOpenAi, "/openai/deployments/model/chat/completions"),
    ];
    let of_case = |(kind, path)| MODES.map(|(rate, lines)| prompts_are_answered_at(kind, path, rate, lines));
    join_all(cases.into_iter().flat_map(of_case)).await;
}

async fn prompts_are_answered_at(kind: ProviderKind, path: &str, rate: RateMode, lines: u32) {
    let scenario = answered_by(kind, rate, Scenario::prompts(lines).await);
    scenario.validate().await;
    assert!(matches!(scenario.run().await.unwrap(), Finished::Published { before: false, .. }));
    let published = scenario.published().await;
    published.assert_completed();
    let seen = seen(&scenario);
    assert_eq!(seen.len(), lines as usize, "{kind}: every prompt was asked");
    assert!(seen.values().all(|(entry, _)| entry.path.split('?').next() == Some(path)), "{kind}");
    for (ordinal, (outcome, _)) in &published.records {
        let (last, _) = &seen[&format!("question {ordinal}")];
        let is_refused = matches!(last_fault(last), Some(Fault::RejectedPrompt | Fault::FilteredAnswer));
        let expected = if is_refused { OutcomeKind::Failed } else { OutcomeKind::Succeeded };
        assert_eq!(*outcome, expected, "{kind}: {last:?}");
    }
    let outcomes = published.receipt.outcomes;
    assert!(outcomes.failed > 0 && outcomes.succeeded > u64::from(lines) / 2, "{kind}: {outcomes:?}");
    assert!(published.receipt.requests.throttled > 0, "{kind}: the rate was refused");
    for record in records(&scenario, "errors.jsonl").await {
        assert_eq!(record["error"]["code"], "content_filter", "{kind}: {record}");
        let (_, times) = &seen[&format!("question {}", record["ordinal"])];
        let attempts = record["attempts"].as_array().unwrap().len();
        assert_eq!(attempts, *times, "{kind}: each attempt is told, and none follows a refusal for good");
    }
    for record in records(&scenario, "results_final.jsonl").await {
        assert!(record["response"].as_str().is_some_and(|text| !text.is_empty()), "{kind}: {record}");
        let (last, _) = &seen[&format!("question {}", record["ordinal"])];
        let answer = last.answer.unwrap();
        assert_eq!(record["tokens"]["input"], answer.input_tokens, "{kind}: {record}");
        assert_eq!(record["tokens"]["output"], answer.output_tokens, "{kind}: thoughts are counted");
    }
}

#[tokio::test]
async fn openai_lines_are_answered_at_the_compatible_endpoint_of_each_provider() {
    let cases = [
        (ProviderKind::Gemini, "/v1beta/openai/chat/completions", "/v1beta/openai/chat/completions"),
        (ProviderKind::Anthropic, "/v1/chat/completions", "/v1/chat/completions"),
        (
            ProviderKind::AzureOpenAi,
            "/openai/deployments/even/chat/completions",
            "/openai/deployments/odd/chat/completions",
        ),
    ];
    let of_case = |(kind, even, odd)| {
        MODES.map(|(rate, lines)| openai_lines_are_answered_at(kind, even, odd, rate, lines))
    };
    join_all(cases.into_iter().flat_map(of_case)).await;
}

async fn openai_lines_are_answered_at(kind: ProviderKind, even: &str, odd: &str, rate: RateMode, lines: u32) {
    let scenario = answered_by(kind, rate, Scenario::openai(lines).await);
    scenario.validate().await;
    assert!(matches!(scenario.run().await.unwrap(), Finished::Published { before: false, .. }));
    let published = scenario.published().await;
    published.assert_completed();
    let seen = seen(&scenario);
    assert_eq!(seen.len(), lines as usize, "{kind}: every line was asked");
    for (ordinal, (outcome, _)) in &published.records {
        let (last, _) = &seen[&format!("question {ordinal}")];
        let path = if ordinal % 2 == 0 { even } else { odd };
        assert_eq!(last.path.split('?').next(), Some(path), "{kind}");
        let is_answered = last.status() == Some(200);
        let expected = if is_answered { OutcomeKind::Succeeded } else { OutcomeKind::Failed };
        assert_eq!(*outcome, expected, "{kind}: {last:?}");
    }
    for record in records(&scenario, "results_final.jsonl").await {
        assert_eq!(record["response"]["status_code"], 200);
        assert!(record["response"]["body"]["choices"].is_array(), "{kind}: {record}");
    }
}
