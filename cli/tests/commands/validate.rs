//! `penstock validate` and `penstock simulate`.

use std::io::{BufRead, Read, Write};

use rustix::process::Signal;

use crate::world::{World, start};

#[test]
fn every_invalid_line_is_named_by_line_offset_and_code() {
    let world = World::new();
    world.write(
        "in.jsonl",
        "{\"prompt_id\": 1, \"prompt\": \"a\"}\n\nnonsense\n{\"prompt_id\": 1, \"prompt\": \"b\"}\n",
    );
    let said = world.say(&["validate", "in.jsonl"]).ended(3).told("2 of 3 lines are invalid");
    let lines: Vec<_> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("in.jsonl:3: byte 33: invalid_json_line: "), "{lines:?}");
    assert!(lines[1].starts_with("in.jsonl:4: byte 42: duplicate_id: "), "{lines:?}");
    let json = world.say(&["validate", "in.jsonl", "--json"]).ended(3).json();
    assert_eq!((&json[0]["line_number"], &json[1]["code"]), (&3.into(), &"duplicate_id".into()));
}

#[test]
fn a_valid_file_exits_0_and_what_cannot_be_read_64() {
    let world = World::new();
    world.prompts(5);
    let said = world.say(&["validate", "in.jsonl"]).ended(0).told("all 5 lines are valid");
    assert_eq!(said.stdout, "");
    world.say(&["validate", "none.jsonl"]).ended(64).told("none.jsonl");
    world.write("empty.jsonl", "");
    world.say(&["validate", "empty.jsonl"]).ended(3).told("no lines");
    world.say(&["validate", "empty.jsonl", "--format", "prompts"]).ended(3).told("no lines");
    world.write("openai.jsonl", "{\"custom_id\": \"a\", \"extra\": 1, \"body\": {\"input\": \"x\"}}\n");
    let flags = ["validate", "openai.jsonl", "--endpoint", "/v1/responses", "--model", "m"];
    world.say(&flags).ended(0);
    world.say(&[&flags[..], &["--strict"]].concat()).ended(3);
    world.say(&flags[..4]).ended(3).told("missing_model");
}

#[test]
fn a_simulated_provider_says_where_it_is_and_serves_until_it_is_told_to_stop() {
    let world = World::new();
    let input = world.prompts(4);
    let mut provider =
        start(world.penstock(["simulate", "provider", "--listen", "127.0.0.1:0", "--log", "asked.jsonl"]));
    let mut stdout = provider.stdout();
    let mut url = String::new();
    stdout.read_line(&mut url).unwrap();
    let arguments =
        ["--provider", "openai-compatible", "--model", "m", "--base-url", url.trim(), "--output", "out"];
    world.say(&[&["run", input.to_str().unwrap()], &arguments[..]].concat()).ended(0);
    provider.signal(Signal::INT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    provider.end().ended(0).told("4 requests: 4 answered");
    assert_eq!(penstock_simulator::read_log(&world.path("asked.jsonl")).unwrap().len(), 4);
    world.write("settings.json", "{\"sed\": 1}");
    world.say(&["simulate", "provider", "--settings", "settings.json"]).ended(64).told("sed");
}

/// A report that is cut short looks like a report of fewer faults.
#[test]
fn a_report_that_cannot_be_written_is_a_failure_and_words_that_cannot_are_none() {
    let world = World::new();
    world.write("in.jsonl", "nonsense\n{\"prompt_id\": 1, \"prompt\": \"a\"}\n");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut report = world.penstock(["validate", "in.jsonl", "--format", "prompts"]);
    let said = report.stdout(full()).output().unwrap();
    assert_eq!(said.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&said.stderr).contains("failed to write to stdout"));
    let mut words = world.penstock(["validate", "in.jsonl", "--format", "prompts"]);
    assert_eq!(words.stderr(full()).output().unwrap().status.code(), Some(3));
}

#[test]
fn a_simulated_storage_says_where_it_is_and_serves_its_buckets_until_it_is_told_to_stop() {
    let world = World::new();
    world.write("faults.yaml", "faults:\n  - {fault: {error_before: {status: 503}}, operations: [list]}\n");
    let flags = ["simulate", "storage", "--listen", "127.0.0.1:0", "--bucket", "ours"];
    let mut storage =
        start(world.penstock([&flags[..], &["--faults", "faults.yaml", "--log", "asked.jsonl"]].concat()));
    let mut url = String::new();
    storage.stdout().read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap();
    let ask = |path: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(ask("/storage/v1/b/ours").as_deref(), Some("200"));
    assert_eq!(ask("/storage/v1/b/bucket").as_deref(), Some("404"));
    assert_eq!(ask("/storage/v1/b/ours/o").as_deref(), Some("503"));
    storage.signal(Signal::INT);
    storage.end().ended(0).told("3 requests: 1 answered, 1 refused, 1 failed, 0 without an answer");
    assert_eq!(penstock_gcs_double::read_log(&world.path("asked.jsonl")).unwrap().len(), 3);
    world.write("faults.yaml", "faults: [{fault: explode}]\n");
    world.say(&["simulate", "storage", "--faults", "faults.yaml"]).ended(64).told("explode");
    world.say(&["simulate", "storage", "--bucket", "Ours"]).ended(64).told("Ours");
}
