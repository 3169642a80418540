//! Reconcile (F2 of the job protocol): read every record once more and account for every line with a fresh set.

use std::{collections::BTreeSet, pin::pin};

use futures_util::TryStreamExt;
use penstock_batchfile::{Format, OutcomeKind};
use penstock_job::{
    OrdinalSet, State, Step, Validation,
    checksum::Crc32c,
    finals::{self, FINAL_SIZE_LIMIT, Final, SourceName},
    identity::hex,
    identity_sum::IdentitySum,
    layout::PartName,
    state::{Outcomes, Part, PartOutcomes},
    validation::RejectedFile,
};
use penstock_storage::{Checksum, ErrorKind, Generation};
use sha2::{Digest, Sha256};

use super::repeated::rewrite_without;
use crate::{
    error::RunError,
    ledger::Ledger,
    output::{Output, object_name},
    records::{Problem, RecordReader, Stored, chunks},
};

/// What was found when every line has exactly one outcome.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) finals: Vec<Final>,
    pub(crate) outcomes: Outcomes,
    pub(crate) identity_found: Option<IdentitySum>,
}

/// What reconciliation came to.
#[derive(Debug)]
pub(crate) enum Reconciled {
    /// Every line has exactly one outcome.
    Whole(Box<Account>),
    /// The manifest had to be corrected; the lines that are undone now are to be sent again.
    Repaired,
}

/// What the manifest says.
#[derive(Debug)]
struct Books {
    format: Format,
    lines: u64,
    rejected_files: Vec<RejectedFile>,
    parts: Vec<Part>,
    expected: IdentitySum,
}

impl Books {
    fn of(state: &State, validation: &Validation) -> Self {
        Self {
            format: state.job.spec.format,
            lines: state.input.lines,
            rejected_files: validation.rejected_files.clone(),
            parts: state.parts.clone(),
            expected: validation.identity_sum,
        }
    }
}

/// Reads everything; corrects the manifest where it does not hold.
pub(crate) async fn reconcile(output: &Output, ledger: &Ledger) -> Result<Reconciled, RunError> {
    output.steps().before(Step::Reconcile).await;
    let books = ledger.look(Books::of).await;
    let mut finals = finals::plan(&books.rejected_files, &books.parts, FINAL_SIZE_LIMIT);
    let found = read(output, &books, &mut finals).await?;
    output.steps().after(Step::Reconcile).await;
    if found.seen_rejected != **ledger.rejected() {
        return Err(RunError::Damaged {
            name: penstock_job::layout::INTAKE.to_owned(),
            problem: "the rejected records are not those of the rejected set".to_owned(),
        });
    }
    if !found.repeated.is_empty() {
        rewrite_without(output, ledger, books.format, &found.repeated, &found.dropped).await?;
        return Ok(Reconciled::Repaired);
    }
    let complete = found.seen.len() + found.seen_rejected.len() == books.lines;
    if !complete || !found.dropped.is_empty() {
        drop_and_recount(ledger, found).await?;
        return Ok(Reconciled::Repaired);
    }
    let identity_found = (!found.ids_lost).then_some(found.identity);
    if identity_found.is_some_and(|sum| sum != books.expected) {
        return Err(RunError::Defect("the ids of the records are not those of the input".to_owned()));
    }
    let outcomes = found.outcomes.with_rejected(found.seen_rejected.len());
    if outcomes.total() != books.lines {
        return Err(RunError::Defect(format!("{} outcomes for {} lines", outcomes.total(), books.lines)));
    }
    Ok(Reconciled::Whole(Box::new(Account { finals, outcomes, identity_found })))
}

async fn drop_and_recount(ledger: &Ledger, found: Found) -> Result<(), RunError> {
    let missing: Vec<_> = ledger
        .look(|state, _| {
            state.completed.iter().filter(|ordinal| !found.seen.contains(*ordinal)).take(20).collect()
        })
        .await;
    tracing::error!(parts = found.dropped.len(), first_missing = ?missing, "records are missing; their lines are sent again");
    ledger
        .repair(|state| {
            state.parts.retain(|part| !found.dropped.contains(&part.name));
            state.completed = found.seen;
            state.outcomes = found.outcomes;
            state.cursor = penstock_batchfile::Position::START;
        })
        .await
}

/// What reading came to.
#[derive(Debug, Default)]
struct Found {
    seen: OrdinalSet,
    seen_rejected: OrdinalSet,
    repeated: OrdinalSet,
    outcomes: PartOutcomes,
    identity: IdentitySum,
    ids_lost: bool,
    dropped: BTreeSet<PartName>,
}

/// One source that is being read.
#[derive(Debug)]
struct Open {
    reader: RecordReader,
    /// What its records add, taken over when it turns out to be whole.
    added: Found,
}

/// Reads every source in the order of the published files, filling in their digests.
async fn read(output: &Output, books: &Books, finals: &mut [Final]) -> Result<Found, RunError> {
    let per_final = finals::sources_of(finals, &books.rejected_files, &books.parts);
    let mut owners = Vec::new();
    let mut names = Vec::new();
    let mut sources = Vec::new();
    for (index, of_one) in per_final.iter().enumerate() {
        for source in of_one {
            owners.push(index);
            names.push(source.name);
            sources.push(Stored {
                name: object_name(&source.object_name()),
                generation: Generation::new(source.generation),
                size_bytes: source.size_bytes,
            });
        }
    }
    let expected: Vec<(Checksum, u64)> = per_final
        .iter()
        .flatten()
        .map(|source| (Checksum { size_bytes: source.size_bytes, crc32c: source.crc32c.0 }, source.lines))
        .collect();

    let mut pass = Pass { format: books.format, lines: books.lines, found: Found::default() };
    let mut hashers: Vec<Sha256> = finals.iter().map(|_| Sha256::new()).collect();
    let mut open: Option<(usize, Open)> = None;
    let mut skip: Option<usize> = None;
    // A source that fails ends the stream, so reading goes on behind it with a new one.
    let mut from = 0;
    while from < sources.len() {
        let mut stream = pin!(chunks(output, &sources[from..]));
        let failed = loop {
            let chunk = match stream.try_next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break None,
                Err((index, error)) => break Some((from + index, error)),
            };
            let index = from + chunk.object;
            if skip == Some(index) {
                continue;
            }
            let mut current = match open.take() {
                Some((same, current)) if same == index => current,
                _ => pass.open(),
            };
            let mut hasher = std::mem::take(&mut hashers[owners[index]]);
            let rejected = matches!(names[index], SourceName::Rejected(_));
            let kind = names[index];
            let last = chunk.last;
            // Hashing and parsing a chunk takes milliseconds each: too long for the runtime's own threads, and less on two.
            let bytes = chunk.bytes.clone();
            let hashing = tokio::task::spawn_blocking(move || {
                hasher.update(&bytes);
                hasher
            });
            let parsing = tokio::task::spawn_blocking(move || {
                let result = pass.feed(&mut current, &chunk.bytes, rejected);
                (pass, current, result)
            });
            let result;
            (hashers[owners[index]], (pass, current, result)) =
                tokio::try_join!(hashing, parsing).map_err(|error| RunError::Defect(error.to_string()))?;
            let problem = match result {
                Ok(()) if !last => {
                    open = Some((index, current));
                    continue;
                }
                Ok(()) => pass.close(current, expected[index], rejected).err(),
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                pass.drop_source(kind, problem)?;
                skip = Some(index);
            }
        };
        match failed {
            None => break,
            Some((index, error))
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::Changed | ErrorKind::Damaged | ErrorKind::Invalid
                ) =>
            {
                pass.drop_source(names[index], error.to_string())?;
                open = None;
                from = index + 1;
            }
            Some((_, error)) => return Err(error.into()),
        }
    }
    for (one, hasher) in finals.iter_mut().zip(hashers) {
        one.sha256 = hex(&hasher.finalize());
    }
    Ok(pass.found)
}

/// The accounts while they are being read.
#[derive(Debug)]
struct Pass {
    format: Format,
    lines: u64,
    found: Found,
}

impl Pass {
    fn open(&self) -> Open {
        Open { reader: RecordReader::of_written(self.format), added: Found::default() }
    }

    fn feed(&self, open: &mut Open, bytes: &[u8], rejected: bool) -> Result<(), Problem> {
        let Open { reader, added } = open;
        reader.feed(bytes, |_, head| {
            let ordinal = head.ordinal;
            if u64::from(ordinal.get()) >= self.lines {
                return Err(format!("ordinal {ordinal} is not in the input"));
            }
            if rejected != (head.outcome == OutcomeKind::Rejected) {
                return Err(format!("a record of the outcome `{}` does not belong there", head.outcome));
            }
            let own = if rejected { &mut added.seen_rejected } else { &mut added.seen };
            if !own.insert(ordinal) {
                added.repeated.insert(ordinal);
                return Ok(());
            }
            if !rejected {
                added.outcomes.count(head.outcome);
                added.ids_lost |= head.id.is_none();
            }
            added.identity.add(ordinal, head.id);
            Ok(())
        })
    }

    /// Takes over what a whole source adds.
    fn close(&mut self, open: Open, expected: (Checksum, u64), rejected: bool) -> Result<(), Problem> {
        let Open { reader, added } = open;
        let (checksum, records) = reader.finish()?;
        if checksum != expected.0 || records != expected.1 {
            return Err(format!(
                "{records} records, {} bytes, CRC32C {} instead of {} records, {} bytes, CRC32C {}",
                checksum.size_bytes,
                Crc32c(checksum.crc32c),
                expected.1,
                expected.0.size_bytes,
                Crc32c(expected.0.crc32c)
            ));
        }
        if rejected && !added.repeated.is_empty() {
            return Err("a rejected line is recorded twice".to_owned());
        }
        let found = &mut self.found;
        // Sets are compared as a whole, which takes less than looking each line up in what was seen before.
        for before in [&found.seen, &found.seen_rejected] {
            for own in [&added.seen, &added.seen_rejected] {
                if !own.is_disjoint(before) {
                    let both: OrdinalSet = own.iter().filter(|ordinal| before.contains(*ordinal)).collect();
                    found.repeated.unite(&both);
                }
            }
        }
        found.seen.unite(&added.seen);
        found.seen_rejected.unite(&added.seen_rejected);
        found.repeated.unite(&added.repeated);
        found.outcomes.add(added.outcomes);
        found.identity.merge(added.identity);
        found.ids_lost |= added.ids_lost;
        Ok(())
    }

    /// A part that does not hold is dropped; without the rejected records nothing can be published.
    fn drop_source(&mut self, name: SourceName<'_>, problem: Problem) -> Result<(), RunError> {
        match name {
            SourceName::Part(_, part) => {
                tracing::error!(%part, problem, "a listed part is dropped");
                self.found.dropped.insert(part);
                Ok(())
            }
            SourceName::Rejected(name) => Err(RunError::Damaged { name: name.to_owned(), problem }),
        }
    }
}
