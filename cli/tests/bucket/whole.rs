//! Whole jobs by every command, from buckets and folders to buckets and folders.

use std::fs;

use serde_json::Value;

use crate::{
    outside::BUCKET,
    place::{INPUT, Place},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_is_run_looked_at_and_verified_and_sends_nothing_twice() {
    let place = Place::new(1_200, 1.0).await;
    let said = place.say(place.run()).await.with(0);
    assert!(said.stderr.contains("gs://bucket/out/results_final.jsonl"), "{}", said.stderr);
    assert_eq!(place.provider.requests().received, 1_200);
    let left = place.names().await;
    assert!(!left.iter().any(|name| name.starts_with("parts/") || name.starts_with("compose/")), "{left:?}");
    assert!(!place.path("state/penstock").exists() || is_empty_below(&place), "something is left in scratch");

    let again = place.say(place.run()).await.with(0);
    assert!(again.stderr.contains("nothing was sent"), "{}", again.stderr);
    assert_eq!(place.provider.requests().received, 1_200);

    let output = format!("gs://{BUCKET}/out");
    let status = place.say(place.penstock(&["status", "--json", &output])).await.with(0);
    assert_eq!(serde_json::from_str::<Value>(&status.stdout).unwrap()["state"], "Completed");
    let verified = place.say(place.penstock(&["verify", &output])).await.with(0);
    assert!(
        verified.stdout.contains("as validated; each record has the id of its line"),
        "{}",
        verified.stdout
    );
    let published = place.finish().await;
    assert_eq!(published.count("succeeded"), 1_200);
    assert_eq!(published.receipt["input"]["uri"], format!("gs://{BUCKET}/{INPUT}"));
}

/// Whether no file is left in the user's state folder.
fn is_empty_below(place: &Place) -> bool {
    let mut folders = vec![place.path("state/penstock")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if !entry.file_type().unwrap().is_dir() {
                return false;
            }
            folders.push(entry.path());
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_and_folders_may_be_mixed() {
    let place = Place::new(40, 1.0).await;
    let input = format!("gs://{BUCKET}/{INPUT}");
    let said = place.say(place.run_from_to(&input, "out")).await.with(0);
    assert!(said.stderr.contains("out/results_final.jsonl"), "{}", said.stderr);
    place.say(place.penstock(&["verify", "out"])).await.with(0);
    fs::write(place.path("in.jsonl"), "{\"prompt_id\":1,\"prompt\":\"a\"}\n").unwrap();
    let uri = format!("file://{}", place.path("in.jsonl").display());
    place.say(place.run_from_to(&uri, &format!("gs://{BUCKET}/mixed"))).await.with(0);
    place.say(place.penstock(&["verify", &format!("gs://{BUCKET}/mixed")])).await.with(0);
    let valid = place.say(place.penstock(&["validate", &input])).await.with(0);
    assert!(valid.stderr.contains("all 40 lines are valid"), "{}", valid.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_a_bucket_can_be_cancelled_and_what_was_answered_is_published() {
    let place = Place::new(3_000, 5.0).await;
    let mut run = place.start(place.run());
    place.stored(1_000, &mut run).await;
    run.kill();
    run.end().await;
    let safe = place.held();
    let output = format!("gs://{BUCKET}/out");
    // Nobody can see that the process is gone, but its last checkpoint is young.
    let status = place.say(place.penstock(&["status", "--json", &output])).await.with(0);
    assert_eq!(serde_json::from_str::<Value>(&status.stdout).unwrap()["state"], "Running");
    let cancelled = place.say(place.penstock(&["cancel", &output])).await.with(4);
    assert!(cancelled.stderr.contains("cancelled"), "{}", cancelled.stderr);
    place.say(place.penstock(&["verify", &output])).await.with(0);
    let published = place.finish().await;
    assert!(published.count("succeeded") >= safe, "{safe} were stored: {:?}", published.outcomes);
    assert_eq!(published.count("succeeded") + published.count("cancelled"), 3_000);
}

/// As on a folder: nothing that was answered is lost, and no line is asked twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_this_machine_is_asked_to_leave_before_its_job_is_cancelled() {
    let place = Place::new(5_000, 20.0).await;
    let mut run = place.start(place.run());
    place.answered(700, &mut run).await;
    let second = place.say(place.run()).await.with(76);
    assert!(second.stderr.contains("already running as pid"), "{}", second.stderr);
    let status =
        place.say(place.penstock(&["status", "--json", &format!("gs://{BUCKET}/out")])).await.with(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!((&status["state"], status["pid"].is_u64()), (&Value::from("Running"), true), "{status}");
    let cancelled = place.say(place.penstock(&["cancel", &format!("gs://{BUCKET}/out")])).await.with(4);
    assert!(cancelled.stderr.contains("asking the run of this job, pid"), "{}", cancelled.stderr);
    run.end().await.with(75);
    assert_eq!(place.repeated(), 0);
    let answered = place.provider.requests().succeeded;
    let published = place.finish().await;
    assert_eq!(published.count("succeeded"), answered);
    assert_eq!(published.count("cancelled"), 5_000 - answered);
}

/// The older one writes its state as often as it may, and yet does not keep the newcomer out.
#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_from_another_machine_wins_and_the_older_run_stops() {
    for command in ["run", "cancel"] {
        let place = Place::new(8_000, 20.0).await;
        let mut older = place.start(place.run());
        place.answered(100, &mut older).await;
        let (mut newcomer, code) = match command {
            "run" => (place.run(), 0),
            _ => (place.penstock(&["cancel", &format!("gs://{BUCKET}/out")]), 4),
        };
        newcomer.env("XDG_STATE_HOME", place.path("elsewhere"));
        place.say(newcomer).await.with(code);
        older.end().await.with(76);
        let published = place.finish().await;
        assert_eq!(published.count("succeeded") + published.count("cancelled"), 8_000);
    }
}
