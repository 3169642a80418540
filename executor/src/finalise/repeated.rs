//! A line with two records: a defect that is reported and mended (F2 of the job protocol). The later part is written
//! anew without the record and takes the other's place in the manifest.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use penstock_job::{
    OrdinalSet, Step,
    checksum::Crc32c,
    layout::PartName,
    state::{Part, PartOutcomes},
};
use penstock_storage::{Checksum, Generation, ObjectMeta};

use crate::{
    error::RunError,
    ledger::{Ledger, highest_sequence},
    output::{Output, may_pass, object_name},
    records::{RecordForm, Stored, read_object},
    results::pause,
};

/// Rewrites every part but the first that holds one of `repeated`, leaving aside those that are `dropped` anyway.
pub(super) async fn rewrite_without(
    output: &Output,
    ledger: &Ledger,
    form: RecordForm,
    repeated: &OrdinalSet,
    dropped: &BTreeSet<PartName>,
) -> Result<(), RunError> {
    tracing::error!(
        lines = repeated.len(),
        "lines with two records: a defect; the later records are taken out"
    );
    let (parts, epoch) = ledger.look(|state, _| (state.parts.clone(), state.epoch)).await;
    let mut sequence = highest_sequence(&parts, epoch);
    // A rejected line has its record already.
    let mut seen = OrdinalSet::clone(ledger.rejected());
    let mut replacements: BTreeMap<PartName, Option<Part>> = BTreeMap::new();
    let mut removed = PartOutcomes::default();
    // What cannot be read is dropped by the reconciliation that follows.
    for part in parts.iter().filter(|part| !dropped.contains(&part.name)) {
        let stored = Stored {
            name: object_name(&part.name),
            generation: Generation::new(&*part.generation),
            size_bytes: part.size_bytes,
        };
        let Some(rest) = read_without(output, &stored, form, repeated, &seen).await? else {
            continue;
        };
        seen.unite(&rest.firsts);
        if rest.removed.total() == 0 {
            continue;
        }
        removed.add(rest.removed);
        sequence += 1;
        let name = PartName { epoch, sequence, kind: part.name.kind };
        let replacement = if rest.lines == 0 { None } else { Some(write(output, ledger, name, rest).await?) };
        replacements.insert(part.name, replacement);
    }
    let rejected = ledger.rejected();
    ledger
        .repair(|state| {
            for ordinal in repeated.iter().filter(|ordinal| rejected.contains(*ordinal)) {
                state.completed.remove(ordinal);
            }
            state.parts.retain(|part| !replacements.contains_key(&part.name));
            state.parts.extend(replacements.into_values().flatten());
            state.parts.sort_unstable_by_key(|part| part.name);
            state.outcomes.subtract(removed);
        })
        .await
}

/// A part without the records of lines that have one already.
#[derive(Debug, Default)]
struct Rest {
    content: Vec<u8>,
    lines: u32,
    /// The repeated lines whose record is here and stays.
    firsts: OrdinalSet,
    removed: PartOutcomes,
}

/// `None` where the part cannot be read: perhaps a successor has published and cleaned, which the next write of the state
/// finds out; else the reconciliation that follows drops it.
async fn read_without(
    output: &Output,
    stored: &Stored,
    form: RecordForm,
    repeated: &OrdinalSet,
    seen: &OrdinalSet,
) -> Result<Option<Rest>, RunError> {
    let mut rest = Rest::default();
    let read = read_object(output, stored, form, |record, head| {
        let is_repeated = repeated.contains(head.ordinal);
        if is_repeated && (seen.contains(head.ordinal) || !rest.firsts.insert(head.ordinal)) {
            rest.removed.count(head.outcome);
        } else {
            rest.content.extend_from_slice(record);
            rest.content.push(b'\n');
            rest.lines += 1;
        }
        Ok(())
    })
    .await;
    let problem = match read {
        Ok(Ok(_)) => return Ok(Some(rest)),
        Ok(Err(problem)) => problem,
        Err(error) if may_pass(&error) => return Err(error.into()),
        Err(error) => error.to_string(),
    };
    tracing::error!(part = %stored.name, problem, "a part with repeated lines cannot be read");
    Ok(None)
}

/// Makes a part durable, by the same rule as an upload (S3).
async fn write(output: &Output, ledger: &Ledger, name: PartName, rest: Rest) -> Result<Part, RunError> {
    let (checksum, content) = (Checksum::of(&rest.content), Bytes::from(rest.content));
    let object = object_name(&name);
    for attempt in 0u32.. {
        let error = match output.create(Step::Rewrite, &object, content.clone()).await {
            Ok(meta) => return Ok(row(name, rest.lines, &meta, checksum)),
            Err(error) if !error.ambiguous() => return Err(error.into()),
            Err(error) => error,
        };
        match output.head(&object).await? {
            Some(meta) if meta.checksum() == Some(checksum) => {
                return Ok(row(name, rest.lines, &meta, checksum));
            }
            // Only another process that uses this epoch could have written something else.
            Some(_) => return Err(RunError::ClaimLost),
            None => pause(error, attempt, ledger.board()).await,
        }
    }
    unreachable!("the loop ends only by returning")
}

fn row(name: PartName, lines: u32, meta: &ObjectMeta, checksum: Checksum) -> Part {
    let generation = meta.generation.as_str().into();
    Part { name, generation, lines, size_bytes: checksum.size_bytes, crc32c: Crc32c(checksum.crc32c) }
}
