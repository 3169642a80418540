//! The real binary, killed, stopped and paused, with the log of the provider double as the witness: nothing is lost,
//! nothing is published twice, and only what was in flight is sent again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ambiguous;
mod drawn;
mod killed;
mod rows;
#[path = "../site/mod.rs"]
#[expect(dead_code, reason = "the tests of buckets use the rest")]
mod site;
mod situation;
#[path = "../witness/mod.rs"]
#[expect(dead_code, reason = "the tests of buckets use the rest")]
mod witness;
mod workplace;
mod zombies;

use rustix::process::Signal;
use workplace::{IN_FLIGHT, Workplace};

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_nothing_is_lost_and_only_what_was_in_flight_is_sent_again() {
    let place = Workplace::new(2_000).await;
    let moments = [1, 150, 700, 1_400, 1_990];
    let mut safe = Vec::new();
    for answered in moments {
        let mut run = place.start(&[]);
        place.wait_until_answered(answered, &mut run).await;
        run.signal(Signal::KILL);
        run.wait().await;
        safe.push(place.moment());
    }
    place.start(&[]).ends_with(0).await;
    for moment in &safe {
        place.assert_nothing_safe_was_asked_since(moment);
    }
    let repeated = place.repeated();
    assert!(repeated <= IN_FLIGHT * moments.len(), "{repeated} requests were repeated");
    assert_eq!(place.witness.finish().count("succeeded"), 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_and_the_loss_of_the_scratch_folder_nothing_is_lost() {
    let place = Workplace::new(5_000).await;
    let mut run = place.start(&[]);
    place.wait_until_answered(3_000, &mut run).await;
    run.signal(Signal::KILL);
    run.wait().await;
    assert!(place.site.lose_scratch());
    let safe = place.moment();
    place.start(&[]).ends_with(0).await;
    place.assert_nothing_safe_was_asked_since(&safe);
    // A part of 500 (and at most one batch of 256 more) under way, one waiting, one growing, and what was in flight.
    let repeated = place.repeated();
    assert!(repeated <= 3 * (500 + 256) + IN_FLIGHT, "{repeated} requests were repeated");
    place.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigterm_the_run_exits_75_and_no_answered_line_is_sent_again() {
    let place = Workplace::new(1_000).await;
    let mut run = place.start(&[]);
    place.wait_until_answered(300, &mut run).await;
    run.signal(Signal::TERM);
    run.ends_with(75).await;
    assert!(place.document("receipt.json").is_none());
    place.start(&[]).ends_with(0).await;
    assert_eq!(place.repeated(), 0, "every answer came before the drain ended");
    place.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_that_wakes_after_its_successor_exits_76_and_changes_nothing() {
    let place = Workplace::new(1_000).await;
    let mut paused = place.start(&[]);
    place.wait_until_answered(300, &mut paused).await;
    place.suspend(&paused).await;
    place.start(&["--take-over"]).ends_with(0).await;
    let published = place.witness.published();
    paused.signal(Signal::CONT);
    paused.ends_with(76).await;
    assert_eq!(place.witness.finish(), published);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_taken_over_while_it_works_exits_76_and_the_newcomer_publishes() {
    let place = Workplace::new(3_000).await;
    let mut older = place.start(&[]);
    place.wait_until_answered(300, &mut older).await;
    let mut newer = place.start(&["--take-over"]);
    // A claim that meets a checkpoint of the older run loses to it: whoever wants the job asks again.
    while newer.wait().await == Some(76) {
        newer = place.start(&["--take-over"]);
    }
    newer.ends_with(0).await;
    older.ends_with(76).await;
    place.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_beside_a_living_one_is_stopped_before_it_claims() {
    let place = Workplace::new(2_000).await;
    let mut first = place.start(&[]);
    place.wait_until_answered(100, &mut first).await;
    let mut second = place.start(&[]);
    second.ends_with(76).await;
    assert!(second.errors().contains(&first.id().to_string()), "it names the pid: {}", second.errors());
    first.ends_with(0).await;
    assert_eq!(place.repeated(), 0);
    place.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finished_sends_nothing_more_and_says_so() {
    let place = Workplace::new(200).await;
    place.start(&[]).ends_with(0).await;
    let (published, requests) = (place.witness.published(), place.server.log().len());
    place.start(&[]).ends_with(0).await;
    assert_eq!(place.server.log().len(), requests);
    assert_eq!(place.witness.finish(), published);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_validation_and_the_first_answer_costs_nothing() {
    let place = Workplace::new(500).await;
    let mut run = place.start(&[]);
    place.wait_for_file("validation.json", &mut run).await;
    run.signal(Signal::KILL);
    run.wait().await;
    place.start(&[]).ends_with(0).await;
    assert_eq!(place.witness.requests(&place.server.log()).asked().len(), 500);
    assert!(place.repeated() <= IN_FLIGHT, "only what was in flight when the kill came");
    place.witness.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_a_part_that_is_lost_before_the_receipt_are_sent_again() {
    let place = Workplace::new(1_000).await;
    let mut run = place.start(&[]);
    place.wait_until_answered(300, &mut run).await;
    run.signal(Signal::TERM);
    run.ends_with(75).await;
    let parts = place.site.seen().now().names("parts");
    let lost = format!("parts/{}", parts.first().unwrap());
    place.witness.expect_damage(&lost);
    place.site.delete(&lost).await;
    place.start(&[]).ends_with(0).await;
    assert!(place.repeated() > 0);
    place.witness.finish();
}
