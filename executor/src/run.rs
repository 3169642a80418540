//! One run of one job, from claim to receipt.

mod collecting;
mod recover;
mod settle;

use std::{sync::Arc, time::Duration};

use penstock_job::{Receipt, state::Phase};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::settle::Settling;
use crate::{
    board::{Board, Stage},
    checkpoint::checkpoint,
    claim::{Claim, claim},
    error::RunError,
    finalise::{Account, freeze, publish},
    halt::{Halt, Stop},
    job::{Job, Timing},
    last_word::{End, Speaker, last_word},
    ledger::Ledger,
    meter::Meter,
    orders::Orders,
    output::Output,
    report::Reporter,
    scratch,
};

/// How long the last report may take.
const LAST_REPORT: Duration = Duration::from_millis(1_500);
/// A run that was asked to stop leaves so long after it has given up waiting for answers, its last report included (R7).
const LEAVE: Duration = Duration::from_millis(1_900);

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

/// Runs a job as far as it goes. `board` shows how far that is; `stop` asks to leave. Whom the job names is told of it.
pub async fn run(mut job: Job, board: Arc<Board>, stop: Stop) -> Result<Finished, RunError> {
    let orders = Orders::default();
    let Some(reporting) = job.reporting.take() else {
        return follow_protocol(&job, &board, &stop, &orders).await;
    };
    let speaker = Speaker::of(&job);
    let reporter = Reporter::new(reporting, speaker.clone(), Arc::clone(&board), orders.clone());
    let done = CancellationToken::new();
    let reporting = AbortOnDropHandle::new(tokio::spawn(reporter.report_until(done.clone())));
    let ended = follow_protocol(&job, &board, &stop, &orders).await;
    done.cancel();
    let now = Instant::now();
    let leave = stop.requested_at().map(|at| at + Timing::from(&job.spec.limits).drain + LEAVE);
    let until = leave.map_or(now + LAST_REPORT, |leave| leave.min(now + LAST_REPORT));
    match reporting.await {
        Ok(reporter) => {
            let end = ended.as_ref().map_or_else(End::from, End::from);
            reporter.last(last_word(Some(&speaker), &end, &board.progress()), until).await;
        }
        Err(error) => tracing::error!("reports ended in a defect: {error}"),
    }
    ended
}

/// From claim to receipt.
async fn follow_protocol(
    job: &Job,
    board: &Arc<Board>,
    stop: &Stop,
    orders: &Orders,
) -> Result<Finished, RunError> {
    let output = Output::new(Arc::clone(&job.store), job.steps.clone());
    // Nothing is sent during a claim, so it is simply dropped: whoever comes next begins it again.
    let claimed = tokio::select! {
        claim = claim(job, &output, board) => claim?,
        () = stop.wait() => return Ok(Finished::Stopped),
    };
    let mut claimed = match claimed {
        Claim::Published(receipt) => {
            return Ok(Finished::Published { receipt, before: true });
        }
        Claim::Taken(claimed) => *claimed,
    };
    board.ends(claimed.state.ending.as_ref());
    let meter = Arc::new(Meter::new(&job.spec, &claimed.state.usage));
    board.spends(meter.spent());
    if claimed.state.phase == Phase::Running {
        let ledger = Ledger::open(claimed, Arc::clone(board));
        let settled = with_checkpoints(job, &output, &ledger, &meter, board, stop, orders).await?;
        let Some(account) = settled else {
            return Ok(Finished::Stopped);
        };
        claimed = ledger.close().ok_or_else(|| RunError::Defect("the ledger is still in use".to_owned()))?;
        tokio::select! {
            frozen = freeze(&mut claimed, account, board) => frozen?,
            // Whether it was frozen is for the next run to find out.
            () = stop.wait() => return Ok(Finished::Stopped),
        }
    }
    board.enter(Stage::Publishing);
    let published = tokio::select! {
        published = publish(&output, &claimed, job.spec.keep_parts, board) => published?,
        // Everything is decided: whoever comes next publishes the same.
        () = stop.wait() => return Ok(Finished::Stopped),
    };
    scratch::remove(&job.scratch).await;
    Ok(Finished::Published { receipt: Box::new(published), before: false })
}

/// Settles every line while the checkpoint loop runs; `None` when the run was stopped.
async fn with_checkpoints(
    job: &Job,
    output: &Output,
    ledger: &Ledger,
    meter: &Arc<Meter>,
    board: &Arc<Board>,
    stop: &Stop,
    orders: &Orders,
) -> Result<Option<Account>, RunError> {
    let halt = Halt::default();
    let done = CancellationToken::new();
    // A bucket takes one write of the state in a second: a run that wrote as often would keep every newcomer out.
    let every = Timing::from(&job.spec.limits).checkpoint.max(2 * output.mutation_interval());
    let mut checkpoints =
        AbortOnDropHandle::new(tokio::spawn(checkpoint(ledger.clone(), every, halt.clone(), done.clone())));
    let settling = Settling { job, output, ledger, meter, board, stop, orders, halt: halt.clone() };
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
