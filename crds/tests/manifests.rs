//! Manifests that the API server takes, and those that it refuses, held against the published definitions without one.
//!
//! Each file of `manifests/` holds one object, or several versions of it that are applied one after the other. In `good`
//! every one is taken. In `bad` the last is refused with the words that follow `# refused:` in its first line, and those
//! before it are taken. Whoever has a cluster applies the same files to it.

#![expect(clippy::unwrap_used, reason = "a panic fails the test and says where")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use kube::core::cel::Validator;
use penstock_crds::{BatchJob, Provider, definitions};
use serde_json::Value;

/// Fields of a job that may change.
const MUTABLE: [&str; 4] = ["cancel", "priority", "suspend", "ttlSecondsAfterFinished"];

/// The manifests of a folder, by file.
fn manifests(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(folder);
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no manifest", folder.display());
    files
}

/// The versions of the object in a file, with their defaults, as the API server stores them.
fn versions(text: &str) -> Vec<Value> {
    let stored = |document: &str| {
        let manifest: Value = serde_saphyr::from_str(document).unwrap();
        let read = |error| panic!("{error} in\n{document}");
        match manifest["kind"].as_str() {
            Some("BatchJob") => serde_json::from_value::<BatchJob>(manifest).map_or_else(read, to_value),
            Some("Provider") => serde_json::from_value::<Provider>(manifest).map_or_else(read, to_value),
            other => panic!("{other:?} is no kind of Penstock"),
        }
    };
    text.split("---\n").map(stored).collect()
}

fn to_value(object: impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

fn schema(kind: &str) -> &'static Value {
    static DEFINITIONS: LazyLock<[(&str, Value); 2]> = LazyLock::new(definitions::all);
    let mut all = DEFINITIONS.iter().map(|(_, definition)| definition);
    let definition = all.find(|definition| definition["spec"]["names"]["kind"] == kind).unwrap();
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// What the rules say of an object that comes into the place of `old`.
fn refusals(new: &Value, old: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(schema(new["kind"].as_str().unwrap()), new, old) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// Applies versions one after the other: what is said of each.
fn apply(versions: &[Value]) -> Vec<Vec<String>> {
    let before = [None].into_iter().chain(versions.iter().map(Some));
    versions.iter().zip(before).map(|(new, old)| refusals(new, old)).collect()
}

#[test]
fn every_good_manifest_is_taken() {
    for (path, text) in manifests("good") {
        for said in apply(&versions(&text)) {
            assert!(said.is_empty(), "{}: {said:?}", path.display());
        }
    }
}

#[test]
fn every_bad_manifest_is_refused_with_its_message_and_for_nothing_else() {
    for (path, text) in manifests("bad") {
        let first = text.lines().next().and_then(|line| line.strip_prefix("# refused: "));
        let expected = first.unwrap_or_else(|| panic!("{} does not say what is expected", path.display()));
        let mut said = apply(&versions(&text));
        let last = said.pop().unwrap();
        assert!(said.iter().all(Vec::is_empty), "{}: refused too early: {said:?}", path.display());
        assert_eq!(last.len(), 1, "{}: {last:?}", path.display());
        assert!(last[0].contains(expected), "{}: expected `{expected}`, found `{}`", path.display(), last[0]);
    }
}

#[test]
fn the_examples_of_the_documentation_are_taken() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/batchjob.md");
    let text = fs::read_to_string(page).unwrap();
    let examples: Vec<_> =
        text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty(), "docs/batchjob.md shows no manifest");
    for object in examples.into_iter().flat_map(versions) {
        assert_eq!(refusals(&object, None), Vec::<String>::new());
    }
}

#[test]
fn each_field_of_a_job_but_four_can_neither_appear_nor_go_away() {
    let (_, text) =
        manifests("good").into_iter().find(|(path, _)| path.ends_with("job-everything.yaml")).unwrap();
    let everything = versions(&text).remove(0);
    let schema = schema("BatchJob");
    let fields = schema["properties"]["spec"]["properties"].as_object().unwrap();
    for field in fields.keys() {
        assert!(everything["spec"].get(field).is_some(), "job-everything.yaml lacks `{field}`");
        let required = schema["properties"]["spec"]["required"].as_array().unwrap();
        if required.iter().any(|name| name == field) {
            continue;
        }
        let mut without = everything.clone();
        without["spec"].as_object_mut().unwrap().remove(field);
        for (new, old) in [(&without, &everything), (&everything, &without)] {
            let said = refusals(new, Some(old));
            let refused = said.iter().any(|one| one.contains(&format!("`{field}` must not change")));
            assert_eq!(refused, !MUTABLE.contains(&field.as_str()), "{field}: {said:?}");
        }
    }
}
