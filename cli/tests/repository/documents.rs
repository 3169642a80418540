//! The pages of the documentation against one another and against the code: links, tables of words that programs may
//! rely on, and examples of files.

use std::path::{Component, Path, PathBuf};

use penstock_batchfile::{Format, RejectionCode};
use penstock_job::{ExitCode, JobSpec, Reason, spec::CanonicalInput};
use penstock_simulator::{Fault, ProviderSettings};
use serde_json::Value;

use crate::markdown::Page;

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 2] = ["target", "out"];

/// Every file below `folder` (from the root) with this extension.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(crate::root().join(folder)).expect("a folder of the repository can be listed");
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.expect("a folder of the repository can be listed");
        let name = entry.file_name().into_string().expect("names in the repository are UTF-8");
        let path = folder.join(&name);
        if entry.path().is_dir() {
            if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// A path without `.` and `..`, which must not lead out of the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normal)
}

/// Whether a link of a page leads to a file of the repository, and to a heading in it if it names one.
fn resolves(page: &Page, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        Some(page.path.clone())
    } else {
        normal(&page.path.parent().expect("a page stands in a folder").join(path))
    };
    target.is_some_and(|target| {
        crate::root().join(&target).exists()
            && (anchor.is_empty() || Page::read(target).anchors().iter().any(|found| found == anchor))
    })
}

#[test]
fn every_link_to_a_file_of_the_repository_resolves() {
    let pages = files(Path::new(""), "md");
    assert!(pages.contains(&PathBuf::from("README.md")));
    for page in pages.into_iter().map(Page::read) {
        for link in page.links().iter().filter(|link| !link.contains(':')) {
            assert!(resolves(&page, link), "{}: the link `{link}` leads nowhere", page.path.display());
        }
    }
}

#[test]
fn every_page_that_the_code_refers_to_exists() {
    let outside_paths = |letter: char| !letter.is_ascii_alphanumeric() && !"/.-_".contains(letter);
    for source in files(Path::new(""), "rs") {
        let text = crate::read(&source);
        let words = text.split(outside_paths).filter(|word| word.starts_with("docs/"));
        for page in words.map(Path::new).filter(|path| path.extension().is_some_and(|found| found == "md")) {
            assert!(crate::root().join(page).is_file(), "{} names {}", source.display(), page.display());
        }
    }
}

#[test]
fn the_documented_exit_codes_are_those_of_the_program() {
    let table = Page::read("docs/exit-codes.md").table(&["code", "meaning", "what to do"]);
    let codes: Vec<_> = table.iter().map(|[code, ..]| code.as_str()).collect();
    assert_eq!(codes, ExitCode::ALL.map(|code| code.code().to_string()));
}

#[test]
fn the_documented_reasons_are_those_of_the_program_in_order_of_precedence() {
    let table = Page::read("docs/reasons.md").table(&["reason", "meaning", "what helps"]);
    let names: Vec<_> = table.iter().map(|[name, ..]| name.as_str()).collect();
    assert_eq!(names, Reason::ALL.map(|reason| reason.to_string()));
    for ([name, _, helps], reason) in table.iter().zip(Reason::ALL) {
        assert_eq!(helps, reason.help(), "what helps with {name}");
    }
}

#[test]
fn the_documented_rejection_codes_are_words_of_the_program() {
    for [code, _] in Page::read("docs/formats.md").table(&["code", "the line is refused because"]) {
        let known = serde_json::from_value::<RejectionCode>(Value::from(code.as_str()));
        assert!(known.is_ok(), "docs/formats.md: no line is rejected with `{code}`");
    }
}

#[test]
fn the_example_of_a_job_file_names_every_field_and_makes_sense() {
    let blocks = Page::read("docs/job-file.md").code_blocks("yaml");
    let example = blocks.first().expect("docs/job-file.md shows a job file");
    let spec: JobSpec = serde_saphyr::from_str(example).expect("the example is a job file");
    let input = CanonicalInput { uri: "/in.jsonl".to_owned(), generation: "1-1".to_owned() };
    spec.canonical(input, Format::Prompts).expect("the example is a job that can be run");
    let written: Value = serde_saphyr::from_str(example).expect("the example is YAML");
    let fields = serde_json::to_value(JobSpec::default()).expect("a job spec is JSON");
    assert_eq!(first_absent(&fields, &written), None, "a field that the example does not show");
}

#[test]
fn the_example_of_a_simulated_provider_and_the_table_of_faults_are_read() {
    let page = Page::read("docs/simulator.md");
    let blocks = page.code_blocks("json");
    let settings: Result<ProviderSettings, _> =
        serde_json::from_str(blocks.first().expect("the page shows settings"));
    assert!(settings.is_ok(), "docs/simulator.md: {settings:?}");
    for [faults, _] in page.table(&["fault", "what the client sees"]) {
        for fault in faults.split(", ") {
            // A fault with a number is written as an object, the others as a word.
            let json =
                if fault.starts_with('{') { fault.replace(": n", ": 1") } else { format!("\"{fault}\"") };
            assert!(
                serde_json::from_str::<Fault>(&json).is_ok(),
                "docs/simulator.md: there is no fault `{fault}`"
            );
        }
    }
}

#[test]
fn the_example_of_faults_of_the_storage_and_their_table_are_read() {
    let page = Page::read("docs/storage-double.md");
    let blocks = page.code_blocks("json");
    let example: Value = serde_json::from_str(blocks.first().expect("the page shows faults")).expect("JSON");
    let rules = serde_json::from_value::<Vec<penstock_gcs_double::FaultRule>>(example["faults"].clone());
    assert!(rules.is_ok(), "docs/storage-double.md: {rules:?}");
    for [faults, _] in page.table(&["fault", "what the client sees"]) {
        for fault in faults.split(", ") {
            let json =
                if fault.starts_with('{') { fault.replace(": n", ": 503") } else { format!("\"{fault}\"") };
            assert!(
                serde_json::from_str::<penstock_gcs_double::Fault>(&json).is_ok(),
                "docs/storage-double.md: there is no fault `{fault}`"
            );
        }
    }
}

/// The first field of `fields`, at any depth, that `written` lacks.
fn first_absent(fields: &Value, written: &Value) -> Option<String> {
    fields.as_object()?.iter().find_map(|(name, value)| match written.get(name) {
        None => Some(name.clone()),
        Some(inner) => first_absent(value, inner).map(|inner| format!("{name}.{inner}")),
    })
}
