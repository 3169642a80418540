//! Each kind of tampering is named where it is.

use std::{fs, path::Path};

use penstock_job::{
    Receipt, State,
    document::{self, Document},
    finals::{Final, decision},
};
use penstock_simulator::{Fault, FaultRule, ProviderSettings, ShareOf};
use sha2::{Digest, Sha256};

use crate::world::World;

/// A finished job with results and errors.
fn finished() -> World {
    let world = World::with(ProviderSettings {
        faults: vec![FaultRule {
            share: 0.3,
            of: ShareOf::Prompts,
            ..FaultRule::always(Fault::RejectedPrompt)
        }],
        ..ProviderSettings::default()
    });
    world.run(&world.prompts(40), &[]).ended(0);
    world.say(&["verify", "out"]).ended(0);
    world
}

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed, "the test changes nothing");
    fs::write(path, changed).unwrap();
}

fn edit_document<D: Document>(world: &World, change: impl FnOnce(&mut D)) {
    let path = world.path("out").join(D::NAME);
    let mut document: D = document::read(&fs::read(&path).unwrap()).unwrap();
    change(&mut document);
    fs::write(path, document::write(&document)).unwrap();
}

/// Changes a published file and everything that is recorded of it, so that no digest tells.
fn forge(world: &World, name: &str, change: impl FnOnce(String) -> String) {
    let path = world.path("out").join(name);
    edit(&path, change);
    let bytes = fs::read(&path).unwrap();
    let refresh = |one: &mut Final| {
        one.size_bytes = bytes.len() as u64;
        one.lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
        one.crc32c = penstock_job::checksum::Crc32c(crc32c::crc32c(&bytes));
        one.sha256 = penstock_job::identity::hex(&Sha256::digest(&bytes));
    };
    let mut decided = None;
    edit_document::<State>(world, |state| {
        let identity = &state.job.identity;
        let frozen = state.finalization.as_mut().unwrap();
        frozen.finals.iter_mut().filter(|one| one.name == name).for_each(refresh);
        frozen.decision = decision(identity, None, &frozen.outcomes, &frozen.finals);
        decided = Some((frozen.decision.clone(), frozen.finals.clone()));
    });
    let (decision, finals) = decided.unwrap();
    edit_document::<Receipt>(world, |receipt| {
        receipt.decision = decision;
        for (output, one) in receipt.outputs.iter_mut().zip(finals) {
            (output.size_bytes, output.lines) = (one.size_bytes, one.lines);
            (output.crc32c, output.sha256) = (one.crc32c, one.sha256);
        }
    });
}

#[track_caller]
fn contradicts(world: &World, told: &[&str]) {
    let said = world.say(&["verify", "out"]).ended(66);
    for text in told {
        assert!(said.stderr.contains(text), "`{text}` is not in {}", said.stderr);
    }
    let json = world.say(&["verify", "out", "--json"]).ended(66).json();
    assert_eq!(json[0]["holds"], false);
}

#[test]
fn a_published_file_that_was_changed_lost_or_added_is_named() {
    let world = finished();
    let results = world.path("out/results_final.jsonl");
    let original = world.read("out/results_final.jsonl");
    edit(&results, |text| text.replacen("response\":\"", "response\":\"X", 1));
    contradicts(&world, &["results_final.jsonl: its size in bytes is"]);
    edit(&results, |_| original.replacen("\"attempt\":1", "\"attempt\":2", 1));
    contradicts(&world, &["results_final.jsonl: its CRC32C is"]);
    edit(&results, |_| original.replacen('{', "[", 1));
    contradicts(&world, &["results_final.jsonl:1: failed to read the record"]);
    fs::remove_file(&results).unwrap();
    contradicts(&world, &["results_final.jsonl: the file is gone"]);
    fs::write(&results, original).unwrap();
    world.say(&["verify", "out"]).ended(0);
    world.write("out/results_part_001.jsonl", "");
    contradicts(&world, &["results_part_001.jsonl: the receipt names no such file"]);
}

#[test]
fn a_line_that_is_missing_repeated_or_beyond_the_input_is_named_by_its_ordinal() {
    let world = finished();
    let first = world.read("out/results_final.jsonl").lines().next().unwrap().to_owned();
    let ordinal =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["ordinal"].to_string();
    let original = ordinal(&first);
    forge(&world, "results_final.jsonl", |text| {
        let second = text.lines().nth(1).unwrap().to_owned();
        text.replacen(&second, &first, 1)
    });
    contradicts(
        &world,
        &[&format!("results_final.jsonl:2 (ordinal {original}): this ordinal has a record already")],
    );

    let world = finished();
    forge(&world, "results_final.jsonl", |text| text.split_once('\n').unwrap().1.to_owned());
    contradicts(&world, &["no published file has a record of this line", "(ordinal "]);

    let world = finished();
    forge(&world, "results_final.jsonl", |text| {
        let line = text.lines().next().unwrap();
        let beyond = line.replacen(&format!("\"ordinal\":{}", ordinal(line)), "\"ordinal\":40", 1);
        text.replacen(line, &beyond, 1)
    });
    contradicts(&world, &["results_final.jsonl:1 (ordinal 40): the input has only 40 lines"]);
}

#[test]
fn an_outcome_in_the_wrong_file_or_of_another_kind_is_named() {
    let world = finished();
    forge(&world, "errors.jsonl", |text| {
        text.replacen("\"outcome\":\"failed\"", "\"outcome\":\"cancelled\"", 1)
    });
    contradicts(&world, &["receipt.json: its outcomes are", "cancelled 1"]);
}

#[test]
fn an_id_that_is_not_that_of_its_line_is_named_while_the_input_is_there_and_noticed_when_it_is_gone() {
    let world = finished();
    forge(&world, "results_final.jsonl", |text| {
        let line = text.lines().next().unwrap();
        let changed = line.replacen("{\"prompt_id\":", "{\"prompt_id\":9", 1);
        text.replacen(line, &changed, 1)
    });
    contradicts(&world, &["results_final.jsonl:1 (ordinal ", "is not the id of line "]);
    fs::remove_file(world.path("in.jsonl")).unwrap();
    contradicts(&world, &["receipt.json: identity.found is", "the ids of the records add up to"]);
}

#[test]
fn documents_that_disagree_are_named_with_the_field() {
    let world = finished();
    let [receipt, state, validation] = ["receipt.json", "state.json", "validation.json"]
        .map(|name| (name, world.read(&format!("out/{name}"))));
    let restore = || {
        for (name, text) in [&receipt, &state, &validation] {
            world.write(&format!("out/{name}"), text);
        }
    };
    edit_document::<Receipt>(&world, |receipt| receipt.requests.sent += 1);
    contradicts(&world, &["state.json: it stands for `requests.sent`"]);
    restore();
    edit_document::<Receipt>(&world, |receipt| receipt.outcomes.failed += 1);
    contradicts(&world, &["receipt.json: the outcomes add up to 41"]);
    restore();
    edit_document::<Receipt>(&world, |receipt| receipt.job.spec.run = "other".to_owned());
    contradicts(&world, &["receipt.json: job.identity is"]);
    restore();
    edit_document::<Receipt>(&world, |receipt| receipt.outputs[0].lines += 1);
    contradicts(&world, &["receipt.json: decision is"]);
    restore();
    edit_document::<penstock_job::Validation>(&world, |validation| validation.lines += 1);
    contradicts(&world, &["validation.json: it stands for `lines` 41"]);
    restore();
    edit_document::<State>(&world, |state| state.phase = penstock_job::state::Phase::Running);
    contradicts(&world, &["state.json: nothing is frozen"]);
    restore();
    fs::remove_file(world.path("out/validation.json")).unwrap();
    contradicts(&world, &["validation.json: the file is gone"]);
    restore();
    edit(&world.path("out/receipt.json"), |text| text.replacen("\"lines\"", "\"lanes\"", 1));
    contradicts(&world, &["receipt.json: it was changed or damaged", "lanes"]);
    restore();
    world.say(&["verify", "out"]).ended(0);
}

#[test]
fn without_a_receipt_there_is_nothing_to_verify() {
    let world = World::new();
    world.say(&["verify", "out"]).ended(64).told("there is none");
}
