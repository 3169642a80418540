//! What is right and wrong of an output over time, told as it changes: what its states say one after another, and that
//! the right objects are there at each time (T3, T4, T9, T10).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    history,
    output::{self, Contents},
};

/// Names that a run replaces or takes back: the state by compare-and-swap, and what validation may withdraw.
pub(super) const REPLACED: [&str; 2] = ["state.json", "validation.json"];
/// Outcomes of lines that were not answered.
const UNDONE: [&str; 3] = ["cancelled", "expired", "abandoned"];

/// What a test has damaged or is about to.
#[derive(Debug, Clone, Default)]
pub(super) struct Damaged(Arc<Mutex<BTreeSet<String>>>);

impl Damaged {
    pub(super) fn add(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Judge {
    damaged: Damaged,
    state: Option<Value>,
    /// Whether a receipt was told of.
    receipt: bool,
    /// The ordinals of each part that was seen.
    parts: BTreeMap<String, BTreeSet<u64>>,
    problems: BTreeSet<String>,
}

impl Judge {
    pub(super) fn new(damaged: Damaged) -> Self {
        Self { damaged, ..Self::default() }
    }

    /// Something is there that was not, or a [replaced](REPLACED) name has another content.
    pub(super) fn appeared(&mut self, contents: &dyn Contents, name: &str) {
        if name.starts_with(".penstock") {
            // The store's own.
        } else if name == "state.json" {
            self.look_at_state(contents);
        } else if name == "receipt.json" {
            self.receipt = true;
        } else if name.starts_with("parts/") && !self.parts.contains_key(name) {
            self.part_appeared(contents, name);
        }
    }

    /// T10: only some names are ever replaced.
    pub(super) fn overwritten(&mut self, name: &str) {
        if !self.damaged.contains(name) {
            self.problem(format!("T10: {name} was put in the place of whatever was there"));
        }
    }

    /// T9: a part with undone lines comes only after the ending that they say.
    fn part_appeared(&mut self, contents: &dyn Contents, name: &str) {
        let Some(bytes) = contents.read(name) else { return };
        let records = match output::records(&bytes) {
            Ok(records) => records,
            Err(_) if self.damaged.contains(name) => return,
            Err(problem) => return self.problem(format!("T3: {name}: {problem}")),
        };
        let undone = records.iter().map(|record| record.outcome.as_str()).find(|one| UNDONE.contains(one));
        if let Some(outcome) = undone {
            let ending = self.state.as_ref().map_or(&Value::Null, |state| &state["ending"]["reason"]);
            if ending != outcome {
                let problem =
                    format!("T9: {name} has lines that are {outcome}, while the ending is {ending}");
                self.problem(problem);
            }
        }
        let ordinals: BTreeSet<u64> = records.iter().map(|record| record.ordinal).collect();
        if ordinals.len() != records.len() {
            self.problem(format!("T3: {name} holds a line twice"));
        }
        self.parts.insert(name.to_owned(), ordinals);
    }

    /// T10: nothing is deleted before there is a receipt. What a validation has stored it may take back.
    pub(super) fn gone(&mut self, name: &str) {
        let own = name.starts_with(".penstock") || name.starts_with("intake");
        if !own && !self.receipt && !self.damaged.contains(name) {
            self.problem(format!("T10: {name} was deleted before there was a receipt"));
        }
    }

    pub(super) fn look_at_state(&mut self, contents: &dyn Contents) {
        let Some(state) = output::document(contents, "state.json") else { return };
        let mut problems = match &self.state {
            Some(before) if *before == state => return,
            Some(before) => history::compare(before, &state),
            None => history::alone(&state),
        };
        self.state = Some(state.clone());
        problems.extend(self.check_manifest(contents, &state));
        self.problems.extend(problems);
    }

    /// T3: listed parts are there until there is a receipt; they share no line; `completed` is all of their lines.
    fn check_manifest(&mut self, contents: &dyn Contents, state: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        let mut united = BTreeSet::new();
        for (name, lines) in output::listed(state) {
            let damaged = self.damaged.contains(&name);
            if !damaged && !contents.contains(&name) && !contents.contains("receipt.json") {
                problems.push(format!("T3: {name} is listed and not there"));
            }
            if !self.parts.contains_key(&name) {
                self.part_appeared(contents, &name);
            }
            // Whoever looks after the receipt may find them deleted.
            let Some(ordinals) = self.parts.get(&name) else { return problems };
            if ordinals.len() as u64 != lines && !damaged {
                problems.push(format!("T3: {name} holds {} lines, listed are {lines}", ordinals.len()));
            }
            let shared = ordinals.intersection(&united).count();
            if shared > 0 && !damaged {
                problems.push(format!("T3: {name} shares {shared} lines with parts before it"));
            }
            united.extend(ordinals);
        }
        let completed = output::completed(state);
        if completed != united {
            let differing: Vec<_> = completed.symmetric_difference(&united).take(20).collect();
            problems.push(format!("T3: `completed` is not what the parts hold: {differing:?}"));
        }
        problems
    }

    fn problem(&mut self, problem: String) {
        self.problems.insert(problem);
    }

    /// What was wrong.
    pub(super) fn problems(self) -> Vec<String> {
        self.problems.into_iter().collect()
    }
}
