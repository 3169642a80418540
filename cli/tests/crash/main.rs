//! The real binary, killed, stopped and paused, with the log of the provider double as the witness: nothing is lost,
//! nothing is published twice, and only what was in flight is sent again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod workplace;

use std::{collections::HashSet, fs};

use rustix::process::Signal;
use workplace::{IN_FLIGHT, Workplace};

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_nothing_is_lost_and_only_what_was_in_flight_is_sent_again() {
    let place = Workplace::new(2_000).await;
    let moments = [1, 150, 700, 1_400, 1_990];
    for answered in moments {
        let mut run = place.start(&[]);
        place.wait_until_answered(answered, &mut run).await;
        run.signal(Signal::KILL);
        run.wait().await;
    }
    assert_eq!(place.start(&[]).wait().await, Some(0));
    place.assert_conserved();
    let repeated = place.repeated();
    assert!(repeated <= IN_FLIGHT * moments.len(), "{repeated} requests were repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_and_the_loss_of_the_scratch_folder_nothing_is_lost() {
    let place = Workplace::new(5_000).await;
    let mut run = place.start(&[]);
    place.wait_until_answered(3_000, &mut run).await;
    run.signal(Signal::KILL);
    run.wait().await;
    fs::remove_dir_all(place.output().join(".penstock/scratch")).unwrap();
    assert_eq!(place.start(&[]).wait().await, Some(0));
    place.assert_conserved();
    // A part of 500 (and at most one batch of 256 more) under way, one waiting, one growing, and what was in flight.
    let repeated = place.repeated();
    assert!(repeated <= 3 * (500 + 256) + IN_FLIGHT, "{repeated} requests were repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigterm_the_run_exits_75_and_no_answered_line_is_sent_again() {
    let place = Workplace::new(1_000).await;
    let mut run = place.start(&[]);
    place.wait_until_answered(300, &mut run).await;
    run.signal(Signal::TERM);
    assert_eq!(run.wait().await, Some(75));
    assert!(!place.output().join("receipt.json").exists());
    assert_eq!(place.start(&[]).wait().await, Some(0));
    place.assert_conserved();
    assert_eq!(place.repeated(), 0, "every answer came before the drain ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_that_wakes_after_its_successor_exits_76_and_changes_nothing() {
    let place = Workplace::new(1_000).await;
    let mut paused = place.start(&[]);
    place.wait_until_answered(300, &mut paused).await;
    paused.signal(Signal::STOP);
    assert_eq!(place.start(&["--take-over"]).wait().await, Some(0));
    place.assert_conserved();
    let published = place.published();
    paused.signal(Signal::CONT);
    assert_eq!(paused.wait().await, Some(76));
    assert_eq!(place.published(), published);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_taken_over_while_it_works_exits_76_and_the_newcomer_publishes() {
    let place = Workplace::new(3_000).await;
    let mut older = place.start(&[]);
    place.wait_until_answered(300, &mut older).await;
    assert_eq!(place.start(&["--take-over"]).wait().await, Some(0));
    assert_eq!(older.wait().await, Some(76));
    place.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_beside_a_living_one_is_stopped_before_it_claims() {
    let place = Workplace::new(2_000).await;
    let mut first = place.start(&[]);
    place.wait_until_answered(100, &mut first).await;
    let mut second = place.start(&[]);
    assert_eq!(second.wait().await, Some(76));
    assert!(second.errors().contains(&first.id().to_string()), "it names the pid: {}", second.errors());
    assert_eq!(first.wait().await, Some(0));
    place.assert_conserved();
    assert_eq!(place.repeated(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finished_sends_nothing_more_and_says_so() {
    let place = Workplace::new(200).await;
    assert_eq!(place.start(&[]).wait().await, Some(0));
    let (published, requests) = (place.published(), place.server.log().len());
    assert_eq!(place.start(&[]).wait().await, Some(0));
    assert_eq!(place.published(), published);
    assert_eq!(place.server.log().len(), requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_validation_and_the_first_answer_costs_nothing() {
    let place = Workplace::new(500).await;
    let mut run = place.start(&[]);
    place.wait_for_file("validation.json", &mut run).await;
    run.signal(Signal::KILL);
    run.wait().await;
    assert_eq!(place.start(&[]).wait().await, Some(0));
    place.assert_conserved();
    let prompts: HashSet<_> = place.server.log().into_iter().map(|entry| entry.prompt).collect();
    assert_eq!(prompts.len(), 500);
}
