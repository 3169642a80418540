//! A collect loop beside whatever makes outcomes: the lines that are answered, recovered, or recorded as undone.

use std::{sync::Arc, time::Duration};

use penstock_job::State;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::settle::Settling;
use crate::{
    answer::LAST_FLUSH,
    error::RunError,
    ledger::highest_sequence,
    results::{Collector, Entry, collect, made_by_time},
};

/// Outcomes on their way to the collect loop.
const ENTRIES: usize = 1024;

/// How long a collect loop that may not store any more may take to append what it was handed.
const LAST_APPEND: Duration = Duration::from_millis(500);

impl Settling<'_> {
    /// Runs `produce` beside a collect loop of its own and waits until everything it sent is stored.
    pub(super) async fn collecting<F, T>(
        &self,
        sequence: u32,
        produce: impl FnOnce(mpsc::Sender<Entry>, CancellationToken) -> F,
    ) -> (u32, T)
    where
        F: Future<Output = T>,
    {
        let (entries, received) = mpsc::channel(ENTRIES);
        let quit = CancellationToken::new();
        let (epoch, taken, rows, by_time, listed) = self
            .ledger
            .look(|State { epoch, completed, parts, .. }, _| {
                (
                    *epoch,
                    completed.clone(),
                    parts.len(),
                    parts.iter().filter(|part| made_by_time(part)).count(),
                    highest_sequence(parts, *epoch),
                )
            })
            .await;
        // Reconciliation may have written parts of this epoch that the loops know nothing of.
        let sequence = sequence.max(listed + 1);
        let collector = Collector {
            output: self.output.clone(),
            ledger: self.ledger.clone(),
            meter: Arc::clone(self.meter),
            board: Arc::clone(self.board),
            scratch: self.job.scratch.clone(),
            epoch,
            sequence,
            taken,
            rows,
            by_time: u32::try_from(by_time).unwrap_or(u32::MAX),
        };
        let mut collecting = AbortOnDropHandle::new(tokio::spawn(collect(
            collector,
            received,
            self.halt.clone(),
            quit.clone(),
        )));
        let produced = produce(entries, quit.clone()).await;
        let leave = async {
            self.stop.wait().await;
            // Whoever told the loop to quit has waited already.
            let _ = tokio::time::timeout(LAST_FLUSH, quit.cancelled()).await;
            // What is not stored by now stays in scratch for the next run.
            quit.cancel();
            tokio::time::sleep(LAST_APPEND).await;
        };
        let ended = tokio::select! {
            ended = &mut collecting => ended,
            () = leave => {
                collecting.abort();
                collecting.await
            }
        };
        let next = match ended {
            Ok(next) => next,
            Err(error) if error.is_cancelled() => sequence,
            Err(error) => {
                self.halt.because(RunError::Defect(error.to_string()));
                sequence
            }
        };
        (next, produced)
    }
}
