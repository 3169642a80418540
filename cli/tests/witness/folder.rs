//! An output folder as files and JSON, read without any of Penstock's readers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use roaring::RoaringBitmap;
use serde_json::Value;

/// One published or stored record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) ordinal: u64,
    pub(crate) id: Value,
    pub(crate) outcome: String,
}

/// A JSON document of the folder, if it is there.
pub(crate) fn document(output: &Path, name: &str) -> Option<Value> {
    read(&output.join(name)).map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// A file, if it is there.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// The names in a folder, in order; none where there is no folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The records of one object.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<Record>, String> {
    if bytes.last() != Some(&b'\n') {
        return Err("it does not end with a newline".to_owned());
    }
    bytes[..bytes.len() - 1].split(|byte| *byte == b'\n').map(record).collect()
}

fn record(text: &[u8]) -> Result<Record, String> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(text)))?;
    // A successful record of the OpenAI format has its ordinal only in its own id.
    let ordinal = value["ordinal"]
        .as_u64()
        .or_else(|| value["id"].as_str()?.rsplit('_').next()?.parse().ok())
        .ok_or_else(|| format!("no ordinal: {value}"))?;
    let id = value.get("prompt_id").or_else(|| value.get("custom_id")).cloned().unwrap_or_default();
    let outcome = value["outcome"].as_str().unwrap_or("succeeded").to_owned();
    Ok(Record { ordinal, id, outcome })
}

/// The ordinals of a state's `completed`.
pub(crate) fn completed(state: &Value) -> BTreeSet<u64> {
    let bytes = STANDARD.decode(state["completed"].as_str().unwrap()).unwrap();
    RoaringBitmap::deserialize_from(&*bytes).unwrap().into_iter().map(u64::from).collect()
}

/// The listed parts of a state with their numbers of lines.
pub(crate) fn listed(state: &Value) -> BTreeMap<String, u64> {
    let rows = state["parts"].as_array().unwrap();
    rows.iter().map(|row| (row[0].as_str().unwrap().to_owned(), row[2].as_u64().unwrap())).collect()
}

/// The epoch in the name of a part.
pub(crate) fn epoch_of(part: &str) -> u64 {
    part.rsplit('/').next().unwrap().split('-').next().unwrap().parse().unwrap()
}

/// The lines held by whole parts that are listed, or that the next claimant must adopt.
pub(super) fn held(output: &Path, damaged: &BTreeSet<String>) -> BTreeSet<u64> {
    let state = document(output, "state.json");
    let sealed = state.as_ref().map_or(0, |state| state["sealed"].as_u64().unwrap());
    let listed = state.as_ref().map(listed).unwrap_or_default();
    names(&output.join("parts"))
        .into_iter()
        .map(|name| format!("parts/{name}"))
        .filter(|name| listed.contains_key(name) || epoch_of(name) > sealed)
        .filter(|name| !damaged.contains(name))
        .filter_map(|name| records(&read(&output.join(name))?).ok())
        .flatten()
        .map(|record| record.ordinal)
        .collect()
}
