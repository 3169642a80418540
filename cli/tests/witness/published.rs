//! What is published (T1 and T2): the receipt's files are what it says, and each line is in them once, under its own id.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    Line,
    output::{self, Contents},
};

/// A receipt and everything it names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Published {
    pub(crate) receipt: Value,
    /// Lines per outcome, counted from the files.
    pub(crate) outcomes: BTreeMap<String, u64>,
}

impl Published {
    /// How many lines came to this.
    pub(crate) fn count(&self, outcome: &str) -> u64 {
        self.outcomes.get(outcome).copied().unwrap_or_default()
    }
}

/// Reads everything that is published.
pub(super) fn check(contents: &dyn Contents, lines: &[Line]) -> Result<Published, String> {
    let receipt = output::document(contents, "receipt.json").ok_or("T1: there is no receipt")?;
    let mut ids: BTreeMap<u64, Value> = BTreeMap::new();
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for named in receipt["outputs"].as_array().unwrap() {
        let name = named["name"].as_str().unwrap();
        let records = object(contents, name, named).map_err(|problem| format!("T1: {name}: {problem}"))?;
        if named["lines"] != records.len() as u64 {
            return Err(format!("T2: {name} has {} records, not {}", records.len(), named["lines"]));
        }
        for record in records {
            *outcomes.entry(record.outcome.clone()).or_default() += 1;
            let line = usize::try_from(record.ordinal).ok().and_then(|ordinal| lines.get(ordinal));
            let line = line.ok_or_else(|| format!("T2: line {} is not in the input", record.ordinal))?;
            if line.rejected != (record.outcome == "rejected") {
                return Err(format!("T2: line {} came to `{}`", record.ordinal, record.outcome));
            }
            if ids.insert(record.ordinal, record.id).is_some() {
                return Err(format!("T2: line {} is published twice", record.ordinal));
            }
        }
    }
    // Without its input a job has lost the ids of what was not answered.
    let ids_lost = receipt["identity"]["found"].is_null();
    for (ordinal, line) in (0u64..).zip(lines) {
        let id = ids.get(&ordinal).ok_or_else(|| format!("T2: line {ordinal} is not published"))?;
        if *id != line.id && !(ids_lost && id.is_null()) {
            return Err(format!("T2: line {ordinal} is published as {id}, not as {}", line.id));
        }
    }
    for (outcome, said) in receipt["outcomes"].as_object().unwrap() {
        let counted = outcomes.get(outcome).copied().unwrap_or_default();
        if *said != counted {
            return Err(format!("T2: {counted} lines came to `{outcome}`, the receipt says {said}"));
        }
    }
    if receipt["lines"] != lines.len() as u64 {
        return Err(format!("T2: the receipt speaks of {} lines, not {}", receipt["lines"], lines.len()));
    }
    if !ids_lost && receipt["identity"]["expected"] != receipt["identity"]["found"] {
        return Err(format!("T2: the identity sums differ: {}", receipt["identity"]));
    }
    Ok(Published { receipt, outcomes })
}

/// The records of one published file, which is what the receipt says.
fn object(contents: &dyn Contents, name: &str, named: &Value) -> Result<Vec<output::Record>, String> {
    let bytes = contents.read(name).ok_or("it is not there")?;
    let mut sha256 = String::new();
    for byte in Sha256::digest(&bytes) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    let generation = contents.generation(name).ok_or("it has no generation")?;
    for (what, said, found) in [
        ("size", &named["size_bytes"], Value::from(bytes.len())),
        ("CRC32C", &named["crc32c"], Value::from(format!("{:08x}", crc32c::crc32c(&bytes)))),
        ("SHA-256", &named["sha256"], Value::from(sha256)),
        ("generation", &named["generation"], Value::from(generation)),
    ] {
        if *said != found {
            return Err(format!("its {what} is {found}, the receipt says {said}"));
        }
    }
    output::records(&bytes)
}
