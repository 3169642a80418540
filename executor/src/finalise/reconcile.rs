//! Reconcile (F2 of the job protocol): read every record once more and account for every line with a fresh set.
//!
//! What was [read ahead](super::ReadAhead) is not read again, provided that the store still has it.

use std::{collections::BTreeMap, pin::pin};

use futures_util::TryStreamExt;
use penstock_job::{
    State, Step, Validation,
    finals::{self, FINAL_SIZE_LIMIT, Final},
    identity_sum::IdentitySum,
    layout::{self, Kind},
    state::{Outcomes, Part},
    validation::RejectedFile,
};
use penstock_storage::{ErrorKind, ObjectMeta, StorageError};
use sha2::Digest;

use super::{
    ReadAhead,
    repeated::rewrite_without,
    tally::{Found, Open, Source, Tally},
};
use crate::{
    error::RunError,
    ledger::Ledger,
    output::Output,
    records::{AHEAD, RecordForm, chunks},
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
    form: RecordForm,
    lines: u64,
    rejected_files: Vec<RejectedFile>,
    parts: Vec<Part>,
    expected: IdentitySum,
}

impl Books {
    fn of(state: &State, validation: &Validation) -> Self {
        Self {
            form: RecordForm::of(&state.job.spec),
            lines: state.input.lines,
            rejected_files: validation.rejected_files.clone(),
            parts: state.parts.clone(),
            expected: validation.identity_sum,
        }
    }
}

/// Reads everything that was not read ahead; corrects the manifest where it does not hold.
pub(crate) async fn reconcile(
    output: &Output,
    ledger: &Ledger,
    ahead: Option<ReadAhead>,
) -> Result<Reconciled, RunError> {
    output.steps().before(Step::Reconcile).await;
    let books = ledger.look(Books::of).await;
    let tally = match ahead {
        Some(ahead) => read_rest(output, &books, ahead).await?,
        None => read_all(output, &books).await?,
    };
    let mut finals = finals::plan(&books.rejected_files, &books.parts, FINAL_SIZE_LIMIT);
    for kind in Kind::ALL {
        let digests = tally.digests(kind);
        finals
            .iter_mut()
            .filter(|one| one.kind == kind)
            .zip(digests)
            .for_each(|(one, digest)| one.sha256 = digest);
    }
    let found = tally.found;
    output.steps().after(Step::Reconcile).await;
    if found.seen_rejected != **ledger.rejected() {
        return Err(RunError::Damaged {
            name: penstock_job::layout::INTAKE.to_owned(),
            problem: "the rejected records are not those of the rejected set".to_owned(),
        });
    }
    if !found.repeated.is_empty() {
        rewrite_without(output, ledger, books.form, &found.repeated, &found.dropped).await?;
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

async fn read_all(output: &Output, books: &Books) -> Result<Tally, RunError> {
    let mut tally = Tally::new(books.form, books.lines);
    let sources = tally.unread(&books.rejected_files, &books.parts);
    read(output, &mut tally, &sources).await?;
    Ok(tally)
}

/// Goes on where reading ahead has stopped. A part that was read and is not in the store any more would be missed only
/// behind the freeze, when it is too late, so the store is asked once for all of them.
async fn read_rest(output: &Output, books: &Books, ahead: ReadAhead) -> Result<Tally, RunError> {
    let reading = async {
        let Some(mut tally) = ahead.finish().await.filter(|ahead| ahead.begins(&books.parts)) else {
            return Ok(None);
        };
        let sources = tally.unread(&books.rejected_files, &books.parts);
        read(output, &mut tally, &sources).await.map(|()| Some(tally))
    };
    let listing = async { output.list(layout::PARTS, None).await.map_err(RunError::from) };
    let (tally, listed) = tokio::try_join!(reading, listing)?;
    match tally {
        Some(tally) if are_there(tally.parts(), &listed) => return Ok(tally),
        Some(_) => tracing::warn!("the store has lost a part that was read before; every part is read again"),
        None => {}
    }
    read_all(output, books).await
}

/// Whether each part is listed as it was read.
fn are_there<'a>(mut parts: impl Iterator<Item = &'a Part>, listed: &[ObjectMeta]) -> bool {
    let listed: BTreeMap<_, _> = listed.iter().map(|object| (object.name.as_str(), object)).collect();
    parts.all(|part| {
        listed.get(part.name.to_string().as_str()).is_some_and(|object| {
            object.generation.as_str() == &*part.generation && object.size_bytes == part.size_bytes
        })
    })
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

/// Reads every source that `tally` does not have yet.
async fn read(output: &Output, tally: &mut Tally, sources: &[Source]) -> Result<(), RunError> {
    let mut open: Option<(usize, Open)> = None;
    let mut skip: Option<usize> = None;
    // A source that fails ends the stream, so reading goes on behind it with a new one.
    let mut from = 0;
    while from < sources.len() {
        let mut stream = pin!(chunks(output, &sources[from..], AHEAD));
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
            let source = &sources[index];
            let Open { mut digest, mut records, begins_file } = match open.take() {
                Some((same, current)) if same == index => current,
                _ => tally.open(source),
            };
            // Hashing and parsing a chunk takes milliseconds each: too long for the runtime's own threads, and less on two.
            let bytes = chunk.bytes.clone();
            let hashing = tokio::task::spawn_blocking(move || {
                digest.update(&bytes);
                digest
            });
            let parsing = tokio::task::spawn_blocking(move || {
                let result = records.read(&chunk.bytes);
                (records, result)
            });
            let (digest, (records, result)) =
                tokio::try_join!(hashing, parsing).map_err(|error| RunError::Defect(error.to_string()))?;
            let current = Open { digest, records, begins_file };
            let problem = match result {
                Ok(()) if !chunk.last => {
                    open = Some((index, current));
                    continue;
                }
                Ok(()) => tally.close(source, current).err(),
                Err(problem) => Some(problem),
            };
            if let Some(problem) = problem {
                tally.drop_source(source, problem)?;
                skip = Some(index);
            }
        };
        match failed {
            None => break,
            Some((index, error)) if decides(&error) => {
                tally.drop_source(&sources[index], error.to_string())?;
                open = None;
                from = index + 1;
            }
            Some((_, error)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a failed read says that the object is not there as it was listed; other failures may pass.
fn decides(error: &StorageError) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Changed | ErrorKind::Damaged | ErrorKind::Invalid)
}
