//! Buckets whose objects may not be deleted: the job ends all the same, and what is left is told once.

use std::time::Duration;

use penstock_gcs_double::{Fault, FaultRule, Operation, StorageSettings};

use crate::place::Place;

/// What is said of objects that are left.
const LEFT: &str = "of the objects that it was made of are left: failed to delete";

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_the_right_to_delete_ends_and_leaves_its_parts() {
    let place = Place::new(1_700, 1.0).await;
    place.set_faults(vec![FaultRule {
        operations: vec![Operation::Delete],
        ..FaultRule::always(Fault::ErrorBefore { status: 403 })
    }]);
    let said = place.say(place.run()).await.with(0);
    assert_eq!(said.stderr.matches(LEFT).count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains("grant this account the role"), "{}", said.stderr);
    let parts = place.contents().names("parts");
    assert!(parts.len() >= 4, "{parts:?}");
    // Not one call for each of thousands of parts.
    let refused = place.storage.log().iter().filter(|entry| entry.operation == Operation::Delete).count();
    assert!(refused <= 64, "{refused} deletions were tried");
    place.say(place.penstock(&["verify", "gs://bucket/out"])).await.with(0);
    let again = place.say(place.run()).await.with(0);
    assert!(again.stderr.contains("nothing was sent"), "{}", again.stderr);
    assert_eq!(place.finish().await.count("succeeded"), 1_700);
}

/// The state cannot be written again before its time either, so the run waits, says so, and goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_with_a_retention_period_ends_when_its_state_may_change() {
    let settings = StorageSettings { retention: Duration::from_secs(3), ..StorageSettings::default() };
    let place = Place::with(1_700, 1.0, settings).await;
    let mut run = place.run();
    run.env("PENSTOCK_INJECT_COMPOSE_LIMIT", "2");
    let said = place.say(run).await.with(0);
    assert!(said.stderr.contains("retention policy"), "{}", said.stderr);
    assert_eq!(said.stderr.matches(LEFT).count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains("delete it when its retention period is over"), "{}", said.stderr);
    // What was composed a moment ago; the parts are older.
    assert!(!place.contents().names("compose/results_final.jsonl").is_empty());
    assert_eq!(place.contents().names("parts"), [""; 0]);
    place.say(place.penstock(&["verify", "gs://bucket/out"])).await.with(0);
    assert_eq!(place.finish().await.count("succeeded"), 1_700);
}
