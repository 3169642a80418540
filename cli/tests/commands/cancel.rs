//! `penstock cancel`.

use std::io::BufRead;

use penstock_simulator::{Distribution, Latency, ProviderSettings};
use rustix::process::Signal;

use crate::world::{World, start};

fn world() -> World {
    let latency = Latency { start_ms: Distribution::Constant(50.0), ..Latency::default() };
    World::with(ProviderSettings { latency, ..ProviderSettings::default() })
}

#[test]
fn a_running_job_is_stopped_and_each_undone_line_recorded() {
    let world = world();
    let input = world.prompts(500);
    let run = start(world.run_command(&input, &["--max-in-flight", "4"]));
    world.await_requests(20);
    world.say(&["cancel", "out"]).ended(4).told("cancelled: 500 lines");
    run.end().ended(75);
    let asked = world.asked().len();
    assert!(asked < 500);
    let [results, errors] = ["out/results_final.jsonl", "out/errors.jsonl"].map(|name| world.read(name));
    assert_eq!(results.lines().count(), asked, "an answer that was paid for is missing");
    assert_eq!(results.lines().count() + errors.lines().count(), 500);
    assert!(
        errors.lines().all(|line| line.contains("batch_cancelled") && !line.contains("\"prompt_id\":null"))
    );
    world.say(&["verify", "out"]).ended(0);
    world.say(&["cancel", "out"]).ended(4).told("already cancelled");
    world.run(&input, &[]).ended(4).told("already cancelled");
}

#[test]
fn a_stopped_job_whose_input_has_changed_is_cancelled_too() {
    let world = world();
    let input = world.prompts(200);
    let mut run = start(world.run_command(&input, &["--max-in-flight", "4"]));
    world.await_requests(20);
    run.signal(Signal::TERM);
    run.end().ended(75);
    world.prompts(7);
    world.run(&input, &[]).ended(65).told("the input has changed");
    world.say(&["cancel", "out", "--quiet"]).ended(4);
    let errors = world.read("out/errors.jsonl");
    assert!(errors.lines().all(|line| line.contains("\"prompt_id\":null")), "{errors}");
    let proof = world.say(&["verify", "out"]).ended(0);
    assert!(proof.stdout.contains("some were lost with the input"), "{}", proof.stdout);
}

#[test]
fn a_finished_job_stays_as_it_is_and_an_empty_folder_is_no_job() {
    let world = world();
    world.run(&world.prompts(5), &[]).ended(0);
    world.say(&["cancel", "out"]).ended(0).told("already completed");
    world.say(&["cancel", "nowhere"]).ended(64).told("there is none");
    let failed = world.say(&["cancel", "nowhere", "--json"]).ended(64).json();
    assert_eq!((&failed[0]["event"], &failed[0]["exit_code"]), (&"failed".into(), &64.into()));
    assert!(!world.path("nowhere").exists());
}

/// The run drains for ten seconds.
#[test]
fn whoever_waits_for_a_run_to_leave_is_told_and_need_not() {
    let latency = Latency { start_ms: Distribution::Constant(60_000.0), ..Latency::default() };
    let world = World::with(ProviderSettings { latency, ..ProviderSettings::default() });
    let input = world.prompts(3);
    let mut run = start(world.run_command(&input, &[]));
    world.await_requests(3);
    let mut cancel = start(world.penstock(["cancel", "out"]));
    let mut told = String::new();
    cancel.stderr().read_line(&mut told).unwrap();
    assert!(told.contains(&format!("pid {}", run.pid())), "{told}");
    cancel.signal(Signal::INT);
    cancel.end().ended(75);
    assert!(!world.path("out/receipt.json").exists());
}
