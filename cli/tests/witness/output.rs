//! An output as objects and JSON, read without any of Penstock's readers: a folder, or what is below a path in a bucket
//! of the storage double.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use penstock_gcs_double::{Change, History};
use roaring::RoaringBitmap;
use serde_json::Value;

/// Where an output is.
#[derive(Debug, Clone)]
pub(crate) enum Output {
    Folder(PathBuf),
    /// What is below a path of the one bucket of a double, which keeps its history.
    Bucket {
        history: History,
        /// Ends with `/`.
        below: String,
    },
}

/// What lies in an output at one moment. Names are relative to it.
pub(crate) trait Contents: Send + Sync {
    /// An object, if it is there.
    fn read(&self, name: &str) -> Option<Vec<u8>>;
    fn contains(&self, name: &str) -> bool;
    fn generation(&self, name: &str) -> Option<String>;
    /// The names directly below a folder, without it, in order.
    fn names(&self, folder: &str) -> Vec<String>;
}

/// The objects of a bucket at a moment in its history, each with the change that made it.
#[derive(Debug, Default)]
pub(super) struct Objects(BTreeMap<String, Change>);

/// One published or stored record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) ordinal: u64,
    pub(crate) id: Value,
    pub(crate) outcome: String,
}

impl Output {
    /// What lies in it now.
    pub(crate) fn now(&self) -> Box<dyn Contents> {
        match self {
            Self::Folder(folder) => Box::new(folder.clone()),
            Self::Bucket { history, below } => {
                let mut objects = Objects::default();
                for change in history.since(0) {
                    objects.take(below, &change);
                }
                Box::new(objects)
            }
        }
    }

    /// A JSON document of it, if it is there.
    pub(crate) fn document(&self, name: &str) -> Option<Value> {
        document(&*self.now(), name)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(formatter, "{}", folder.display()),
            Self::Bucket { below, .. } => write!(formatter, "the bucket's {below}"),
        }
    }
}

impl Contents for PathBuf {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.join(name);
        match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.join(name).exists()
    }

    fn generation(&self, name: &str) -> Option<String> {
        Some(document(self, &format!(".penstock/{name}.meta"))?["generation"].to_string())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        names_in(&self.join(folder))
    }
}

/// The names in a folder, in order; none where there is no folder.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

impl Objects {
    /// Takes a change over; the name within the output and what was there before, unless it is about another place.
    pub(super) fn take(&mut self, below: &str, change: &Change) -> Option<(String, Option<Change>)> {
        let name = change.object().strip_prefix(below)?.to_owned();
        let before = match change.generation() {
            Some(_) => self.0.insert(name.clone(), change.clone()),
            None => self.0.remove(&name),
        };
        Some((name, before))
    }
}

impl Contents for Objects {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name)?.content().unwrap()
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn generation(&self, name: &str) -> Option<String> {
        self.0.get(name)?.generation()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let below = |name: &String| name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        self.0.keys().filter_map(below).filter(|name| !name.contains('/')).collect()
    }
}

/// A JSON document, if it is there.
pub(crate) fn document(contents: &dyn Contents, name: &str) -> Option<Value> {
    contents.read(name).map(|bytes| serde_json::from_slice(&bytes).unwrap())
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
pub(super) fn held(contents: &dyn Contents, damaged: &BTreeSet<String>) -> BTreeSet<u64> {
    let state = document(contents, "state.json");
    let sealed = state.as_ref().map_or(0, |state| state["sealed"].as_u64().unwrap());
    let listed = state.as_ref().map(listed).unwrap_or_default();
    let parts = contents.names("parts").into_iter().map(|name| format!("parts/{name}"));
    parts
        .filter(|name| listed.contains_key(name) || epoch_of(name) > sealed)
        .filter(|name| !damaged.contains(name))
        .filter_map(|name| records(&contents.read(&name)?).ok())
        .flatten()
        .map(|record| record.ordinal)
        .collect()
}
