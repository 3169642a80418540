//! From lines to outcomes: ingest and dispatch side by side, and what ends them before every line is answered (a stop,
//! the completion window, a changed input).

use std::{sync::Arc, time::Duration};

use penstock_batchfile::{RecordWriter, Rules};
use penstock_job::state::EndingReason;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    board::{Board, Stage},
    budget::Budget,
    clock::now_ms,
    dispatch::{Dispatch, Mode, Pacing, dispatch, learner_memory},
    error::RunError,
    halt::{Halt, Stop},
    ingest::{Ingest, InputModified, ingest},
    job::{EndingRequest, Job, Timing, max_in_flight},
    ledger::{Ledger, Recollection},
    memory,
    results::Entry,
    run::lines,
};

/// Bytes of requests and answers in flight, beside the one oversize holder.
const IN_FLIGHT_BYTES: usize = 24 << 20;
/// How long an expired job waits for what is in flight.
const EXPIRED_WAIT: Duration = Duration::from_mins(1);
/// How often answers that arrive while draining are made durable.
const DRAIN_FLUSH: Duration = Duration::from_secs(2);
/// How long the flushes of a drain may take beyond the drain itself.
const LAST_FLUSH: Duration = Duration::from_secs(2);

/// How answering ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing is in flight; every line has an outcome, or an ending is stored.
    Complete,
    /// Asked to stop; what is known is stored.
    Stopped,
}

/// Why dispatch is to end before every line is answered.
#[derive(Debug)]
enum Interruption {
    Stop,
    End(EndingRequest),
}

/// Answers every undone line of a job that has no ending.
#[expect(clippy::too_many_arguments, reason = "each is a loop's other end; a struct would only rename them")]
pub(crate) async fn answer(
    job: &Job,
    ledger: &Ledger,
    board: &Arc<Board>,
    stop: &Stop,
    halt: &Halt,
    writer: RecordWriter,
    entries: mpsc::Sender<Entry>,
    quit: CancellationToken,
) -> Result<Answer, RunError> {
    let (Some(input), Some(provider)) = (&job.input, &job.provider) else {
        return Err(RunError::Defect(
            "there are lines to send but no input or provider was given".to_owned(),
        ));
    };
    let (done, start, end, memory, created_at_ms) = ledger
        .look(|state, _| {
            let memory = learner_memory(state.learner.as_ref());
            (state.completed.clone(), state.cursor, lines(state), memory, state.created_at_ms)
        })
        .await;
    let timing = Timing::from(&job.spec.limits);
    let pacing = Arc::new(Pacing::new(&job.spec.limits, memory, Arc::clone(board)));
    ledger.remember(Some(Arc::clone(&pacing) as Arc<dyn Recollection>)).await;

    // One window waits while another is dispatched; ingest makes no third.
    let (window_sender, windows) = mpsc::channel(1);
    let ingesting = tokio::spawn(ingest(
        Ingest {
            input: Arc::clone(input),
            rules: Rules {
                format: job.canonical.format,
                endpoint: job.canonical.endpoint,
                has_model: job.canonical.model.is_some(),
                strict: job.canonical.strict,
            },
            model: job.canonical.model.as_deref().map(Arc::from),
            max_line_bytes: job.canonical.max_line_bytes,
            start,
            lines: end,
            done: Arc::new(done),
            rejected: Arc::clone(ledger.rejected()),
            scratch: job.scratch.clone(),
            board: Arc::clone(board),
        },
        window_sender,
    ));
    let (modes, mode) = watch::channel(Mode::Go);
    let in_flight = max_in_flight(&job.spec.limits, memory::limit());
    let dispatching = tokio::spawn(dispatch(
        Dispatch {
            provider: provider.clone(),
            input: Arc::clone(input),
            budget: Budget::new(IN_FLIGHT_BYTES),
            limits: job.spec.limits.clone(),
            max_in_flight: in_flight,
            fail_fast_on_credentials: job.fail_fast_on_credentials,
            format: job.canonical.format,
            endpoint: job.canonical.endpoint,
            writer,
            pacing,
            ledger: ledger.clone(),
            board: Arc::clone(board),
            halt: halt.clone(),
        },
        windows,
        entries.clone(),
        mode,
    ));
    let mut loops = Loops { ledger, board, halt, entries, quit, modes, dispatching, timing };
    let result = loops.until_done(ingesting, stop, created_at_ms).await;
    // The learner's memory moves from the pacing into the state.
    ledger.remember(None).await;
    result
}

/// The running loops and the levers to end them.
struct Loops<'a> {
    ledger: &'a Ledger,
    board: &'a Arc<Board>,
    halt: &'a Halt,
    entries: mpsc::Sender<Entry>,
    quit: CancellationToken,
    modes: watch::Sender<Mode>,
    dispatching: JoinHandle<Result<(), InputModified>>,
    timing: Timing,
}

impl Loops<'_> {
    async fn until_done(
        &mut self,
        mut ingesting: JoinHandle<Result<(), InputModified>>,
        stop: &Stop,
        created_at_ms: u64,
    ) -> Result<Answer, RunError> {
        let deadline = self.timing.window.map(|window| remaining(window, created_at_ms));
        let deadline = async {
            match deadline {
                Some(remaining) => tokio::time::sleep(remaining).await,
                None => std::future::pending().await,
            }
        };
        let modified = async {
            match (&mut ingesting).await {
                Ok(Err(InputModified)) => {}
                // An input that is read to its end decides nothing.
                _ => std::future::pending().await,
            }
        };
        let interruption = tokio::select! {
            ended = &mut self.dispatching => match ended.map_err(|error| RunError::Defect(error.to_string()))? {
                Ok(()) => None,
                Err(InputModified) => Some(Interruption::End(EndingRequest::input_modified())),
            },
            () = stop.wait() => Some(Interruption::Stop),
            () = deadline => Some(Interruption::End(EndingRequest::expired())),
            () = modified => Some(Interruption::End(EndingRequest::input_modified())),
        };
        let answered = match interruption {
            None => Answer::Complete,
            Some(Interruption::Stop) => self.drain(stop).await,
            Some(Interruption::End(request)) => self.end(&request).await?,
        };
        // Dispatch has dropped the windows, so ingest has ended or ends at its next step.
        if !ingesting.is_finished() {
            ingesting.abort();
        }
        let _ = ingesting.await;
        Ok(answered)
    }

    /// E1-E3: no further request; the ending is stored; what is in flight is awaited.
    async fn end(&mut self, request: &EndingRequest) -> Result<Answer, RunError> {
        self.modes.send_replace(Mode::Drain);
        self.ledger.end(request).await?;
        let wait = match request.reason {
            EndingReason::Expired => EXPIRED_WAIT,
            EndingReason::Cancelled | EndingReason::Abandoned => self.timing.request_timeout,
        };
        self.await_answers(Instant::now() + wait).await;
        Ok(Answer::Complete)
    }

    /// R7: stop dispatch; store at once; await answers and store them as they come; leave in time.
    async fn drain(&mut self, stop: &Stop) -> Answer {
        self.board.enter(Stage::Draining);
        let until = Instant::now() + stop.drain().unwrap_or(self.timing.drain);
        self.modes.send_replace(Mode::Drain);
        while !self.halt.is_set() {
            self.store(until + LAST_FLUSH).await;
            let pause = until.min(Instant::now() + DRAIN_FLUSH);
            let ended = tokio::time::timeout_at(pause, &mut self.dispatching).await;
            if ended.is_ok() || Instant::now() >= until {
                break;
            }
        }
        self.await_answers(Instant::now()).await;
        self.store(until + LAST_FLUSH).await;
        self.quit.cancel();
        Answer::Stopped
    }

    /// Makes everything answered durable and writes a checkpoint, as far as that is done in time.
    async fn store(&self, until: Instant) {
        let work = async {
            let (reached, flushed) = oneshot::channel();
            if self.entries.send(Entry::Flush(reached)).await.is_ok()
                && flushed.await.is_ok()
                && let Err(cause) = self.ledger.checkpoint().await
            {
                self.halt.because(cause);
            }
        };
        if tokio::time::timeout_at(until, work).await.is_err() {
            tracing::warn!("not everything could be stored in time; the rest stays in the scratch folder");
        }
    }

    /// Waits for dispatch, which sends nothing any more; at `until` it gives up what is in flight.
    async fn await_answers(&mut self, until: Instant) {
        if self.dispatching.is_finished() {
            return;
        }
        if tokio::time::timeout_at(until, &mut self.dispatching).await.is_err() {
            self.modes.send_replace(Mode::Abandon);
            // Dispatch ends at once in this mode.
            let _ = (&mut self.dispatching).await;
        }
    }
}

/// What is left of the completion window, which began with the job's first start.
fn remaining(window: Duration, created_at_ms: u64) -> Duration {
    window.saturating_sub(Duration::from_millis(now_ms().saturating_sub(created_at_ms)))
}
