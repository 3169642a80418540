//! Replays the corpus, and holds the list of targets, their programs and their folders against one another.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use penstock_fuzz::TARGETS;

/// The most files and bytes that are kept: what is committed is read by everyone, so it is minimised first.
const MOST_FILES: usize = 250;
const MOST_BYTES: usize = 1 << 20;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names in a folder of this crate.
fn names(name: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder(name)).expect("a folder of this crate can be listed");
    let name_of = |entry: fs::DirEntry| entry.file_name().into_string().expect("names here are UTF-8");
    entries.map(|entry| name_of(entry.expect("a folder of this crate can be listed"))).collect()
}

/// The inputs that are kept for a target, by their names.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("corpus/{target}");
    let read = |name: &String| fs::read(folder(&path).join(name)).expect("an input can be read");
    names(&path)
        .into_iter()
        .map(|name| {
            let bytes = read(&name);
            (name, bytes)
        })
        .collect()
}

#[test]
fn every_input_that_was_kept_passes_its_target() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "corpus/{name} is empty");
        for (input, bytes) in inputs {
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                broken.push(format!("corpus/{name}/{input}"));
            }
        }
    }
    assert!(broken.is_empty(), "promises are broken by {broken:?}; the reasons stand above");
}

#[test]
fn every_target_has_a_program_and_a_folder_in_the_corpus_and_nothing_else_has() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("corpus"), targets);
    let sources: BTreeSet<_> = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names("fuzz_targets"), sources);

    let manifest: toml::Table = fs::read_to_string(folder("Cargo.toml")).unwrap().parse().unwrap();
    let programs = manifest["bin"].as_array().unwrap();
    let programs: BTreeSet<_> = programs.iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(programs, targets);
    for name in &targets {
        let source = fs::read_to_string(folder(&format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(source.contains(&format!("penstock_fuzz::{name}(data)")), "{name}.rs runs another target");
    }
}

#[test]
fn the_corpus_stays_small() {
    let inputs: Vec<_> = TARGETS.iter().flat_map(|(name, _)| inputs(name)).collect();
    let bytes: usize = inputs.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(inputs.len() <= MOST_FILES && bytes <= MOST_BYTES, "{} files of {bytes} bytes", inputs.len());
}
