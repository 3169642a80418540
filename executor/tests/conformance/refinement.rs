//! What the stored objects are in the model: the refinement of `docs/model.md`.
//!
//! Parts of one kind are compared in the order of their names, by epoch and lines: the code gives a sequence out when a
//! part is opened, the model when it is closed.

use std::collections::BTreeMap;

use penstock_batchfile::{Format, OutcomeKind, read_record};
use penstock_job::{
    Receipt, State, document,
    layout::{Kind, PartName},
    receipt::ReceiptEnding,
    state::Phase,
};
use penstock_model::{lines::Lines, storage};
use penstock_storage::{MemoryStore, ObjectName, Store};

/// What code and model are compared by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Abstract {
    pub(crate) state: Option<AbstractState>,
    pub(crate) parts: [Vec<AbstractPart>; 2],
    pub(crate) finals: [Option<Lines>; 2],
    pub(crate) receipt: Option<AbstractReceipt>,
}

/// Epoch and lines.
type AbstractPart = (u32, Lines);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbstractState {
    epoch: u32,
    sealed: u32,
    finalizing: bool,
    ending: bool,
    listed: [Vec<AbstractPart>; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AbstractReceipt {
    ending: bool,
    parts: u64,
    /// By kind.
    outcomes: [u64; 2],
}

/// Reads what is stored. Remembers parts, which are listed and published after they were deleted.
#[derive(Debug, Default)]
pub(crate) struct Refinement {
    parts: BTreeMap<PartName, Vec<u8>>,
    /// The incarnation in `state.json` by process.
    incarnations: BTreeMap<u8, String>,
}

impl Refinement {
    /// The objects as the model sees them; `Err` tells what no state of the model corresponds to.
    pub(crate) async fn of_store(
        &mut self,
        store: &MemoryStore,
        model: &storage::Storage,
    ) -> Result<Abstract, String> {
        let mut stored: [Vec<AbstractPart>; 2] = Default::default();
        for object in store.list("parts/", None).await.unwrap().objects {
            let name: PartName =
                object.name.as_str().parse().map_err(|_| format!("{} is no part", object.name))?;
            let bytes = read(store, object.name.as_str()).await.unwrap_or_default();
            let known = self.parts.entry(name).or_insert_with(|| bytes.clone());
            if *known != bytes {
                return Err(format!("{name} has changed"));
            }
            stored[place(name.kind)].push((name.epoch.0, lines_of(&bytes, name.kind)?));
        }
        let state = read(store, "state.json").await.map(|bytes| document::read::<State>(&bytes).unwrap());
        let listed = state.as_ref().map(|state| self.state(state)).transpose()?;
        if let (Some(state), Some((_, writer))) = (&state, &model.state) {
            let incarnation = state.incarnation.to_string();
            let known = self.incarnations.entry(writer.incarnation).or_insert_with(|| incarnation.clone());
            if *known != incarnation {
                return Err(format!("process {} writes as another incarnation", writer.incarnation));
            }
        }
        let mut finals = [None, None];
        for kind in Kind::ALL {
            let name = kind.final_name(0, 1);
            let Some(bytes) = read(store, &name).await else { continue };
            let parts = state.iter().flat_map(|state| &state.parts).filter(|part| part.name.kind == kind);
            let whole: Vec<u8> = parts.flat_map(|part| self.parts[&part.name].clone()).collect();
            if whole != bytes {
                return Err(format!("{name} is not what the listed parts come to"));
            }
            finals[place(kind)] = Some(lines_of(&bytes, kind)?);
        }
        let receipt =
            read(store, "receipt.json").await.map(|bytes| receipt(&document::read(&bytes).unwrap()));
        Ok(Abstract { state: listed, parts: stored, finals, receipt })
    }

    fn state(&self, state: &State) -> Result<AbstractState, String> {
        let mut listed: [Vec<AbstractPart>; 2] = Default::default();
        let mut completed = Lines::NONE;
        for part in &state.parts {
            let bytes = self.parts.get(&part.name);
            let bytes = bytes.ok_or_else(|| format!("{} is listed and was never stored", part.name))?;
            let lines = lines_of(bytes, part.name.kind)?;
            completed = completed.and(lines);
            listed[place(part.name.kind)].push((part.name.epoch.0, lines));
        }
        let told: Lines = state.completed.iter().map(|ordinal| Lines::one(small(ordinal.get()))).collect();
        if told != completed {
            return Err(format!("{told:?} is said to be completed, {completed:?} is listed"));
        }
        Ok(AbstractState {
            epoch: state.epoch.0,
            sealed: state.sealed.0,
            finalizing: state.phase == Phase::Finalizing,
            ending: state.ending.is_some(),
            listed,
        })
    }
}

/// A state of the model, to be compared.
pub(crate) fn of_model(model: &storage::Storage) -> Abstract {
    let parts = |parts: &[storage::Part]| {
        Kind::ALL.map(|kind| {
            let of_kind = parts.iter().filter(|part| part.name.kind == kind);
            of_kind.map(|part| (part.name.epoch.0, part.lines)).collect()
        })
    };
    let lines = |parts: &[storage::Part]| parts.iter().map(|part| part.lines).collect::<Lines>();
    Abstract {
        state: model.state.as_ref().map(|(content, _)| AbstractState {
            epoch: content.epoch.0,
            sealed: content.sealed.0,
            finalizing: content.finalizing,
            ending: content.ending,
            listed: parts(&content.parts),
        }),
        parts: parts(&model.parts),
        finals: Kind::ALL.map(|kind| model.finals[kind].as_deref().map(lines)),
        receipt: model.receipt.as_ref().map(|decision| AbstractReceipt {
            ending: decision.ending,
            parts: decision.parts.len() as u64,
            outcomes: Kind::ALL.map(|kind| {
                let of_kind = decision.parts.iter().filter(|part| part.name.kind == kind);
                of_kind.map(|part| part.lines.iter().count() as u64).sum()
            }),
        }),
    }
}

fn receipt(receipt: &Receipt) -> AbstractReceipt {
    let succeeded = receipt.outcomes.succeeded;
    AbstractReceipt {
        ending: receipt.ending != ReceiptEnding::Completed,
        parts: receipt.parts.count,
        outcomes: [succeeded, receipt.outcomes.total() - succeeded],
    }
}

/// The lines that records stand for, each once and each of the right kind.
fn lines_of(bytes: &[u8], kind: Kind) -> Result<Lines, String> {
    let mut lines = Lines::NONE;
    for record in bytes.split_inclusive(|byte| *byte == b'\n') {
        let record = record.strip_suffix(b"\n").ok_or("a record is torn")?;
        let head = read_record(record, Format::Prompts).map_err(|error| error.to_string())?;
        let line = Lines::one(small(head.ordinal.get()));
        let fits = (head.outcome == OutcomeKind::Succeeded) == (kind == Kind::Results);
        if !fits || !lines.is_disjoint(line) {
            return Err(format!("a record of line {} does not belong there", head.ordinal));
        }
        lines = lines.and(line);
    }
    Ok(lines)
}

async fn read(store: &MemoryStore, name: &str) -> Option<Vec<u8>> {
    let name = ObjectName::parse(name).unwrap();
    store.get(&name, u64::MAX).await.unwrap().map(|(_, bytes)| bytes.to_vec())
}

fn place(kind: Kind) -> usize {
    match kind {
        Kind::Results => 0,
        Kind::Errors => 1,
    }
}

fn small(ordinal: u32) -> u8 {
    u8::try_from(ordinal).expect("a model has few lines")
}
