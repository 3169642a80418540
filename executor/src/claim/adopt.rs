//! Adopt (C6 of the job protocol): take over the parts that earlier epochs made durable but did not list.

use std::collections::HashSet;

use penstock_job::{
    Epoch, OrdinalSet,
    checksum::Crc32c,
    layout::{self, PartName},
    state::{Part, PartOutcomes},
    usage::TokensByModel,
};
use penstock_storage::ObjectMeta;

use super::Claimed;
use crate::{
    error::RunError,
    output::Output,
    records::{PaidRecords, Problem, RecordForm, Stored, read_object},
};

/// What the unsealed epochs left.
#[derive(Debug, Default)]
pub(super) struct Adopted {
    pub(super) parts: Vec<Part>,
    pub(super) ordinals: OrdinalSet,
    pub(super) outcomes: PartOutcomes,
    pub(super) tokens: TokensByModel,
    pub(super) discarded_parts: u64,
    pub(super) discarded_lines: u64,
}

/// One part as its records tell it.
#[derive(Debug)]
struct Seen {
    part: Part,
    ordinals: OrdinalSet,
    outcomes: PartOutcomes,
    tokens: TokensByModel,
}

/// Reads every unlisted part of the epochs between `sealed` and our own, in name order.
pub(super) async fn adopt(output: &Output, claimed: &mut Claimed) -> Result<Adopted, RunError> {
    let state = &claimed.state;
    let listed: HashSet<PartName> = state.parts.iter().map(|part| part.name).collect();
    let mut adopted = Adopted::default();
    let paid = PaidRecords::of(&state.job.spec, &state.usage);
    // The first name behind every name of the sealed epochs.
    let start_after = format!("{}{:08}~", layout::PARTS, state.sealed.0);
    for object in output.list(layout::PARTS, Some(start_after)).await? {
        let Ok(name) = object.name.as_str().parse::<PartName>() else {
            continue;
        };
        if listed.contains(&name) || !unsealed(name.epoch, state.sealed, state.epoch) {
            continue;
        }
        let mut lines = 0;
        let problem = match look(output, claimed, &adopted, &paid, name, &object, &mut lines).await? {
            Ok(seen) => {
                adopted.ordinals.unite(&seen.ordinals);
                adopted.outcomes.add(seen.outcomes);
                adopted.tokens.add(&seen.tokens);
                adopted.parts.push(seen.part);
                continue;
            }
            Err(problem) => problem,
        };
        adopted.discarded_parts += 1;
        adopted.discarded_lines += lines;
        tracing::warn!(part = %name, problem, "not adopted; its lines are sent again unless another part holds them");
    }
    Ok(adopted)
}

fn unsealed(epoch: Epoch, sealed: Epoch, own: Epoch) -> bool {
    sealed < epoch && epoch < own
}

async fn look(
    output: &Output,
    claimed: &Claimed,
    adopted: &Adopted,
    paid: &PaidRecords,
    name: PartName,
    object: &ObjectMeta,
    lines: &mut u64,
) -> Result<Result<Seen, Problem>, RunError> {
    let stored = Stored {
        name: object.name.clone(),
        generation: object.generation.clone(),
        size_bytes: object.size_bytes,
    };
    let total = claimed.state.input.lines;
    let mut ordinals = OrdinalSet::new();
    let mut outcomes = PartOutcomes::default();
    let mut tokens = TokensByModel::default();
    let read = read_object(output, &stored, RecordForm::of(&claimed.state.job.spec), |record, head| {
        *lines += 1;
        let ordinal = head.ordinal;
        if u64::from(ordinal.get()) >= total {
            return Err(format!("ordinal {ordinal} is not in the input"));
        }
        if claimed.state.completed.contains(ordinal)
            || claimed.rejected.contains(ordinal)
            || adopted.ordinals.contains(ordinal)
            || !ordinals.insert(ordinal)
        {
            return Err(format!("ordinal {ordinal} has an outcome already"));
        }
        let right_kind = (name.kind == layout::Kind::Results)
            == (head.outcome == penstock_batchfile::OutcomeKind::Succeeded);
        if right_kind && outcomes.count(head.outcome) {
            if let Some(paid) = paid.read(record) {
                tokens.count(&paid.model, paid.tokens);
            }
            Ok(())
        } else {
            Err(format!("a record of the outcome `{}` does not belong there", head.outcome))
        }
    })
    .await?;
    Ok(read.and_then(|(checksum, records)| {
        if checksum.size_bytes != object.size_bytes || records == 0 {
            return Err("it is not whole".to_owned());
        }
        let lines = u32::try_from(records).map_err(|error| error.to_string())?;
        let generation = object.generation.as_str().into();
        let part = Part {
            name,
            generation,
            lines,
            size_bytes: checksum.size_bytes,
            crc32c: Crc32c(checksum.crc32c),
        };
        Ok(Seen { part, ordinals, outcomes, tokens })
    }))
}
