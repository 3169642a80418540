//! What `penstock run` does from the first line to the last, and what it refuses.

use std::{collections::BTreeSet, fs, path::Path};

use penstock_simulator::{Distribution, Fault, FaultRule, Latency, ProviderSettings, ShareOf};
use serde_json::Value;

use crate::world::{World, start};

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// The newcomer's first command, for both formats.
#[test]
fn both_examples_run_to_a_receipt_that_holds() {
    for (name, id) in [("support-tickets.jsonl", "prompt_id"), ("support-tickets-openai.jsonl", "custom_id")]
    {
        let world = World::new();
        let input = example(name);
        let arguments = ["run", input.to_str().unwrap(), "--provider", "simulated", "--output", "out"];
        world.say(&arguments).ended(0).told("completed: 300 lines").told("out/results_final.jsonl");
        let ids: BTreeSet<String> = world
            .read("out/results_final.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()[id].to_string())
            .collect();
        assert_eq!(ids.len(), 300);
        let verified = world.say(&["verify", "out"]).ended(0);
        assert!(verified.stdout.contains("300 = 300 succeeded"), "{}", verified.stdout);
    }
}

#[test]
fn a_finished_job_run_again_says_so_and_sends_nothing() {
    let world = World::new();
    let input = world.prompts(20);
    world.run(&input, &[]).ended(0);
    assert_eq!(world.asked().len(), 20);
    world.run(&input, &[]).ended(0).told("already completed: 20 lines").told("out/results_final.jsonl");
    assert_eq!(world.asked().len(), 20);
    fs::remove_file(&input).unwrap();
    world.run(&input, &[]).ended(0).told("already completed: 20 lines");
}

#[test]
fn a_job_that_is_only_to_be_published_needs_no_key() {
    let world = World::new();
    let input = world.prompts(20);
    world.run(&input, &[]).ended(0);
    fs::remove_file(world.path("out/receipt.json")).unwrap();
    world.run(&input, &["--api-key-env", "NOT_SET"]).ended(0).told("completed: 20 lines");
    assert_eq!(world.asked().len(), 20);
}

#[test]
fn the_answer_stands_in_response_and_failed_lines_in_the_errors() {
    let world = World::with(ProviderSettings {
        faults: vec![FaultRule {
            share: 0.5,
            of: ShareOf::Prompts,
            ..FaultRule::always(Fault::RejectedPrompt)
        }],
        ..ProviderSettings::default()
    });
    let said = world
        .run(&world.prompts(40), &["--system-prompt", "Be brief.", "--max-output-tokens", "30"])
        .ended(0);
    let results = world.read("out/results_final.jsonl");
    let errors = world.read("out/errors.jsonl");
    assert_eq!(results.lines().count() + errors.lines().count(), 40);
    assert!(said.stderr.contains("out/errors.jsonl"), "{}", said.stderr);
    let first: Value = serde_json::from_str(results.lines().next().unwrap()).unwrap();
    assert!(first["response"].as_str().is_some_and(|text| !text.is_empty()), "{first}");
}

#[test]
fn another_job_over_the_same_output_is_refused_and_touches_nothing() {
    let world = World::new();
    let input = world.prompts(10);
    world.run(&input, &[]).ended(0);
    let before = [world.read("out/receipt.json"), world.read("out/state.json")];
    world.run(&input, &["--model", "another"]).ended(65).told("`model` differs");
    let other = world.write("other.jsonl", "{\"prompt_id\": 1, \"prompt\": \"a\"}\n");
    world.run(&other, &[]).ended(65).told("a job with another input");
    world.prompts(11);
    world.run(&input, &[]).ended(65).told("the input has changed since the job in it began");
    assert_eq!(before, [world.read("out/receipt.json"), world.read("out/state.json")]);
    assert_eq!(world.asked().len(), 10);
}

#[test]
fn an_input_without_a_valid_line_is_refused_with_the_place_of_its_records() {
    let world = World::new();
    let input = world.write("in.jsonl", "{\"prompt_id\": 1}\n{\"prompt_id\": 2}\n");
    let refused = world.run(&input, &[]).ended(3).told("InvalidInput").told("None of the 2 lines");
    let records = refused.stderr.split_whitespace().find(|word| word.starts_with("intake/")).unwrap();
    assert_eq!(world.read(&format!("out/{records}")).lines().count(), 2);
    let status = world.say(&["status", "out"]).ended(0);
    assert!(status.stdout.contains("Failed · InvalidInput"), "{}", status.stdout);
    let empty = world.write("empty.jsonl", "\n");
    world.run(&empty, &[]).ended(3).told("no lines");
    // The mended input takes the place of the refused one.
    world.write("in.jsonl", "{\"prompt_id\": 1, \"prompt\": \"a\"}\n");
    world.run(&input, &[]).ended(0);
}

#[test]
fn invalid_lines_are_skipped_or_refuse_the_input_as_asked() {
    let world = World::new();
    let input = world.write("in.jsonl", "{\"prompt_id\": 1, \"prompt\": \"a\"}\nnonsense\n");
    world.run(&input, &["--on-invalid", "fail"]).ended(3).told("1 of the 2 lines");
    assert!(world.asked().is_empty());
    world.run(&input, &["--on-invalid", "skip"]).ended(0).told("succeeded 1 · failed 0 · rejected 1");
    world.say(&["verify", "out"]).ended(0);
}

#[test]
fn events_are_one_json_object_a_line_and_end_with_the_result() {
    let world = World::new();
    let input = world.prompts(30);
    let said = world.run(&input, &["--json"]).ended(0);
    assert_eq!(said.stderr, "");
    let events = said.json();
    assert_eq!(events[0]["event"], "started");
    assert!(events.iter().any(|event| event["event"] == "progress" && event["done"] == 30));
    let last = events.last().unwrap();
    assert_eq!(last["event"], "finished");
    assert_eq!((&last["exit_code"], &last["outcomes"]["succeeded"]), (&0.into(), &30.into()));
    let refused = world.run(&input, &["--json", "--run", "again"]).ended(65);
    let events = refused.json();
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["reason"]), (&"failed".into(), &"OutputOccupied".into()));
}

/// The answers are worth more than the account of how they came.
#[test]
fn events_that_cannot_be_written_do_not_stop_the_job() {
    let world = World::new();
    let input = world.prompts(10);
    let mut run = world.run_command(&input, &["--json"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let said = run.stdout(full).output().unwrap();
    assert_eq!(said.status.code(), Some(0));
    let told = String::from_utf8_lossy(&said.stderr);
    assert_eq!(told.matches("failed to write to stdout").count(), 1, "{told}");
    world.say(&["verify", "out"]).ended(0);
}

#[test]
fn quiet_says_only_what_came_out() {
    let world = World::new();
    let said = world.run(&world.prompts(10), &["--quiet"]).ended(0);
    assert!(said.stderr.starts_with("completed: 10 lines"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
}

#[test]
fn a_second_run_of_one_output_is_stopped_by_the_run_lock() {
    let latency = Latency { start_ms: Distribution::Constant(60_000.0), ..Latency::default() };
    let world = World::with(ProviderSettings { latency, ..ProviderSettings::default() });
    let input = world.prompts(5);
    let mut first = start(world.run_command(&input, &[]));
    let pid = first.pid();
    world.await_requests(5);
    world.run(&input, &[]).ended(76).told(&format!("already running as pid {pid}"));
    let status = world.say(&["status", "out"]).ended(0);
    assert!(status.stdout.contains(&format!("Running as pid {pid}")), "{}", status.stdout);
    drop(first);
    let status = world.say(&["status", "out", "--json"]).ended(0).json();
    assert_eq!((&status[0]["state"], &status[0]["lines"]), (&"Stopped".into(), &5.into()));
}

#[test]
fn a_job_file_is_overlaid_by_flags_and_its_faults_are_named() {
    let world = World::new();
    world.prompts(6);
    let url = world.server().base_url();
    let job = format!(
        "input: in.jsonl\noutput: out\nmodel: from-file\nprovider: {{kind: openai-compatible, base_url: \"{url}\"}}\n"
    );
    world.write("job.yaml", &job);
    world.say(&["run", "--job", "job.yaml", "--model", "from-flag"]).ended(0);
    assert!(world.asked().iter().all(|entry| entry.model.as_deref() == Some("from-flag")));
    world.write("job.yaml", "limits: {rmp: 5}");
    world.say(&["run", "--job", "job.yaml"]).ended(64).told("rmp");
    world.write("job.yaml", "{}");
    world.say(&["run", "--job", "job.yaml"]).ended(64).told("no input is named");
}

#[test]
fn a_key_is_sent_and_never_shown_or_stored() {
    const KEY: &str = "sk-test-0123456789abcdef";
    let world =
        World::with(ProviderSettings { api_keys: vec![KEY.to_owned()], ..ProviderSettings::default() });
    let input = world.prompts(10);
    let run = |output: &str, key: &str| {
        let url = world.server().base_url();
        let mut command = world.penstock(["run", "--provider", "openai-compatible", "--base-url", &url]);
        command.args(["--model", "m", "--api-key-env", "TEST_KEY", "--output", output]).arg(&input);
        command.env("TEST_KEY", key).env("PENSTOCK_LOG", "trace");
        start(command).end()
    };
    let refused = run("refused", "sk-wrong-0123456789abcdef").ended(64).told("refuses the credentials");
    let said = run("out", KEY).ended(0);
    for text in [&refused.stderr, &said.stderr, &said.stdout] {
        assert!(!text.contains(KEY) && !text.contains("sk-wrong-0123456789abcdef"), "{text}");
    }
    for folder in ["refused", "out"] {
        for entry in fs::read_dir(world.path(folder)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let text = fs::read_to_string(entry.path()).unwrap();
                assert!(!text.contains("0123456789abcdef"), "{:?}", entry.path());
            }
        }
    }
}

#[test]
fn each_provider_is_asked_in_its_own_api_with_the_key_of_its_own_variable() {
    const KEY: &str = "sk-test-0123456789abcdef";
    for (provider, variable, path) in [
        ("gemini", "GEMINI_API_KEY", "/v1beta/models/m:generateContent"),
        ("gemini", "GOOGLE_API_KEY", "/v1beta/models/m:generateContent"),
        ("anthropic", "ANTHROPIC_API_KEY", "/v1/messages"),
        ("azure-openai", "AZURE_OPENAI_API_KEY", "/openai/deployments/m/chat/completions"),
    ] {
        let world =
            World::with(ProviderSettings { api_keys: vec![KEY.to_owned()], ..ProviderSettings::default() });
        let input = world.prompts(10);
        let run = |output: &str, key: &str| {
            let url = world.server().base_url();
            let mut command = world.penstock(["run", "--provider", provider, "--base-url", &url]);
            command.args(["--model", "m", "--output", output]).arg(&input);
            command.env(variable, key).env("PENSTOCK_LOG", "trace");
            start(command).end()
        };
        let refused = run("refused", "sk-wrong-0123456789abcdef").ended(64).told("refuses the credentials");
        let said = run("out", KEY).ended(0).told("completed: 10 lines");
        for text in [&refused.stderr, &said.stderr, &said.stdout] {
            assert!(!text.contains("0123456789abcdef"), "{provider}: {text}");
        }
        let asked = world.asked();
        assert!(asked.iter().all(|entry| entry.path.split('?').next() == Some(path)), "{asked:?}");
        world.say(&["verify", "out"]).ended(0);
    }
}
