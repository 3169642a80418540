//! Storage that lost or damaged what was listed.

use std::sync::Arc;

use penstock_executor::{RunError, Stop};
use penstock_job::{Epoch, ExitCode, document, layout::PartName, state::Part};
use penstock_simulator::Distribution;
use penstock_storage::{FileStore, ObjectName};

use crate::scenario::{Scenario, quick, run_within};

/// Runs a job until some parts are listed and stops it.
async fn half_done() -> Scenario {
    let mut scenario = Scenario::prompts(2_000).await;
    let mut settings = quick();
    settings.latency.start_ms = Distribution::Constant(5.0);
    scenario.server.update(settings).unwrap();
    scenario.spec.limits.max_in_flight = 16.try_into().ok();
    scenario.store = Arc::new(FileStore::open(scenario.folder.path().join("out")).await.unwrap());
    scenario.validate().await;
    let stop = Stop::new();
    let running = tokio::spawn(run_within(scenario.job().await, stop.clone()));
    while scenario.server.requests().succeeded < 1_100 {
        tokio::task::yield_now().await;
    }
    stop.request();
    running.await.unwrap().unwrap();
    assert!(scenario.state().await.parts.len() >= 2);
    scenario
}

#[tokio::test]
async fn lines_of_a_lost_part_are_sent_again() {
    let scenario = half_done().await;
    let part = scenario.state().await.parts[0].clone();
    std::fs::remove_file(scenario.folder.path().join("out").join(part.name.to_string())).unwrap();
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    let again = scenario.requests().values().filter(|count| **count == 2).count();
    assert_eq!(again, part.lines as usize);
}

#[tokio::test]
async fn a_damaged_part_is_dropped_and_its_lines_are_sent_again() {
    let scenario = half_done().await;
    let part = scenario.state().await.parts[1].clone();
    let path = scenario.folder.path().join("out").join(part.name.to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.iter().position(|byte| *byte == b'q').unwrap_or(bytes.len() / 2);
    bytes[at] = b'x';
    std::fs::write(&path, bytes).unwrap();
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
}

#[tokio::test]
async fn a_published_file_that_is_not_ours_stops_the_publication() {
    let scenario = half_done().await;
    let name = ObjectName::from_static("results_final.jsonl");
    scenario.store.create(&name, bytes::Bytes::from_static(b"mine\n")).await.unwrap();
    let error = scenario.run().await.unwrap_err();
    assert!(matches!(&error, RunError::Foreign { name } if name == "results_final.jsonl"), "{error}");
    assert_eq!(scenario.object("results_final.jsonl").await.unwrap(), b"mine\n");
}

#[tokio::test]
async fn a_line_with_two_records_is_published_once() {
    let scenario = half_done().await;
    let mut state = scenario.state().await;
    let original = state.parts[0].clone();
    let copy = Part { name: PartName { sequence: 9_999, ..original.name }, ..original.clone() };
    let records = scenario.object(&original.name.to_string()).await.unwrap();
    let name = ObjectName::parse(copy.name.to_string()).unwrap();
    scenario.store.create(&name, records.into()).await.unwrap();
    state.outcomes.succeeded += u64::from(copy.lines);
    state.parts.push(copy);
    let name = ObjectName::from_static("state.json");
    let generation = scenario.store.head(&name).await.unwrap().unwrap().generation;
    scenario.store.replace(&name, document::write(&state).into(), &generation).await.unwrap();

    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
    assert_eq!(scenario.requests().values().copied().max(), Some(1), "nothing is sent again for it");
}

#[tokio::test]
async fn an_epoch_behind_which_there_is_none_is_refused_with_advice() {
    let scenario = Scenario::prompts(3).await;
    scenario.validate().await;
    let hostile = ObjectName::from_static("parts/4294967295-00000001-r.jsonl");
    let part = scenario.store.create(&hostile, bytes::Bytes::new()).await.unwrap();
    let refused = scenario.run().await.unwrap_err();
    assert!(matches!(refused, RunError::NoNextEpoch(Epoch(u32::MAX))), "{refused}");
    assert!(refused.to_string().contains("4294967295") && refused.to_string().contains("--output"));
    assert_eq!(refused.exit_code(), ExitCode::StorageDamaged);
    assert!(scenario.object("state.json").await.is_none(), "claimed all the same");

    scenario.store.delete(&hostile, &part.generation).await.unwrap();
    scenario.run().await.unwrap();
    scenario.published().await.assert_completed();
}

#[tokio::test]
async fn a_state_that_lists_a_part_of_an_epoch_to_come_is_damaged() {
    let scenario = half_done().await;
    let mut state = scenario.state().await;
    let mut part = state.parts[0].clone();
    part.name = PartName { epoch: Epoch(state.epoch.0 + 1), sequence: u32::MAX, ..part.name };
    state.parts.push(part);
    let path = scenario.folder.path().join("out/state.json");
    std::fs::write(&path, document::write(&state)).unwrap();
    let refused = scenario.run().await.unwrap_err();
    assert!(matches!(&refused, RunError::Damaged { name, .. } if name == "state.json"), "{refused}");
}
