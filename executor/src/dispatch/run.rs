//! The dispatch loop: the one task that takes windows, starts attempts and hears what became of them.

mod conditions;
mod hear;
mod waits;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use penstock_batchfile::{Format, RecordWriter};
use penstock_job::{Reason, spec::Limits};
use penstock_rate::RequestId;
use penstock_storage::Input;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::{
    allowance::Allowance,
    attempt::{Attempted, Attempter},
    pacing::Pacing,
    schedule::{Next, Schedule},
    task::Task,
};
use crate::{
    board::Board,
    budget::Budget,
    halt::Halt,
    ingest::{InputModified, Window},
    ledger::Ledger,
    meter::{Expected, Meter},
    orders::Orders,
    provider::Provider,
    results::Entry,
    steps::Steps,
};

/// How often the view of the job is renewed and a halted dispatch looks whether it may go on.
const TICK: Duration = Duration::from_secs(1);
/// Models that are kept when they have nothing to do.
const MODELS_KEPT: usize = 1_000;

/// What the dispatch loop works with.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) provider: Provider,
    pub(crate) input: Arc<dyn Input>,
    pub(crate) budget: Budget,
    pub(crate) limits: Limits,
    pub(crate) max_in_flight: u32,
    pub(crate) fail_fast: bool,
    pub(crate) format: Format,
    pub(crate) writer: RecordWriter,
    pub(crate) pacing: Arc<Pacing>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) ledger: Ledger,
    pub(crate) board: Arc<Board>,
    pub(crate) halt: Halt,
    pub(crate) orders: Orders,
    pub(crate) steps: Steps,
}

/// What the dispatch loop is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Send.
    Go,
    /// Send nothing for the time being.
    Hold,
    /// Send nothing more; await answers.
    Drain,
    /// Leave at once.
    Abandon,
}

/// Sends every line of every window until all have an outcome, or until the mode says otherwise.
pub(crate) async fn dispatch(
    dispatch: Dispatch,
    windows: mpsc::Receiver<Window>,
    entries: mpsc::Sender<Entry>,
    mode: watch::Receiver<Mode>,
) -> Result<(), InputModified> {
    let halt = dispatch.halt.clone();
    let schedule = Schedule::new(dispatch.max_in_flight);
    let attempter = Arc::new(Attempter {
        provider: dispatch.provider.clone(),
        input: Arc::clone(&dispatch.input),
        budget: dispatch.budget.clone(),
        writer: dispatch.writer.clone(),
        format: dispatch.format,
        max_attempts: dispatch.limits.max_attempts.get(),
        board: Arc::clone(&dispatch.board),
        entries,
        steps: dispatch.steps.clone(),
    });
    let allowance = Allowance::new(Arc::clone(&dispatch.meter), Arc::clone(&dispatch.pacing));
    let mut running = Running {
        dispatch,
        allowance,
        attempter,
        silence: CancellationToken::new(),
        schedule,
        attempts: JoinSet::new(),
        windows: Some(windows),
        input_modified: false,
        succeeded: false,
        passing: BTreeSet::new(),
        raised: BTreeSet::new(),
        failures: 0,
        next_key_check: Instant::now(),
    };
    let result = tokio::select! {
        result = running.until_done(mode) => result,
        () = halt.wait() => Ok(()),
    };
    running.attempts.shutdown().await;
    running.clear_all();
    result
}

/// One attempt that has ended, with what is needed to account for it.
#[derive(Debug)]
struct Ended {
    model: Arc<str>,
    id: RequestId,
    expected: Expected,
    attempted: Attempted,
}

struct Running {
    dispatch: Dispatch,
    allowance: Allowance,
    attempter: Arc<Attempter>,
    /// Cancelled when nothing is to be sent, for attempts that still wait for memory.
    silence: CancellationToken,
    schedule: Schedule,
    attempts: JoinSet<Ended>,
    /// `None` when the input has been read to its end.
    windows: Option<mpsc::Receiver<Window>>,
    /// The input is not what it was: nothing more is sent.
    input_modified: bool,
    /// Whether anything has succeeded yet.
    succeeded: bool,
    /// Models that have answered a line, as long as they have something to do.
    passing: BTreeSet<Arc<str>>,
    /// What this loop has raised on the board; others raise the same reasons and clear them themselves.
    raised: BTreeSet<Reason>,
    /// Attempts in a row without an answer.
    failures: u32,
    next_key_check: Instant,
}

impl Running {
    async fn until_done(&mut self, mut mode: watch::Receiver<Mode>) -> Result<(), InputModified> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ordered = self.dispatch.orders.changes();
        self.bound();
        loop {
            let now_mode = match *mode.borrow_and_update() {
                // What is in flight was paid for, so it is awaited before anybody hears of the change.
                Mode::Go if self.input_modified => Mode::Drain,
                Mode::Go if self.dispatch.orders.is_held() => Mode::Hold,
                asked => asked,
            };
            let wake = match now_mode {
                Mode::Go => self.start_what_may_go(),
                Mode::Hold => {
                    self.silence.cancel();
                    None
                }
                Mode::Drain => {
                    // Lines not in flight are undone; dropping the windows lets ingest end.
                    self.windows = None;
                    self.silence.cancel();
                    None
                }
                Mode::Abandon => return self.ended(),
            };
            self.show();
            let nothing_left = self.windows.is_none() && self.schedule.is_idle();
            if nothing_left || (now_mode == Mode::Drain && self.schedule.in_flight() == 0) {
                return self.ended();
            }
            tokio::select! {
                ended = self.attempts.join_next(), if !self.attempts.is_empty() => {
                    if let Some(ended) = ended {
                        self.hear(ended);
                    }
                    while let Some(ended) = self.attempts.try_join_next() {
                        self.hear(ended);
                    }
                }
                // Ingest makes no more windows than may exist, and each is taken as soon as it is there: a model that
                // is held back leaves the others something to do.
                window = next_window(&mut self.windows) => self.load(window).await,
                () = sleep_until(wake), if wake.is_some() => {}
                // The orders outlive this loop, so they cannot be closed.
                _ = ordered.changed() => self.bound(),
                changed = mode.changed() => if changed.is_err() { return self.ended() },
                _ = ticks.tick() => self.look_around(now_mode).await,
            }
        }
    }

    /// Holds the rate within the bounds that are ordered now.
    fn bound(&mut self) {
        let bounds = self.dispatch.orders.bounds();
        self.dispatch.pacing.bound(bounds);
        let most = self.dispatch.max_in_flight;
        self.schedule.bound(bounds.max_in_flight.map_or(most, |bound| bound.get().min(most)));
    }

    fn ended(&self) -> Result<(), InputModified> {
        if self.input_modified { Err(InputModified) } else { Ok(()) }
    }

    /// Starts every attempt that may go now; returns when the next one may.
    fn start_what_may_go(&mut self) -> Option<Instant> {
        if !self.dispatch.ledger.fence_holds() || self.allowance.is_exhausted() {
            return None;
        }
        if self.silence.is_cancelled() {
            self.silence = CancellationToken::new();
        }
        self.allowance.ask_anew();
        loop {
            let Self { schedule, allowance, .. } = self;
            match schedule.next(Instant::now(), |model, length| allowance.pace(model, length)) {
                Next::Send(task) => self.start(task),
                Next::At(at) => return Some(at),
                Next::Wait => {
                    if self.schedule.in_flight() == 0 {
                        self.allowance.conclude();
                    }
                    return None;
                }
            }
        }
    }

    fn start(&mut self, task: Task) {
        let model = Arc::clone(&task.model);
        let expected = self.allowance.sent(&model, task.length);
        let id = self.dispatch.pacing.sent(&model, task.length);
        let attempter = Arc::clone(&self.attempter);
        let (others_pass, silence) = (self.passing.contains(&model), self.silence.clone());
        let attempt = async move {
            Ended { model, id, expected, attempted: attempter.attempt(task, others_pass, &silence).await }
        };
        // The future has some kilobytes, which a runtime moves several times.
        self.attempts.spawn(Box::pin(attempt));
    }

    async fn load(&mut self, window: Option<Window>) {
        let Some(window) = window else {
            self.windows = None;
            return;
        };
        let forgotten = self.schedule.forget_idle(MODELS_KEPT);
        self.dispatch.pacing.forget(&forgotten);
        for model in &forgotten {
            self.passing.remove(model);
        }
        self.dispatch.ledger.window_opened(window.start, window.end).await;
        let limits = &self.dispatch.limits;
        let most = self.dispatch.max_in_flight;
        self.schedule.load(window, |model| {
            limits
                .per_model
                .get(model)
                .and_then(|limits| limits.max_in_flight)
                .map_or(most, |own| own.get().min(most))
        });
    }
}

async fn next_window(windows: &mut Option<mpsc::Receiver<Window>>) -> Option<Window> {
    match windows {
        Some(windows) => windows.recv().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
