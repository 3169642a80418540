//! The ids of the records against the ids of the lines, while the input is still the one that the job began with.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    ops::{ControlFlow, Range},
    sync::Arc,
};

use penstock_batchfile::{Content, Line, LineSplitter, Ordinal, Position, RawId};
use penstock_job::{CanonicalSpec, Receipt, identity::hex, identity_sum::IdentitySum};
use penstock_storage::{Input, InputReader};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    Contradiction, VerifyError,
    records::{Tally, each_record},
};
use crate::{
    error::CommandError,
    output::Output,
    run::{InputError, same_input},
};

/// Ids that are compared one by one in a pass: 8 MiB of fingerprints.
const RANGE: u32 = 1 << 20;

/// What became of the look at the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputCheck {
    /// It is the one that was validated, and each record has the id of its line.
    Agrees,
    /// The same, but records of lines that were not sent have no ids.
    AgreesWithoutIds,
    /// It is gone or was replaced, which is no contradiction.
    Gone,
}

impl fmt::Display for InputCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Agrees => "as validated; each record has the id of its line",
            Self::AgreesWithoutIds => "as validated; the records of lines that were not sent have no ids",
            Self::Gone => {
                "not looked at: it is gone or has changed since, so its recorded digests stand for it"
            }
        })
    }
}

/// Reads the input, if it is there, and compares it with the receipt and with the records.
pub(super) async fn check(
    published: &Output,
    receipt: &Receipt,
    tally: &Tally,
) -> Result<InputCheck, CommandError> {
    let spec = &receipt.job.spec;
    let Some(input) = same_input(spec).await? else {
        return Ok(InputCheck::Gone);
    };
    let mut lines = 0;
    let mut sum = IdentitySum::default();
    let sha256 = each_line(&input, spec, |line| {
        lines += 1;
        sum.add(line.position.ordinal, id_of(line, spec));
    })
    .await?;
    let contradiction =
        |problem| CommandError::from(VerifyError::from(Contradiction::of(&spec.input.uri, problem)));
    if sha256 != receipt.input.sha256 {
        return Err(contradiction(format!(
            "its SHA-256 is {sha256}, but the receipt has {}",
            receipt.input.sha256
        )));
    }
    if lines != receipt.lines {
        return Err(contradiction(format!("it has {lines} lines, but the receipt has {}", receipt.lines)));
    }
    if receipt.identity.found.is_none() {
        return Ok(InputCheck::AgreesWithoutIds);
    }
    if sum != tally.identity_sum {
        return Err(match first_difference(published, receipt, &input).await? {
            Some(contradiction) => VerifyError::from(contradiction).into(),
            None => contradiction("its ids differ from those of the records".to_owned()),
        });
    }
    Ok(InputCheck::Agrees)
}

/// The id of a line as records carry it.
fn id_of<'a>(line: &Line<'a>, spec: &CanonicalSpec) -> Option<&'a str> {
    match line.content {
        Content::Whole(bytes) => RawId::find(bytes, spec.format).map(|id| id.raw()),
        Content::TooLong { .. } => None,
    }
}

/// Visits each line of the input; returns its hex SHA-256.
async fn each_line(
    input: &Arc<dyn Input>,
    spec: &CanonicalSpec,
    mut visit: impl FnMut(&Line<'_>),
) -> Result<String, InputError> {
    let mut look = |line: Line<'_>| {
        visit(&line);
        ControlFlow::Continue(())
    };
    let mut reader = InputReader::whole(Arc::clone(input));
    let mut splitter = LineSplitter::new(Position::START, spec.max_line_bytes);
    let mut sha256 = Sha256::new();
    while let Some(chunk) = reader.next().await.map_err(InputError::Storage)? {
        sha256.update(&chunk);
        let _ = splitter.feed(&chunk, &mut look);
    }
    let _ = splitter.finish(&mut look);
    Ok(hex(&sha256.finalize()))
}

/// The first record, by ordinal range and then by place, whose id is not that of its line. The sums have shown that
/// there is one; here it is found in bounded memory, with a pass for each range.
async fn first_difference(
    published: &Output,
    receipt: &Receipt,
    input: &Arc<dyn Input>,
) -> Result<Option<Contradiction>, CommandError> {
    let spec = &receipt.job.spec;
    let end = u32::try_from(receipt.lines).unwrap_or(u32::MAX);
    let mut start = 0;
    while start < end {
        let range = start..end.min(start.saturating_add(RANGE));
        let mut lines = Vec::with_capacity(range.len());
        each_line(input, spec, |line| {
            if range.contains(&line.position.ordinal.get()) {
                lines.push((fingerprint(id_of(line, spec)), line.position.line_number));
            }
        })
        .await?;
        for output in &receipt.outputs {
            let compared = each_record(published, output, spec, |line, head| {
                match line_of(&lines, &range, head.ordinal) {
                    Some((theirs, input_line)) if theirs != fingerprint(head.id) => {
                        let problem = format!(
                            "its id is {}, which is not the id of line {input_line} of the input",
                            head.id.unwrap_or("null")
                        );
                        Err(Contradiction::of(&output.name, problem).at_line(line).about(head.ordinal))
                    }
                    _ => Ok(()),
                }
            })
            .await;
            match compared {
                Ok(()) => {}
                Err(VerifyError::Contradiction(contradiction)) => return Ok(Some(contradiction)),
                Err(error) => return Err(error.into()),
            }
        }
        start = range.end;
    }
    Ok(None)
}

/// Fingerprint and line number of an ordinal in `range`.
fn line_of(lines: &[(u64, u64)], range: &Range<u32>, ordinal: Ordinal) -> Option<(u64, u64)> {
    let index = ordinal.get().checked_sub(range.start)?;
    lines.get(usize::try_from(index).ok()?).copied()
}

fn fingerprint(id: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
