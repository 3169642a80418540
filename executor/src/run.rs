//! One run of one job, from claim to receipt.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use penstock_batchfile::{Ordinal, RecordWriter};
use penstock_job::{
    Epoch, Receipt, State, Step,
    state::{Part, Phase},
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    answer::{Answer, LAST_FLUSH, answer, remaining},
    board::{Board, Stage},
    checkpoint::checkpoint,
    claim::{Claim, claim, recover},
    end_early::{Undone, record_undone},
    error::RunError,
    finalise::{Account, ReadAhead, Reconciled, freeze, publish, reconcile},
    halt::{Halt, Stop},
    job::{EndingRequest, Job, Timing},
    ledger::{Ledger, undone},
    output::Output,
    results::{Answered, Collector, Entry, collect, made_by_time},
};

/// Outcomes on their way to the collect loop.
const ENTRIES: usize = 1024;

/// How long a collect loop that may not store any more may take to append what it was handed.
const LAST_APPEND: Duration = Duration::from_millis(500);

/// How a run ended.
#[derive(Debug)]
pub enum Finished {
    /// The job is over.
    Published {
        /// The proof.
        receipt: Box<Receipt>,
        /// Whether it was over before this run began, so that nothing was done.
        before: bool,
    },
    /// Stopped on request; everything known is stored, and another run goes on from there.
    Stopped,
}

/// Runs a job as far as it goes. `board` shows how far that is; `stop` asks to leave.
pub async fn run(job: Job, board: Arc<Board>, stop: Stop) -> Result<Finished, RunError> {
    let output = Output::new(Arc::clone(&job.store), job.steps.clone());
    // Nothing is sent during a claim, so it is simply dropped: whoever comes next begins it again.
    let claimed = tokio::select! {
        claim = claim(&job, &output, &board) => claim?,
        () = stop.wait() => return Ok(Finished::Stopped),
    };
    let mut claimed = match claimed {
        Claim::Published(receipt) => {
            return Ok(Finished::Published { receipt, before: true });
        }
        Claim::Taken(claimed) => *claimed,
    };
    if claimed.state.phase == Phase::Running {
        let ledger = Ledger::open(claimed, Arc::clone(&board));
        let settled = with_checkpoints(&job, &output, &ledger, &board, &stop).await?;
        let Some(account) = settled else {
            return Ok(Finished::Stopped);
        };
        claimed = ledger.close().ok_or_else(|| RunError::Defect("the ledger is still in use".to_owned()))?;
        tokio::select! {
            frozen = freeze(&mut claimed, account, &board) => frozen?,
            // Whether it was frozen is for the next run to find out.
            () = stop.wait() => return Ok(Finished::Stopped),
        }
    }
    board.enter(Stage::Publishing);
    let published = tokio::select! {
        published = publish(&output, &claimed, job.spec.keep_parts, &board) => published?,
        // Everything is decided: whoever comes next publishes the same.
        () = stop.wait() => return Ok(Finished::Stopped),
    };
    remove_scratch(&job.scratch).await;
    Ok(Finished::Published { receipt: Box::new(published), before: false })
}

/// Settles every line while the checkpoint loop runs; `None` when the run was stopped.
async fn with_checkpoints(
    job: &Job,
    output: &Output,
    ledger: &Ledger,
    board: &Arc<Board>,
    stop: &Stop,
) -> Result<Option<Account>, RunError> {
    let halt = Halt::default();
    let done = CancellationToken::new();
    let every = Timing::from(&job.spec.limits).checkpoint;
    let mut checkpoints =
        AbortOnDropHandle::new(tokio::spawn(checkpoint(ledger.clone(), every, halt.clone(), done.clone())));
    let settling = Settling { job, output, ledger, board, stop, halt: halt.clone() };
    let settled = settling.settle().await;
    done.cancel();
    let leave = async {
        if matches!(settled, Ok(Some(_))) {
            stop.wait().await;
        }
    };
    let ended = tokio::select! {
        ended = &mut checkpoints => ended,
        // A write that the store does not take must not keep the process.
        () = leave => {
            checkpoints.abort();
            (&mut checkpoints).await
        }
    };
    if let Err(error) = ended
        && error.is_panic()
    {
        return Err(RunError::Defect(error.to_string()));
    }
    match halt.take_cause() {
        Some(cause) => Err(cause),
        None => settled,
    }
}

/// What the steps between seal and freeze share.
struct Settling<'a> {
    job: &'a Job,
    output: &'a Output,
    ledger: &'a Ledger,
    board: &'a Arc<Board>,
    stop: &'a Stop,
    halt: Halt,
}

impl Settling<'_> {
    /// Brings every line to one outcome.
    async fn settle(&self) -> Result<Option<Account>, RunError> {
        create_scratch(&self.job.scratch).await?;
        let mut sequence = self.recover().await?;
        if let Some(request) = self.requested_ending().await
            && self.undone().await > 0
            && let Some(stored) = self.unless_stopped(self.ledger.end(&request)).await
        {
            stored?;
        }
        let mut ahead: Option<ReadAhead> = None;
        while !self.halt.is_set() {
            if self.stop.requested() {
                self.last_checkpoint().await?;
                return Ok(None);
            }
            let ending = self.ledger.look(|state, _| state.ending.clone()).await;
            let undone = self.undone().await;
            if undone > 0 && ahead.is_none() {
                ahead = ReadAhead::start(self.output.clone(), self.ledger.clone());
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
        let reconcile = async {
            let ahead = match ahead {
                Some(ahead) => ahead.finish().await,
                None => None,
            };
            reconcile(self.output, self.ledger, ahead).await
        };
        let reconciled = tokio::select! {
            reconciled = reconcile => reconciled?,
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

    /// C9: the ending that the arguments ask for, that a lost input leaves no choice but, or that is due already.
    async fn requested_ending(&self) -> Option<EndingRequest> {
        let created_at_ms = self.ledger.look(|state, _| state.created_at_ms).await;
        let lost = || self.job.input.is_none().then(EndingRequest::input_modified);
        let over = || {
            let window = Timing::from(&self.job.spec.limits).window?;
            remaining(window, created_at_ms).is_zero().then(EndingRequest::expired)
        };
        self.job.ending.clone().or_else(lost).or_else(over)
    }

    async fn undone_lines(&self, ending: penstock_job::state::Ending) -> Undone {
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
        let (job, ledger, board, stop) = (self.job, self.ledger, self.board, self.stop);
        let halt = self.halt.clone();
        let (next, result) = self
            .collecting(sequence, |entries, quit| async move {
                answer(job, ledger, board, stop, &halt, writer, entries, quit).await
            })
            .await;
        result.map(|answered| (next, answered))
    }

    /// Answers that earlier incarnations on this machine had received are stored before anything is sent.
    async fn recover(&self) -> Result<u32, RunError> {
        self.job.steps.before(Step::Recover).await;
        let (epoch, completed, total) =
            self.ledger.look(|state, _| (state.epoch, state.completed.clone(), lines(state))).await;
        let rejected = Arc::clone(self.ledger.rejected());
        let (folder, format) = (self.job.scratch.clone(), self.job.canonical.format);
        let stop = self.stop;
        let (sequence, recovered) = self
            .collecting(1, |entries, quit| async move {
                let stopped = stop.clone();
                let mut work = tokio::task::spawn_blocking(move || {
                    let mut count = 0u64;
                    let files = recover(&folder, epoch, format, |ordinal, outcome, record| {
                        let wanted = ordinal < total && !stopped.requested();
                        if wanted && !completed.contains(ordinal) && !rejected.contains(ordinal) {
                            let mut record = record.to_vec();
                            record.push(b'\n');
                            count += 1;
                            let answered = Answered { ordinal, outcome, record, hold: None };
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
        let files = files.map_err(|source| scratch_error(&self.job.scratch, source))?;
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

    /// Runs `produce` beside a collect loop of its own and waits until everything it sent is stored.
    async fn collecting<F, T>(
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

/// The highest sequence that a listed part of `epoch` has; 0 when there is none.
pub(crate) fn highest_sequence(parts: &[Part], epoch: Epoch) -> u32 {
    parts.iter().filter(|part| part.name.epoch == epoch).map(|part| part.name.sequence).max().unwrap_or(0)
}

/// The ordinal behind the last line.
pub(crate) fn lines(state: &State) -> Ordinal {
    Ordinal::new(u32::try_from(state.input.lines).unwrap_or(u32::MAX))
}

async fn create_scratch(folder: &PathBuf) -> Result<(), RunError> {
    tokio::fs::create_dir_all(folder).await.map_err(|source| scratch_error(folder, source))
}

/// The scratch folder of a finished job holds nothing that anybody needs.
async fn remove_scratch(folder: &PathBuf) {
    if let Err(error) = tokio::fs::remove_dir_all(folder).await
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "the scratch folder is left behind");
    }
}

fn scratch_error(folder: &std::path::Path, source: std::io::Error) -> RunError {
    RunError::Scratch { folder: folder.display().to_string(), source }
}
