//! Upload (S3 of the job protocol): make one closed part durable, then enter it into the ledger.
//!
//! Name and bytes are fixed before the first attempt; the outcomes never go back into a buffer.

use std::{sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use penstock_job::{Reason, Step};
use penstock_storage::{ErrorKind, ObjectMeta, StorageError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::part_file::ClosedPart;
use crate::{
    board::Board,
    error::RunError,
    halt::Halt,
    ledger::{Durable, Ledger},
    output::{Output, jitter, may_pass, object_name},
    state_object::REFUSED_PAUSE,
};

/// An upload slower than this is shown as the reason why a job is not further.
const SLOW: Duration = Duration::from_secs(10);

/// What the uploader of one kind is asked to do, in order.
#[derive(Debug)]
pub(super) enum Order {
    Upload(Box<ClosedPart>),
    /// Answered when everything before it is listed.
    Barrier(oneshot::Sender<()>),
}

/// Makes parts of one kind durable, one at a time, until the channel closes or `quit`.
pub(super) async fn upload(
    mut orders: mpsc::Receiver<Order>,
    output: Output,
    ledger: Ledger,
    board: Arc<Board>,
    halt: Halt,
    quit: CancellationToken,
) {
    let work = async {
        while let Some(order) = orders.recv().await {
            match order {
                Order::Upload(part) => match make_durable(&output, &part, &board).await {
                    Ok(meta) => {
                        enter(&ledger, &board, *part, &meta).await;
                        output.steps().after(Step::List).await;
                    }
                    Err(cause) => return halt.because(cause),
                },
                Order::Barrier(reached) => {
                    // Nobody waits any more when the other end is gone.
                    let _ = reached.send(());
                }
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = halt.wait() => {}
        () = quit.cancelled() => {}
    }
}

async fn enter(ledger: &Ledger, board: &Board, part: ClosedPart, meta: &ObjectMeta) {
    let row = part.row(&meta.generation);
    let lines = part.lines();
    let ClosedPart { path, ordinals, outcomes, tokens, .. } = part;
    ledger.list(Durable { part: row, ordinals, outcomes, tokens }).await;
    board.unlisted.fetch_sub(lines, Relaxed);
    if let Err(error) = tokio::fs::remove_file(&path).await {
        tracing::debug!(file = %path.display(), %error, "a stored part stays in scratch until the next start");
    }
}

async fn make_durable(output: &Output, part: &ClosedPart, board: &Board) -> Result<ObjectMeta, RunError> {
    let name = object_name(&part.name);
    for attempt in 0u32.. {
        let slow = async {
            tokio::time::sleep(SLOW).await;
            board.raise(
                Reason::StorageSlow,
                format!("the upload of {} parts takes longer than 10 s", part.name),
            );
            std::future::pending().await
        };
        let result = tokio::select! {
            result = output.upload(Step::Upload, &name, &part.path, part.checksum) => result,
            never = slow => never,
        };
        board.clear(Reason::StorageSlow);
        let error = match result {
            Ok(meta) => return Ok(meta),
            // The file is gone: a successor on this machine has taken its records over (R3).
            Err(error) if error.kind() == ErrorKind::NotFound && !exists(part).await => {
                return Err(RunError::ClaimLost);
            }
            Err(error) if !error.ambiguous() => return Err(error.into()),
            Err(error) => error,
        };
        let error = match output.head(&name).await {
            Ok(None) => error,
            // Only another process that uses this epoch could have written something else.
            Ok(Some(meta)) if meta.checksum() != Some(part.checksum) => return Err(RunError::ClaimLost),
            Ok(Some(meta)) => return Ok(meta),
            // Its fate stays unknown; sending the same bytes again cannot do harm.
            Err(unread) if may_pass(&unread) => unread,
            Err(unread) => return Err(unread.into()),
        };
        pause(error, attempt, board).await;
    }
    unreachable!("the loop ends only by returning")
}

async fn exists(part: &ClosedPart) -> bool {
    tokio::fs::try_exists(&part.path).await.unwrap_or(true)
}

/// Waits before a part is written again.
pub(crate) async fn pause(error: StorageError, attempt: u32, board: &Board) {
    if error.kind() == ErrorKind::Refused {
        board.raise(Reason::StorageRefused, error.to_string());
        tokio::time::sleep(REFUSED_PAUSE).await;
        board.clear(Reason::StorageRefused);
    } else {
        tracing::warn!(%error, "a part will be uploaded again");
        tokio::time::sleep(jitter(Duration::from_millis(200), REFUSED_PAUSE, attempt)).await;
    }
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::{Ordinal, OutcomeKind};
    use penstock_job::{
        Epoch,
        layout::{Kind, PartName},
    };
    use penstock_storage::{
        MemoryStore,
        faults::{Fault, FaultyStore},
    };

    use super::{super::part_file::PartFile, *};
    use crate::steps::Steps;

    #[tokio::test(start_paused = true)]
    async fn a_part_outlasts_a_store_that_answers_nothing_for_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let name = PartName { epoch: Epoch(1), sequence: 1, kind: Kind::Results };
        let mut file = PartFile::create(folder.path(), name).unwrap();
        file.append(b"{}\n", &[(Ordinal::new(0), OutcomeKind::Succeeded)]).unwrap();
        let part = file.close();
        let deaf = FaultyStore::new(MemoryStore::new(), |call| (call.number < 100).then_some(Fault::Before));
        let meta = make_durable(&Output::new(Arc::new(deaf), Steps::default()), &part, &Board::default())
            .await
            .unwrap();
        assert_eq!(meta.checksum(), Some(part.checksum));
    }
}
