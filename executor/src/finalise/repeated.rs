//! A line with two records: a defect that is reported and mended (F2 of the job protocol). The later part is written
//! anew without the record and takes the other's place in the manifest.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use penstock_batchfile::Format;
use penstock_job::{
    OrdinalSet, Step,
    checksum::Crc32c,
    layout::PartName,
    state::{Part, PartOutcomes},
};
use penstock_storage::{Checksum, Generation};

use crate::{
    error::RunError,
    ledger::Ledger,
    output::{Output, object_name},
    records::{Stored, read_object},
    run::highest_sequence,
};

/// Rewrites every part but the first that holds one of `repeated`, leaving aside those that are `dropped` anyway.
pub(super) async fn rewrite_without(
    output: &Output,
    ledger: &Ledger,
    format: Format,
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
        let mut kept = Vec::new();
        let mut lines = 0;
        let mut surplus = false;
        let read = read_object(output, &stored, format, |record, head| {
            if repeated.contains(head.ordinal) && !seen.insert(head.ordinal) {
                surplus = true;
                removed.count(head.outcome);
            } else {
                kept.extend_from_slice(record);
                kept.push(b'\n');
                lines += 1;
            }
            Ok(())
        })
        .await?;
        read.map_err(|problem| RunError::Damaged { name: part.name.to_string(), problem })?;
        if !surplus {
            continue;
        }
        sequence += 1;
        let name = PartName { epoch, sequence, kind: part.name.kind };
        let replacement = if kept.is_empty() { None } else { Some(write(output, name, kept, lines).await?) };
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

async fn write(output: &Output, name: PartName, content: Vec<u8>, lines: u32) -> Result<Part, RunError> {
    let checksum = Checksum::of(&content);
    let object = object_name(&name);
    let meta = match output.create(Step::Rewrite, &object, Bytes::from(content)).await {
        Ok(meta) => meta,
        Err(error) => match output.head(&object).await? {
            Some(meta) if meta.checksum() == Some(checksum) => meta,
            _ => return Err(error.into()),
        },
    };
    let generation = meta.generation.as_str().into();
    Ok(Part { name, generation, lines, size_bytes: checksum.size_bytes, crc32c: Crc32c(checksum.crc32c) })
}
