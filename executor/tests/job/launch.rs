//! Jobs that are started by a job file, as the executor's binary does.

use std::{fs, path::Path, sync::Arc};

use penstock_executor::{Job, LaunchError, RunError, Stop, launch};
use penstock_job::ExitCode;
use penstock_storage::FileStore;

use crate::scenario::{Scenario, run_within};

/// A validated job of a few prompts over a folder.
async fn validated() -> Scenario {
    let mut scenario = Scenario::prompts(5).await;
    scenario.store = Arc::new(FileStore::open(scenario.folder.path().join("out")).await.unwrap());
    scenario.validate().await;
    scenario
}

/// Launches it by a job file that names this input.
async fn launched(scenario: &Scenario, input: &Path) -> Result<Job, LaunchError> {
    let file = scenario.folder.path().join("job.json");
    let content = serde_json::json!({
        "input": input,
        "output": scenario.folder.path().join("out"),
        "model": "model",
        "provider": {"kind": "simulated", "base_url": scenario.server.base_url()},
    });
    fs::write(&file, content.to_string()).unwrap();
    launch(&file, Some(scenario.scratch()), None, None).await
}

#[tokio::test]
async fn a_validated_job_runs_by_its_job_file() {
    let scenario = validated().await;
    let job = launched(&scenario, &scenario.input_path()).await.unwrap();
    run_within(job, Stop::new()).await.unwrap();
    scenario.published().await.assert_completed();
}

#[tokio::test]
async fn a_job_file_that_names_another_input_is_refused_and_the_job_is_not_given_up() {
    let scenario = validated().await;
    let other = scenario.folder.path().join("other.jsonl");
    fs::copy(scenario.input_path(), &other).unwrap();
    let job = launched(&scenario, &other).await.unwrap();
    let error = run_within(job, Stop::new()).await.unwrap_err();
    assert!(
        matches!(&error, RunError::OutputOccupied { difference: Some(field) } if field.starts_with("input")),
        "{error}"
    );
    assert!(scenario.object("state.json").await.is_none());
}

#[tokio::test]
async fn a_path_without_a_file_gives_the_job_up_only_where_the_validated_input_was() {
    let scenario = validated().await;
    for wrong in ["typing-error.jsonl", "not-mounted/input.jsonl"] {
        let error = launched(&scenario, &scenario.folder.path().join(wrong)).await.unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Configuration, "{error}");
    }
    fs::remove_file(scenario.input_path()).unwrap();
    let job = launched(&scenario, &scenario.input_path()).await.unwrap();
    assert!(job.input.is_none() && job.provider.is_none());
}
