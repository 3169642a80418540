//! The step Recover (R3): answers that earlier incarnations on this machine had received are stored before anything is
//! sent.

use std::sync::Arc;

use penstock_job::Step;

use super::settle::Settling;
use crate::{
    answer::LAST_FLUSH,
    error::RunError,
    ledger::lines,
    records::{PaidRecords, RecordForm},
    results::{Answered, Entry},
    scratch,
};

impl Settling<'_> {
    /// Stores them; returns the sequence number of the next part.
    pub(super) async fn recover(&self) -> Result<u32, RunError> {
        self.job.steps.before(Step::Recover).await;
        let (epoch, completed, total, paid) = self
            .ledger
            .look(|state, _| {
                let paid = PaidRecords::of(&state.job.spec, &state.usage);
                (state.epoch, state.completed.clone(), lines(state), paid)
            })
            .await;
        let rejected = Arc::clone(self.ledger.rejected());
        let (folder, form) = (self.job.scratch.clone(), RecordForm::of(&self.job.canonical));
        let stop = self.stop;
        let (sequence, recovered) = self
            .collecting(1, |entries, quit| async move {
                let stopped = stop.clone();
                let mut work = tokio::task::spawn_blocking(move || {
                    let mut count = 0u64;
                    let files =
                        scratch::read_left_behind(&folder, epoch, form, |ordinal, outcome, record| {
                            let wanted = ordinal < total && !stopped.requested();
                            if wanted && !completed.contains(ordinal) && !rejected.contains(ordinal) {
                                let paid = paid.read(record);
                                let mut record = record.to_vec();
                                record.push(b'\n');
                                count += 1;
                                let answered = Answered { ordinal, outcome, record, paid, hold: None };
                                // A collect loop that has ended has halted the run or was told to quit.
                                let _ = entries.blocking_send(Entry::Outcome(answered));
                            }
                        });
                    (files, count)
                });
                let ended = tokio::select! {
                    ended = &mut work => ended,
                    // The rest is skipped, and a store that takes nothing must not keep the process.
                    () = stop.wait() => {
                        let ended = tokio::time::timeout(LAST_FLUSH, &mut work).await;
                        quit.cancel();
                        match ended {
                            Ok(ended) => ended,
                            Err(_) => work.await,
                        }
                    }
                };
                ended.map_err(|error| RunError::Defect(error.to_string()))
            })
            .await;
        let (files, count) = recovered?;
        let files = files.map_err(|source| scratch::error(&self.job.scratch, source))?;
        if self.halt.is_set() || self.stop.requested() {
            // Perhaps not everything was stored, so the files stay for the next run.
            return Ok(sequence);
        }
        self.job.steps.after(Step::Recover).await;
        if count > 0 {
            tracing::info!(lines = count, "recovered answers that an earlier run had received");
            self.board.adopted(self.ledger.look(|state, _| state.outcomes).await);
        }
        for file in files {
            // Its records are stored; if it stays, the next start finds nothing wanted in it.
            let _ = tokio::fs::remove_file(file).await;
        }
        Ok(sequence)
    }
}
