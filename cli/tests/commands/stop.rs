//! Stopping a run, and going on.

use std::io::BufRead;

use penstock_simulator::{Distribution, Latency, ProviderSettings};
use rustix::process::Signal;

use crate::world::{World, start};

fn slow(milliseconds: f64) -> World {
    let latency = Latency { start_ms: Distribution::Constant(milliseconds), ..Latency::default() };
    World::with(ProviderSettings { latency, ..ProviderSettings::default() })
}

#[test]
fn after_sigterm_the_same_command_goes_on_and_sends_no_answered_line_again() {
    let world = slow(20.0);
    let input = world.prompts(400);
    let mut run = start(world.run_command(&input, &["--max-in-flight", "4"]));
    world.await_requests(50);
    run.signal(Signal::TERM);
    run.end().ended(75).told("the same command goes on from here");
    assert!(world.asked().len() < 400);
    world.say(&["verify", "out"]).ended(64).told("the job is not over");
    world.run(&input, &[]).ended(0);
    let asked = world.asked();
    assert_eq!(asked.len(), 400, "a line was sent twice, or not at all");
    assert!(asked.iter().all(|entry| entry.times_seen == 0));
    world.say(&["verify", "out"]).ended(0);
}

#[test]
fn the_first_interrupt_waits_for_answers_and_the_second_does_not() {
    let world = slow(60_000.0);
    let input = world.prompts(3);
    let mut run = start(world.run_command(&input, &["--json"]));
    world.await_requests(3);
    let mut events = run.stdout().lines().map(Result::unwrap);
    run.signal(Signal::INT);
    // Until the first has been heard, another one would be taken for the same.
    assert!(events.any(|event| event.contains("\"event\":\"stopping\"")));
    run.signal(Signal::INT);
    run.end().ended(130);
    assert!(!events.any(|event| event.contains("finished")));
}

#[test]
fn an_interrupt_during_a_drain_of_short_answers_loses_none_of_them() {
    let world = slow(300.0);
    let input = world.prompts(60);
    let mut run = start(world.run_command(&input, &["--max-in-flight", "10"]));
    world.await_requests(15);
    run.signal(Signal::INT);
    run.end().ended(75);
    let before = world.asked();
    world.run(&input, &[]).ended(0);
    assert!(world.asked()[before.len()..].iter().all(|entry| entry.times_seen == 0));
}

#[test]
fn a_job_that_is_taken_over_goes_on_there_and_the_older_run_leaves() {
    let world = slow(60_000.0);
    let input = world.prompts(3);
    world.write("job.yaml", "limits: {checkpoint_seconds: 1}");
    let older = start(world.run_command(&input, &["--job", "job.yaml"]));
    world.await_requests(3);
    let mut newer = start(world.run_command(&input, &["--take-over"]));
    world.await_requests(6);
    older.end().ended(76).told("another executor has taken the job over");
    newer.signal(Signal::INT);
}
