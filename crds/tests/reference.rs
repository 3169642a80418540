//! The tables of fields in `docs/batchjob.md`, generated from the published definitions. `UPDATE_CRDS=1` writes them anew.

#![expect(clippy::unwrap_used, reason = "a panic fails the test and says where")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use penstock_crds::{State, definitions};
use serde_json::Value;

/// Every field below a schema, with its path.
fn fields(path: &str, schema: &Value, rows: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // What Kubernetes itself defines is not explained again.
        if path == "conditions" {
            continue;
        }
        let required =
            schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
        rows.push(row(&path, field, required));
        fields(&path, field, rows);
        fields(&format!("{path}[]"), &field["items"], rows);
    }
}

fn row(path: &str, field: &Value, required: bool) -> String {
    let meaning = field["description"].as_str().unwrap_or_default().replace('|', "\\|");
    let default = match &field["default"] {
        Value::Null if required => "required".to_owned(),
        Value::Null | Value::Object(_) => String::new(),
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    };
    format!("| `{path}` | {} | {default} | {meaning} |", kind(field))
}

/// What may stand in a field.
fn kind(field: &Value) -> String {
    let most = |key: &str| field[key].as_i64();
    match field["type"].as_str() {
        Some("string") => match field["enum"].as_array() {
            Some(words) => words
                .iter()
                .filter_map(Value::as_str)
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", "),
            None if field["format"] == "date-time" => "time".to_owned(),
            None => format!("text of at most {}", most("maxLength").unwrap()),
        },
        Some("integer") => match (most("minimum").unwrap(), most("maximum")) {
            (least, Some(most)) => format!("{least} to {most}"),
            (least, None) => format!("{least} or more"),
        },
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!("list of at most {}", most("maxItems").unwrap()),
        Some("object") => {
            most("maxProperties").map_or_else(String::new, |most| format!("map of at most {most}"))
        }
        other => panic!("{other:?} is no type of a field"),
    }
}

/// The page with the tables as they should be: each stands between two comments that name a kind and a part of it.
fn page_with_tables(page: &str) -> String {
    let mut page = page.to_owned();
    for (_, definition) in definitions::all() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        let parts = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for (part, schema) in parts.as_object().unwrap() {
            let begin = format!("<!-- begin {kind}.{part} -->\n");
            let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{begin} is missing"));
            let (_, after) = rest.split_once("<!-- end -->").expect("a table has an end");
            let mut rows =
                vec!["| field | may be | by default | meaning |".to_owned(), "|---|---|---|---|".to_owned()];
            fields("", schema, &mut rows);
            page = format!("{before}{begin}{}\n<!-- end -->{after}", rows.join("\n"));
        }
    }
    page
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/batchjob.md")
}

#[test]
fn the_documented_states_are_those_of_the_code() {
    let text = fs::read_to_string(page()).unwrap();
    let (_, states) = text.split_once("## States").unwrap();
    let (states, _) = states.split_once("\n## ").unwrap();
    let named: Vec<_> =
        states.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(named, State::ALL.map(|state| state.to_string()));
}

#[test]
fn the_committed_reference_is_that_of_the_code() {
    let path = page();
    let committed = fs::read_to_string(&path).unwrap();
    let expected = page_with_tables(&committed);
    if std::env::var_os("UPDATE_CRDS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        expected,
        "docs/batchjob.md is out of date: set UPDATE_CRDS=1 and run again"
    );
}
