//! Compose (F4 of the job protocol): make one published file out of its sources, create-only and level by level where
//! the store takes only so many sources at once.

use futures_util::{StreamExt, TryStreamExt, stream};
use penstock_job::{
    Step,
    finals::{Final, Source},
    layout,
};
use penstock_storage::{Checksum, ErrorKind, Generation, ObjectMeta, ObjectName};

use crate::{
    board::Board,
    error::RunError,
    output::{Output, jitter, object_name},
    state_object::REFUSED_PAUSE,
};

/// Compose calls under way at once.
const AT_ONCE: usize = 8;

/// Something to concatenate, with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    name: ObjectName,
    generation: Generation,
    checksum: Checksum,
}

/// What composing came to.
#[derive(Debug)]
pub(super) enum Composed {
    /// The file is there at this generation.
    Done(Generation),
    /// A source is gone: perhaps another finaliser has published and cleaned.
    SourceGone(String),
}

/// Makes sure that the published file is there.
pub(super) async fn compose(
    output: &Output,
    one: &Final,
    sources: &[Source<'_>],
    board: &Board,
) -> Result<Composed, RunError> {
    let target = object_name(&one.name);
    let expected = Checksum { size_bytes: one.size_bytes, crc32c: one.crc32c.0 };
    if let Some(meta) = output.head(&target).await? {
        return Ok(Composed::Done(check(meta, expected)?));
    }
    let mut pieces: Vec<Piece> = sources
        .iter()
        .map(|source| Piece {
            name: object_name(&source.object_name()),
            generation: Generation::new(source.generation),
            checksum: Checksum { size_bytes: source.size_bytes, crc32c: source.crc32c.0 },
        })
        .collect();
    let limit = output.compose_limit().unwrap_or(usize::MAX);
    let mut level = 0;
    while pieces.len() > limit {
        let groups: Vec<(ObjectName, Vec<Piece>)> = pieces
            .chunks(limit)
            .enumerate()
            .map(|(index, group)| {
                (object_name(&layout::intermediate(&one.name, level, index)), group.to_vec())
            })
            .collect();
        let made: Vec<Result<Piece, String>> = stream::iter(groups)
            .map(|(name, group)| {
                let checksum =
                    group.iter().fold(Checksum::default(), |whole, piece| whole.followed_by(piece.checksum));
                make(output, Step::ComposeIntermediate, name, checksum, group, board)
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        pieces = match made.into_iter().collect() {
            Ok(pieces) => pieces,
            Err(gone) => return Ok(Composed::SourceGone(gone)),
        };
        level += 1;
    }
    Ok(match make(output, Step::ComposeFinal, target, expected, pieces, board).await? {
        Ok(piece) => Composed::Done(piece.generation),
        Err(gone) => Composed::SourceGone(gone),
    })
}

/// Concatenates one group, which is to come to `checksum`; `Err` in the inner result names a source that is gone.
async fn make(
    output: &Output,
    step: Step,
    target: ObjectName,
    checksum: Checksum,
    group: Vec<Piece>,
    board: &Board,
) -> Result<Result<Piece, String>, RunError> {
    let sources: Vec<_> = group.iter().map(|piece| (piece.name.clone(), piece.generation.clone())).collect();
    for attempt in 0u32.. {
        let error = match output.compose(step, &target, &sources).await {
            Ok(meta) => {
                let generation = check(meta, checksum)?;
                return Ok(Ok(Piece { name: target, generation, checksum }));
            }
            Err(error) => error,
        };
        // Whatever the answer was: what counts is whether the file is there (S1, S4).
        if let Some(meta) = output.head(&target).await? {
            let generation = check(meta, checksum)?;
            return Ok(Ok(Piece { name: target, generation, checksum }));
        }
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::Changed => return Ok(Err(error.object().to_owned())),
            ErrorKind::Refused => {
                board.raise(penstock_job::Reason::StorageRefused, error.to_string());
                tokio::time::sleep(REFUSED_PAUSE).await;
                board.clear(penstock_job::Reason::StorageRefused);
            }
            ErrorKind::Unavailable | ErrorKind::Exists => {
                tracing::warn!(%error, "composing will be repeated");
                tokio::time::sleep(jitter(std::time::Duration::from_millis(200), REFUSED_PAUSE, attempt))
                    .await;
            }
            ErrorKind::Damaged | ErrorKind::Invalid => return Err(error.into()),
        }
    }
    unreachable!("the loop ends only by returning")
}

fn check(meta: ObjectMeta, expected: Checksum) -> Result<Generation, RunError> {
    if meta.checksum() == Some(expected) {
        Ok(meta.generation)
    } else {
        Err(RunError::Foreign { name: meta.name.to_string() })
    }
}
