//! Between seal and freeze: what is to be done next, until each line has one outcome and reconciliation agrees.

use std::sync::Arc;

use penstock_batchfile::{Ordinal, RecordWriter};
use penstock_job::state::Ending;

use crate::{
    answer::{Answer, LAST_FLUSH, answer, remaining},
    board::{Board, Stage},
    end_early::{Undone, record_undone},
    error::RunError,
    finalise::{Account, ReadAhead, Reconciled, reconcile},
    halt::{Halt, Stop},
    job::{EndingRequest, Job, Timing},
    ledger::{Ledger, lines, undone},
    meter::Meter,
    orders::Orders,
    output::Output,
    scratch,
};

/// What the steps between seal and freeze share.
pub(super) struct Settling<'a> {
    pub(super) job: &'a Job,
    pub(super) output: &'a Output,
    pub(super) ledger: &'a Ledger,
    pub(super) meter: &'a Arc<Meter>,
    pub(super) board: &'a Arc<Board>,
    pub(super) stop: &'a Stop,
    pub(super) orders: &'a Orders,
    pub(super) halt: Halt,
}

impl Settling<'_> {
    /// Brings every line to one outcome.
    pub(super) async fn settle(&self) -> Result<Option<Account>, RunError> {
        let mut ahead: Option<ReadAhead> = None;
        let settled = self.settle_with(&mut ahead).await;
        if let Some(ahead) = ahead {
            // A store that does not answer must not keep the process.
            let _ = tokio::time::timeout(LAST_FLUSH, ahead.finish()).await;
        }
        settled
    }

    async fn settle_with(&self, ahead: &mut Option<ReadAhead>) -> Result<Option<Account>, RunError> {
        scratch::create(&self.job.scratch).await?;
        let mut sequence = self.recover().await?;
        if let Some(request) = self.requested_ending().await
            && self.undone().await > 0
            && let Some(stored) = self.unless_stopped(self.ledger.end(&request)).await
        {
            stored?;
        }
        while !self.halt.is_set() {
            if self.stop.requested() {
                self.last_checkpoint().await?;
                return Ok(None);
            }
            let ending = self.ledger.look(|state, _| state.ending.clone()).await;
            let undone = self.undone().await;
            if undone > 0 && ahead.is_none() {
                *ahead = ReadAhead::start(self.output.clone(), self.ledger.clone());
            }
            match (undone, ending) {
                (0, _) => {
                    self.board.enter(Stage::Reconciling);
                    if let Some(account) = self.reconcile(ahead.take()).await? {
                        return Ok(account);
                    }
                }
                (_, Some(ending)) => {
                    self.board.enter(Stage::Ending);
                    let undone = self.undone_lines(ending).await;
                    let (next, _) = self
                        .collecting(sequence, |entries, _| {
                            self.unless_stopped(record_undone(undone, entries))
                        })
                        .await;
                    sequence = next;
                }
                (_, None) => {
                    self.board.enter(Stage::Running);
                    let (next, answered) = self.answer(sequence).await?;
                    sequence = next;
                    match answered {
                        Answer::Complete => {}
                        Answer::Stopped => return Ok(None),
                    }
                }
            }
        }
        Ok(None)
    }

    /// The checkpoint of a run that leaves, if the store takes it in time; else the next run adopts what is durable.
    async fn last_checkpoint(&self) -> Result<(), RunError> {
        tokio::time::timeout(LAST_FLUSH, self.ledger.checkpoint()).await.unwrap_or_else(|_| {
            tracing::warn!("the last checkpoint could not be stored in time; the next run looks for itself");
            Ok(())
        })
    }

    /// `Some(None)` when stopped meanwhile, `None` when lines are to be sent again.
    async fn reconcile(&self, ahead: Option<ReadAhead>) -> Result<Option<Option<Account>>, RunError> {
        let reconciled = tokio::select! {
            reconciled = reconcile(self.output, self.ledger, ahead) => reconciled?,
            () = self.stop.wait() => return Ok(Some(None)),
            () = self.halt.wait() => return Ok(Some(None)),
        };
        Ok(match reconciled {
            Reconciled::Whole(account) => Some(Some(*account)),
            Reconciled::Repaired => {
                self.board.recount(self.ledger.look(|state, _| state.outcomes).await);
                None
            }
        })
    }

    /// `None` when the run is asked to stop first.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.stop.wait() => None,
            () = self.halt.wait() => None,
        }
    }

    async fn undone(&self) -> u64 {
        let rejected = Arc::clone(self.ledger.rejected());
        self.ledger.look(|state, _| undone(&state.completed, &rejected, Ordinal::new(0), lines(state))).await
    }

    /// C9: the ending that the arguments or the operator ask for, that a lost input leaves no choice but, or that is due
    /// already.
    async fn requested_ending(&self) -> Option<EndingRequest> {
        let created_at_ms = self.ledger.look(|state, _| state.created_at_ms).await;
        let lost = || self.job.input.is_none().then(EndingRequest::input_modified);
        let over = || {
            let window = Timing::from(&self.job.spec.limits).window?;
            remaining(window, created_at_ms).is_zero().then(EndingRequest::expired)
        };
        let cancelled = || self.orders.is_cancelled().then(EndingRequest::cancelled);
        self.job.ending.clone().or_else(cancelled).or_else(lost).or_else(over)
    }

    async fn undone_lines(&self, ending: Ending) -> Undone {
        let (completed, total) = self.ledger.look(|state, _| (state.completed.clone(), lines(state))).await;
        Undone {
            input: self.job.input.clone(),
            spec: self.job.canonical.clone(),
            writer: self.writer().await,
            ending,
            lines: total,
            completed,
            rejected: Arc::clone(self.ledger.rejected()),
            steps: self.job.steps.clone(),
        }
    }

    async fn writer(&self) -> RecordWriter {
        let epoch = self.ledger.look(|state, _| state.epoch).await;
        RecordWriter::new(self.job.canonical.format, self.job.identity.as_str(), epoch.0)
    }

    async fn answer(&self, sequence: u32) -> Result<(u32, Answer), RunError> {
        let writer = self.writer().await;
        let Settling { job, ledger, meter, board, stop, orders, .. } = *self;
        let halt = self.halt.clone();
        let (next, result) = self
            .collecting(sequence, |entries, quit| async move {
                answer(job, ledger, meter, board, stop, orders, &halt, writer, entries, quit).await
            })
            .await;
        result.map(|answered| (next, answered))
    }
}
