//! What becomes of lines in an undisturbed job.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use penstock_batchfile::OutcomeKind;
use penstock_executor::{Finished, RunError};
use penstock_simulator::{Fault, FaultRule};
use penstock_storage::{
    Action, FileStore, MemoryStore,
    faults::{Call, FaultyStore},
};

use crate::scenario::{Scenario, quick};

#[tokio::test]
async fn every_prompt_is_answered_once_and_accounted_for() {
    let scenario = Scenario::prompts(300).await;
    scenario.validate().await;
    assert!(matches!(scenario.run().await.unwrap(), Finished::Published { before: false, .. }));
    let published = scenario.published().await;
    published.assert_completed();
    assert_eq!(published.receipt.outcomes.succeeded, 300);
    assert_eq!(scenario.requests().values().copied().max(), Some(1), "no prompt is sent twice");
}

#[tokio::test]
async fn openai_lines_of_two_models_are_answered_in_their_own_format() {
    let scenario = Scenario::openai(100).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    let results = String::from_utf8(scenario.object("results_final.jsonl").await.unwrap()).unwrap();
    let first: serde_json::Value = serde_json::from_str(results.lines().next().unwrap()).unwrap();
    assert!(first["id"].as_str().unwrap().starts_with("batch_req_"));
    assert_eq!(first["response"]["status_code"], 200);
    assert!(first["response"]["body"]["choices"][0]["message"]["content"].is_string());
}

#[tokio::test]
async fn more_parts_than_one_compose_takes_are_composed_level_by_level() {
    // At most 500 outcomes a part make at least 5 parts, of which 2 are composed at once.
    let mut scenario = Scenario::prompts(2_500).await;
    let composed = Arc::new(Mutex::new(BTreeSet::new()));
    let watch = {
        let composed = Arc::clone(&composed);
        move |call: &Call<'_>| {
            if call.action == Action::Compose {
                composed.lock().unwrap().insert(call.object.to_owned());
            }
            None
        }
    };
    scenario.store = Arc::new(FaultyStore::new(MemoryStore::new(), watch).composing_at_most(2));
    scenario.validate().await;
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    for object in ["0-000002", "1-000001"].map(|name| format!("compose/results_final.jsonl/{name}")) {
        assert!(composed.lock().unwrap().contains(&object), "{object} is not in {composed:?}");
    }
    let names = scenario.names().await;
    assert!(
        !names.iter().any(|name| name.starts_with("compose/") || name.starts_with("parts/")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_job_over_a_folder_leaves_the_published_files_and_no_scratch() {
    let mut scenario = Scenario::prompts(1_200).await;
    scenario.store = Arc::new(FileStore::open(scenario.folder.path().join("out")).await.unwrap());
    scenario.validate().await;
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert!(!scenario.scratch().exists());
}

#[tokio::test]
async fn refused_lines_fail_with_the_providers_words_and_others_go_on() {
    let mut settings = quick();
    let mut refuse = FaultRule::always(Fault::RejectedPrompt);
    refuse.share = 0.2;
    refuse.of = penstock_simulator::ShareOf::Prompts;
    settings.faults = vec![refuse];
    let lines =
        (0..200).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let scenario = Scenario::new(lines, settings).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    published.assert_completed();
    let failed = published.receipt.outcomes.failed;
    assert!((10..=80).contains(&failed), "{failed}");
    assert_eq!(scenario.requests().values().copied().max(), Some(1), "a refusal for good is not tried again");
    let errors = String::from_utf8(scenario.object("errors.jsonl").await.unwrap()).unwrap();
    let first: serde_json::Value = serde_json::from_str(errors.lines().next().unwrap()).unwrap();
    assert_eq!(first["error"]["status"], 400);
    assert_eq!(first["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn trouble_that_passes_is_retried_until_every_line_succeeds() {
    let mut settings = quick();
    settings.faults = [Fault::InternalError, Fault::DropBeforeAnswer, Fault::TruncatedBody, Fault::NotJson]
        .map(|fault| FaultRule { first_attempts: Some(2), share: 0.3, ..FaultRule::always(fault) })
        .into();
    let lines =
        (0..100).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let scenario = Scenario::new(lines, settings).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.outcomes.succeeded, 100);
    assert!(scenario.requests().values().any(|count| *count > 1));
}

#[tokio::test]
async fn a_line_that_never_succeeds_fails_after_its_attempts_with_their_history() {
    let mut settings = quick();
    settings.faults = vec![FaultRule::always(Fault::InternalError)];
    let mut scenario =
        Scenario::new(vec![r#"{"prompt_id":1,"prompt":"question"}"#.to_owned()], settings).await;
    scenario.spec.limits.max_attempts = 3.try_into().unwrap();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.records[&0].0, OutcomeKind::Failed);
    let errors: serde_json::Value =
        serde_json::from_slice(&scenario.object("errors.jsonl").await.unwrap()).unwrap();
    assert_eq!(errors["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(scenario.requests()["question"], 3);
}

#[tokio::test]
async fn refusals_for_the_rate_use_up_no_attempts() {
    let mut settings = quick();
    settings.limits.requests = Some(penstock_simulator::Quota {
        per_minute: 1_200,
        enforcement: penstock_simulator::Enforcement::SecondBucket,
    });
    settings.limits.retry_after = penstock_simulator::RetryAfter::Milliseconds;
    let lines = (0..60).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let mut scenario = Scenario::new(lines, settings).await;
    scenario.spec.limits.max_attempts = 1.try_into().unwrap();
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.outcomes.succeeded, 60);
    assert!(published.receipt.requests.throttled > 0, "the limit was met");
}

#[tokio::test]
async fn invalid_lines_are_rejected_and_published_with_the_others() {
    let lines = vec![
        r#"{"prompt_id":1,"prompt":"question"}"#.to_owned(),
        "not json".to_owned(),
        r#"{"prompt_id":1,"prompt":"the same id"}"#.to_owned(),
        r#"{"prompt_id":2}"#.to_owned(),
    ];
    let scenario = Scenario::new(lines, quick()).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!(published.receipt.outcomes.rejected, 3);
    assert_eq!(scenario.requests().len(), 1);
}

#[tokio::test]
async fn a_finished_job_sends_nothing_when_it_is_run_again() {
    let scenario = Scenario::prompts(10).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let before = scenario.requests();
    assert!(matches!(scenario.run().await.unwrap(), Finished::Published { before: true, .. }));
    assert_eq!(scenario.requests(), before);
}

#[tokio::test]
async fn another_job_over_the_same_output_is_refused_and_changes_nothing() {
    let mut scenario = Scenario::prompts(10).await;
    scenario.validate().await;
    scenario.run().await.unwrap();
    let before = scenario.object("receipt.json").await;
    scenario.spec.run = "again".to_owned();
    let error = scenario.run().await.unwrap_err();
    assert!(
        matches!(&error, RunError::OutputOccupied { difference } if difference.as_deref() == Some("run")),
        "{error}"
    );
    assert_eq!(scenario.object("receipt.json").await, before);
}

#[tokio::test]
async fn refused_credentials_end_a_local_run_before_anything_succeeded_and_keep_its_state() {
    let mut settings = quick();
    settings.faults = vec![FaultRule::always(Fault::Unauthorized)];
    let lines = (0..20).map(|line| format!(r#"{{"prompt_id":{line},"prompt":"question {line}"}}"#)).collect();
    let scenario = Scenario::new(lines, settings).await;
    scenario.validate().await;
    let error = scenario.run().await.unwrap_err();
    assert!(matches!(error, RunError::CredentialsRefused { .. }), "{error}");
    scenario.server.update(quick()).unwrap();
    scenario.run().await.unwrap();
    assert_eq!(scenario.published().await.receipt.outcomes.succeeded, 20);
}

#[tokio::test]
async fn lines_of_a_model_without_a_route_fail_and_others_go_on() {
    let mut scenario = Scenario::openai(20).await;
    let route = penstock_job::spec::Route { base_url: scenario.server.base_url(), ..Default::default() };
    scenario.spec.provider.kind = penstock_job::spec::ProviderKind::OpenAiCompatible;
    scenario.spec.provider.routes.insert("even".to_owned(), route);
    scenario.validate().await;
    scenario.run().await.unwrap();
    let published = scenario.published().await;
    assert_eq!((published.receipt.outcomes.succeeded, published.receipt.outcomes.failed), (10, 10));
    let errors = String::from_utf8(scenario.object("errors.jsonl").await.unwrap()).unwrap();
    assert!(errors.lines().all(|line| line.contains("model_not_found")), "{errors}");
    assert_eq!(scenario.requests().len(), 10);
}
