//! From lines to outcomes: ingest and dispatch side by side, and what ends them before every line is answered (a stop,
//! the completion window, a changed input).

use std::{convert::Infallible, sync::Arc, time::Duration};

use penstock_batchfile::{RecordWriter, Rules};
use penstock_job::{Reason, Step, spec::ProviderKind, state::EndingReason};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    board::{Board, Stage},
    budget::Budget,
    clock::now_ms,
    dispatch::{Dispatch, Mode, Pacing, dispatch, learner_memory},
    error::RunError,
    halt::{Halt, Stop},
    ingest::{Ingest, InputModified, ingest},
    job::{EndingRequest, Job, Timing, requests_in_flight},
    ledger::{Ledger, Recollection, lines},
    meter::{Exhaustion, Meter},
    orders::Orders,
    participate::Participant,
    provider::Provider,
    results::Entry,
    steps::Steps,
    watch_load::watch_load,
};

/// Bytes of requests and answers in flight, beside the one oversize holder.
const IN_FLIGHT_BYTES: usize = 24 << 20;
/// How long an expired job waits for what is in flight.
const EXPIRED_WAIT: Duration = Duration::from_mins(1);
/// How often answers that arrive while draining are made durable.
const DRAIN_FLUSH: Duration = Duration::from_secs(2);
/// How long a run that was asked to stop may go on storing when nothing more can come. With the default drain of 10 s it
/// leaves inside 12 s (R7).
pub(crate) const LAST_FLUSH: Duration = Duration::from_millis(1_250);

/// How long the first request waits for a server's word on whether it tells its load.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// How answering ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing is in flight; every line has an outcome, or an ending is stored.
    Complete,
    /// Asked to stop; what is known is stored.
    Stopped,
}

/// Answers every undone line of a job that has no ending.
#[expect(clippy::too_many_arguments, reason = "each is a loop's other end; a struct would only rename them")]
pub(crate) async fn answer(
    job: &Job,
    ledger: &Ledger,
    meter: &Arc<Meter>,
    board: &Arc<Board>,
    stop: &Stop,
    orders: &Orders,
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
    let pacing = Arc::new(Pacing::new(&job.spec, memory, Arc::clone(board)));
    let company = Company::join(job, provider, &pacing).await;
    ledger.remember(Some(Arc::clone(&pacing) as Arc<dyn Recollection>)).await;

    // One window waits while another is dispatched; ingest makes no third.
    let (window_sender, windows) = mpsc::channel(1);
    let modified = CancellationToken::new();
    let ingesting = Task::spawn(tell_if_modified(
        modified.clone(),
        ingest(
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
        ),
    ));
    let (modes, mode) = watch::channel(Mode::Go);
    let in_flight = requests_in_flight(&job.spec);
    let dispatching = Task::spawn(tell_if_modified(
        modified.clone(),
        dispatch(
            Dispatch {
                provider: provider.clone(),
                input: Arc::clone(input),
                budget: Budget::new(IN_FLIGHT_BYTES),
                limits: job.spec.limits.clone(),
                max_in_flight: in_flight,
                fail_fast: job.fail_fast,
                format: job.canonical.format,
                writer,
                pacing,
                meter: Arc::clone(meter),
                ledger: ledger.clone(),
                board: Arc::clone(board),
                halt: halt.clone(),
                orders: orders.clone(),
                steps: job.steps.clone(),
            },
            windows,
            entries.clone(),
            mode,
        ),
    ));
    let loops = Loops {
        ledger,
        meter,
        fail_fast: job.fail_fast,
        board,
        orders,
        halt,
        entries,
        quit,
        modes,
        dispatched: dispatching.ended.clone(),
        timing,
        steps: &job.steps,
    };
    let answered = loops.until_done(&modified, stop, created_at_ms).await;
    dispatching.join().await?;
    company.part().await?;
    // Nobody takes its windows any more, and it may be waiting for a disk that refuses.
    ingesting.handle.abort();
    ingesting.join().await?;
    // The learner's memory moves from the pacing into the state.
    ledger.remember(None).await;
    Ok(answered)
}

/// The loops that tell the learners what others know. Answering waits for neither.
struct Company {
    done: CancellationToken,
    tasks: Vec<Task>,
}

impl Company {
    /// Begins them where the rate is found from answers.
    async fn join(job: &Job, provider: &Provider, pacing: &Arc<Pacing>) -> Self {
        let done = CancellationToken::new();
        let mut tasks = Vec::new();
        if !pacing.is_adaptive() {
            return Self { done, tasks };
        }
        let participation = job.participation.clone();
        tasks.extend(participation.map(|participation| {
            let participant =
                Participant::new(participation, &job.identity, provider.clone(), Arc::clone(pacing));
            Task::spawn(participant.take_part(done.clone()))
        }));
        // Nobody else runs servers that tell their load to everybody.
        let kind = job.canonical.provider.kind;
        if matches!(kind, ProviderKind::OpenAiCompatible | ProviderKind::Simulated) {
            let model = job.canonical.model.as_deref().unwrap_or_default();
            if let Ok(Some(_)) = timeout(FIRST_LOOK, provider.load(model)).await {
                pacing.expect_saturation();
            }
            tasks.push(Task::spawn(watch_load(provider.clone(), Arc::clone(pacing), done.clone())));
        }
        Self { done, tasks }
    }

    /// Ends them.
    async fn part(self) -> Result<(), RunError> {
        self.done.cancel();
        for task in self.tasks {
            task.join().await?;
        }
        Ok(())
    }
}

/// The running loops and the levers to end them.
struct Loops<'a> {
    ledger: &'a Ledger,
    meter: &'a Meter,
    fail_fast: bool,
    board: &'a Arc<Board>,
    orders: &'a Orders,
    halt: &'a Halt,
    entries: mpsc::Sender<Entry>,
    quit: CancellationToken,
    modes: watch::Sender<Mode>,
    /// Dispatch has ended.
    dispatched: CancellationToken,
    timing: Timing,
    steps: &'a Steps,
}

impl Loops<'_> {
    async fn until_done(&self, modified: &CancellationToken, stop: &Stop, created_at_ms: u64) -> Answer {
        let deadline = async {
            match self.timing.window {
                Some(window) => tokio::time::sleep(remaining(window, created_at_ms)).await,
                None => std::future::pending().await,
            }
        };
        let request = tokio::select! {
            // A dispatch that ends because the input changed says so first.
            biased;
            () = modified.cancelled() => Some(EndingRequest::input_modified()),
            () = self.dispatched.cancelled() => None,
            () = stop.wait() => None,
            () = self.orders.cancelled() => Some(EndingRequest::cancelled()),
            () = deadline => Some(EndingRequest::expired()),
            never = self.stay_while_held() => match never {},
            never = self.stay_when_exhausted() => match never {},
        };
        self.board.clear(Reason::Suspended);
        let Some(request) = request else {
            return if self.dispatched.is_cancelled() { Answer::Complete } else { self.drain(stop).await };
        };
        self.board.clear(Reason::CostCapReached);
        tokio::select! {
            () = self.end(&request) => {}
            () = self.halt.wait() => {}
            () = stop.wait() => return self.drain(stop).await,
        }
        Answer::Complete
    }

    /// While the run is held, dispatch sends nothing: stores what is known and what is answered yet, and stays.
    async fn stay_while_held(&self) -> Infallible {
        loop {
            self.orders.held(true).await;
            tracing::info!("held on request; the claim is kept");
            self.board.enter(Stage::Held);
            self.board.raise(Reason::Suspended, "the operator holds the job; nothing is sent");
            tokio::select! {
                never = self.store_what_arrives() => match never {},
                () = self.orders.held(false) => {}
            }
            tracing::info!("no longer held");
            self.board.clear(Reason::Suspended);
            self.board.enter(Stage::Running);
        }
    }

    /// When the budget is used up nothing is in flight and nothing more is sent: stores what is known and stays, or leaves.
    async fn stay_when_exhausted(&self) -> Infallible {
        let Exhaustion { evidence, reached } = self.meter.exhausted().await;
        self.ledger.budget_reached(reached).await;
        // Whoever hears the reason may rely on it: no process that comes after this one sends anything.
        self.store().await;
        self.board.raise(Reason::CostCapReached, evidence.as_str());
        if self.fail_fast {
            self.halt.because(RunError::BudgetReached { evidence });
        }
        std::future::pending().await
    }

    async fn store_what_arrives(&self) -> Infallible {
        self.store().await;
        loop {
            tokio::time::sleep(DRAIN_FLUSH).await;
            if self.board.exposed() > 0 {
                self.store().await;
            }
        }
    }

    /// E1-E3: no further request; the ending is stored; what is in flight is awaited.
    async fn end(&self, request: &EndingRequest) {
        self.modes.send_replace(Mode::Drain);
        if let Err(cause) = self.ledger.end(request).await {
            // Whoever has lost the claim stores nothing more and awaits no answer.
            self.halt.because(cause);
            return;
        }
        let wait = match request.reason {
            EndingReason::Expired => EXPIRED_WAIT,
            EndingReason::Cancelled | EndingReason::Abandoned => self.timing.request_timeout,
        };
        self.await_answers(Instant::now() + wait).await;
        self.steps.after(Step::Drain).await;
    }

    /// R7: stop dispatch; store at once; await answers and store them as they come; leave in time.
    async fn drain(&self, stop: &Stop) -> Answer {
        self.board.enter(Stage::Draining);
        self.modes.send_replace(Mode::Drain);
        let storing = async {
            loop {
                self.store().await;
                if timeout(DRAIN_FLUSH, self.dispatched.cancelled()).await.is_ok() {
                    break;
                }
            }
        };
        tokio::select! {
            () = storing => {}
            () = stop.over(self.timing.drain) => {}
            () = self.halt.wait() => {}
        }
        self.await_answers(Instant::now()).await;
        if timeout(LAST_FLUSH, self.store()).await.is_err() {
            tracing::warn!("not everything could be stored in time; the rest stays in the scratch folder");
        }
        self.quit.cancel();
        Answer::Stopped
    }

    /// Makes everything answered durable and writes a checkpoint.
    async fn store(&self) {
        let (reached, flushed) = oneshot::channel();
        if self.entries.send(Entry::Flush(reached)).await.is_ok()
            && flushed.await.is_ok()
            && let Err(cause) = self.ledger.checkpoint().await
        {
            self.halt.because(cause);
        }
    }

    /// Waits for dispatch, which sends nothing any more; at `until` it gives up what is in flight.
    async fn await_answers(&self, until: Instant) {
        if tokio::time::timeout_at(until, self.dispatched.cancelled()).await.is_err() {
            self.modes.send_replace(Mode::Abandon);
            // Dispatch ends at once in this mode.
            self.dispatched.cancelled().await;
        }
    }
}

/// A spawned loop whose end can be awaited more than once.
struct Task {
    ended: CancellationToken,
    handle: AbortOnDropHandle<()>,
}

impl Task {
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let handle = tokio::spawn(async move {
            // Dropped when the work is done, also when it panics.
            let _guard = guard;
            work.await;
        });
        Self { ended, handle: AbortOnDropHandle::new(handle) }
    }

    async fn join(self) -> Result<(), RunError> {
        match self.handle.await {
            Err(error) if error.is_panic() => Err(RunError::Defect(error.to_string())),
            _ => Ok(()),
        }
    }
}

/// Runs a loop; cancels `modified` when it ends because the input is not what it was.
async fn tell_if_modified(
    modified: CancellationToken,
    work: impl Future<Output = Result<(), InputModified>> + Send,
) {
    if let Err(InputModified) = work.await {
        modified.cancel();
    }
}

/// What is left of the completion window, which began with the job's first start.
pub(crate) fn remaining(window: Duration, created_at_ms: u64) -> Duration {
    window.saturating_sub(Duration::from_millis(now_ms().saturating_sub(created_at_ms)))
}
