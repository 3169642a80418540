//! The dispatch loop: the one task that takes windows, starts attempts and hears what became of them.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use penstock_batchfile::{Format, RecordWriter};
use penstock_job::{Reason, spec::Limits};
use penstock_rate::{Hints, RequestId, Verdict};
use penstock_storage::Input;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

use super::{
    attempt::{Attempted, Attempter},
    pacing::{Pacing, View},
    schedule::{Next, Schedule, Task},
};
use crate::{
    board::Board,
    budget::Budget,
    error::RunError,
    halt::Halt,
    ingest::{InputModified, Window},
    ledger::{FENCE, Ledger},
    output::jitter,
    provider::{Provider, Resumption, in_words},
    results::Entry,
    steps::Steps,
};

/// How often the view of the job is renewed and a halted dispatch looks whether it may go on.
const TICK: Duration = Duration::from_secs(1);
/// How often key files are read again while the provider refuses the key.
const KEY_CHECK: Duration = Duration::from_secs(5);
/// How long a refused model rests before one request tries it again, unless the provider says.
const BLOCKED_PAUSE: Duration = Duration::from_mins(1);
/// The shortest rest, even of a provider that asks for none and refuses all the same.
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// The longest rest, whatever the provider says: quotas are raised and bills paid in between.
const LONGEST_REST: Duration = Duration::from_mins(15);
/// Lines that were told the same time to come back do so spread over this long.
const SPREAD: Duration = Duration::from_secs(1);
/// The first wait of a line that was refused for the rate by a provider that says no time; doubles up to
/// [`LONGEST_REFUSAL`].
const REFUSAL_BASE: Duration = Duration::from_secs(1);
/// The longest such wait: a window of a minute is over by then.
const LONGEST_REFUSAL: Duration = Duration::from_mins(1);
/// So many attempts in a row without an answer mean that the provider is not available.
const UNAVAILABLE_AFTER: u32 = 5;
/// Models that are kept when they have nothing to do.
const MODELS_KEPT: usize = 1_000;

/// Why a provider turns every line of a model away.
const BLOCKS: [Reason; 3] =
    [Reason::CredentialsRefused, Reason::BillingOrZeroQuota, Reason::DayQuotaExhausted];

/// What the dispatch loop works with.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) provider: Provider,
    pub(crate) input: Arc<dyn Input>,
    pub(crate) budget: Budget,
    pub(crate) limits: Limits,
    pub(crate) max_in_flight: u32,
    pub(crate) fail_fast_on_credentials: bool,
    pub(crate) format: Format,
    pub(crate) writer: RecordWriter,
    pub(crate) pacing: Arc<Pacing>,
    pub(crate) ledger: Ledger,
    pub(crate) board: Arc<Board>,
    pub(crate) halt: Halt,
    pub(crate) steps: Steps,
}

/// What the dispatch loop is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Send.
    Go,
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
        draining: CancellationToken::new(),
        steps: dispatch.steps.clone(),
    });
    let mut running = Running {
        dispatch,
        attempter,
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
    running.clear_conditions();
    result
}

/// One attempt that has ended, with what is needed to account for it.
#[derive(Debug)]
struct Ended {
    model: Arc<str>,
    id: RequestId,
    attempted: Attempted,
}

struct Running {
    dispatch: Dispatch,
    attempter: Arc<Attempter>,
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
        loop {
            let now_mode = match *mode.borrow_and_update() {
                // What is in flight was paid for, so it is awaited before anybody hears of the change.
                Mode::Go if self.input_modified => Mode::Drain,
                asked => asked,
            };
            let wake = match now_mode {
                Mode::Go => self.start_what_may_go(),
                Mode::Drain => {
                    // Lines not in flight are undone; dropping the windows lets ingest end.
                    self.windows = None;
                    self.attempter.draining.cancel();
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
                changed = mode.changed() => if changed.is_err() { return self.ended() },
                _ = ticks.tick() => self.look_around(now_mode).await,
            }
        }
    }

    fn ended(&self) -> Result<(), InputModified> {
        if self.input_modified { Err(InputModified) } else { Ok(()) }
    }

    /// Starts every attempt that may go now; returns when the next one may.
    fn start_what_may_go(&mut self) -> Option<Instant> {
        if !self.dispatch.ledger.fence_holds() {
            return None;
        }
        let pacing = Arc::clone(&self.dispatch.pacing);
        loop {
            match self.schedule.next(Instant::now(), |model, length| pacing.pace(model, length)) {
                Next::Send(task) => self.start(task),
                Next::At(at) => return Some(at),
                Next::Wait => return None,
            }
        }
    }

    fn start(&mut self, task: Task) {
        let model = Arc::clone(&task.model);
        let id = self.dispatch.pacing.sent(&model, task.length);
        let attempter = Arc::clone(&self.attempter);
        let others_pass = self.passing.contains(&model);
        let attempt =
            async move { Ended { model, id, attempted: attempter.attempt(task, others_pass).await } };
        // The future has some kilobytes, which a runtime moves several times.
        self.attempts.spawn(Box::pin(attempt));
    }

    fn hear(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        let Ended { model, id, attempted } = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.dispatch.halt.because(RunError::Defect(format!("an attempt ended abnormally: {error}")));
                return;
            }
        };
        self.schedule.ended(&model);
        let answered = matches!(attempted, Attempted::Settled { answered: true, .. });
        let pacing = Arc::clone(&self.dispatch.pacing);
        match attempted {
            Attempted::Settled { hints, verdict, output_bound, .. } => {
                if let Some(tokens) = output_bound {
                    pacing.bounded(&model, tokens);
                }
                if hints != Hints::default() {
                    pacing.verdict(&model, id, Verdict::Admitted { hints });
                }
                pacing.verdict(&model, id, verdict);
                if matches!(verdict, Verdict::Succeeded { .. }) {
                    self.passes(&model);
                }
            }
            Attempted::Again { task, after, verdict, evidence } => {
                pacing.verdict(&model, id, verdict);
                self.unanswered(&evidence);
                self.try_again(task, after);
            }
            Attempted::Throttled { task, after, verdict, evidence } => {
                pacing.verdict(&model, id, verdict);
                if matches!(verdict, Verdict::Overloaded { .. }) {
                    self.unanswered(&evidence);
                } else {
                    self.failures = 0;
                }
                self.throttled(task, after);
            }
            Attempted::Blocked { task, reason, resumes, perhaps_alone, message } => {
                pacing.verdict(&model, id, Verdict::Lost);
                let rest = self.blocked(&task, reason, resumes, message);
                // Another line is to look whether it passes, should this one alone be at fault.
                let after = if perhaps_alone { rest + SPREAD } else { Duration::ZERO };
                self.schedule.try_again(task, Instant::now() + after);
            }
            Attempted::Unsent { task } => {
                pacing.verdict(&model, id, Verdict::Lost);
                self.schedule.try_again(task, Instant::now() + TICK);
            }
            Attempted::InputModified => {
                pacing.verdict(&model, id, Verdict::Lost);
                self.input_modified = true;
            }
        }
        // However a probe ends, unless it is turned away, others may go: its line may be settled and never come back.
        self.schedule.open_probed(&model);
        if answered {
            self.answered();
        }
    }

    /// A line of this model has succeeded.
    fn passes(&mut self, model: &Arc<str>) {
        self.succeeded = true;
        if !self.passing.contains(model) {
            self.passing.insert(Arc::clone(model));
        }
    }

    /// The provider works, for this model at least.
    fn answered(&mut self) {
        self.failures = 0;
        if !self.raised.is_empty() && !self.schedule.any_closed() {
            for reason in BLOCKS {
                self.clear(reason);
            }
        }
    }

    fn unanswered(&mut self, evidence: &str) {
        self.dispatch.board.retried.fetch_add(1, Relaxed);
        self.failures += 1;
        if self.failures >= UNAVAILABLE_AFTER {
            let evidence = format!("{} attempts in a row failed: {evidence}", self.failures);
            self.raise(Reason::ProviderUnavailable, evidence);
        }
    }

    fn try_again(&mut self, task: Task, after: Option<Duration>) {
        let retry = self.dispatch.limits.retry;
        let [base, cap] = [retry.base_ms, retry.cap_ms].map(Duration::from_millis);
        let drawn = |cap| jitter(base.min(cap), cap, task.tries - 1);
        let pause = named(after).map_or_else(|| drawn(cap), |after| after + drawn(cap.min(SPREAD)));
        self.schedule.try_again(task, Instant::now() + pause);
    }

    fn throttled(&mut self, task: Task, after: Option<Duration>) {
        let after = named(after);
        let unasked = || {
            if self.dispatch.pacing.is_adaptive() {
                // Its turn comes when the learner lets anything go.
                Duration::ZERO
            } else {
                jitter(REFUSAL_BASE, LONGEST_REFUSAL, task.refusals - 1)
            }
        };
        let due = Instant::now() + after.unwrap_or_else(unasked);
        // A learner reads refusals and lowers the rate; without one, only the provider's own word can stop the next
        // request from being refused as well.
        if self.dispatch.pacing.is_fixed() && after.is_some() {
            self.schedule.close(&task.model, due);
        }
        self.schedule.try_again(task, due);
    }

    /// Lets the model of a refused line rest, and says how long.
    fn blocked(&mut self, task: &Task, reason: Reason, resumes: Resumption, message: String) -> Duration {
        if reason == Reason::CredentialsRefused && self.dispatch.fail_fast_on_credentials && !self.succeeded {
            self.dispatch.halt.because(RunError::CredentialsRefused { evidence: message });
            return Duration::ZERO;
        }
        self.failures = 0;
        let now = SystemTime::now();
        let moment = resumes.moment(now);
        let evidence = match moment {
            Some(at) => format!("resumes {}; the provider says: {message}", in_words(at, now)),
            None => message,
        };
        self.raise(reason, evidence);
        let wait = moment.map(|at| at.duration_since(now).unwrap_or_default());
        let rest = rest(reason, wait);
        self.schedule.close(&task.model, Instant::now() + rest);
        rest
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

    /// Once a second: what the view shows, whether a better key is there, whether the fence holds.
    async fn look_around(&mut self, mode: Mode) {
        let View { belief, gauges, reason: paced } = self.dispatch.pacing.view();
        self.dispatch.board.believes(belief.clone(), gauges);
        let held = mode == Mode::Go && !self.schedule.is_exhausted();
        let limits = [
            (Reason::Learning, held && paced == Some(Reason::Learning)),
            (Reason::RunningAtLimit, held && paced == Some(Reason::RunningAtLimit)),
            (Reason::AtOwnLimit, held && (paced == Some(Reason::AtOwnLimit) || self.schedule.is_full())),
        ];
        for (reason, holds) in limits {
            if holds {
                self.raise(reason, self.evidence(reason, &belief));
            } else {
                self.clear(reason);
            }
        }
        if self.failures == 0 {
            self.clear(Reason::ProviderUnavailable);
        }
        if self.dispatch.ledger.fence_holds() {
            self.clear(Reason::StorageSlow);
        } else {
            self.raise(Reason::StorageSlow, format!("no checkpoint succeeded for {} s", FENCE.as_secs()));
        }
        self.look_for_keys().await;
    }

    fn raise(&mut self, reason: Reason, evidence: String) {
        self.raised.insert(reason);
        self.dispatch.board.raise(reason, evidence);
    }

    fn clear(&mut self, reason: Reason) {
        if self.raised.remove(&reason) {
            self.dispatch.board.clear(reason);
        }
    }

    /// What held dispatch back no longer matters when it has ended.
    fn clear_conditions(&self) {
        for reason in &self.raised {
            self.dispatch.board.clear(*reason);
        }
        self.dispatch.board.in_flight.store(0, Relaxed);
        self.dispatch.board.waiting_for_retry.store(0, Relaxed);
    }

    fn evidence(&self, reason: Reason, belief: &str) -> String {
        match reason {
            Reason::AtOwnLimit if self.schedule.is_full() => {
                format!("{} requests are in flight, as many as may be", self.schedule.in_flight())
            }
            _ => belief.to_owned(),
        }
    }

    async fn look_for_keys(&mut self) {
        let now = Instant::now();
        if !self.schedule.any_closed() || now < self.next_key_check {
            return;
        }
        self.next_key_check = now + KEY_CHECK;
        if self.dispatch.provider.refresh_keys().await {
            tracing::info!("a key file has changed; the provider is asked again");
            self.schedule.open_all();
        }
    }

    fn show(&self) {
        let board = &self.dispatch.board;
        board.in_flight.store(u64::from(self.schedule.in_flight()), Relaxed);
        board.waiting_for_retry.store(self.schedule.waiting() as u64, Relaxed);
    }
}

async fn next_window(windows: &mut Option<mpsc::Receiver<Window>>) -> Option<Window> {
    match windows {
        Some(windows) => windows.recv().await,
        None => std::future::pending().await,
    }
}

/// How long a refused model rests, given how long that is expected to last. A day that ends nobody knows when is asked
/// for seldom, since many providers count refused requests too.
fn rest(reason: Reason, wait: Option<Duration>) -> Duration {
    let unknown = if reason == Reason::DayQuotaExhausted { LONGEST_REST } else { BLOCKED_PAUSE };
    wait.unwrap_or(unknown).clamp(SHORTEST_REST, LONGEST_REST)
}

/// A wait that a provider names. One of zero tells nothing: whoever is refused all the same would ask without a pause.
fn named(after: Option<Duration>) -> Option<Duration> {
    after.filter(|after| !after.is_zero())
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_model_rests_as_long_as_its_provider_says_within_reason() {
        let rest = |wait| rest(Reason::CredentialsRefused, wait);
        assert_eq!(rest(None), BLOCKED_PAUSE);
        assert_eq!(rest(Some(Duration::ZERO)), SHORTEST_REST, "it is not asked without a pause");
        assert_eq!(rest(Some(Duration::from_mins(2))), Duration::from_mins(2));
        assert_eq!(rest(Some(Duration::from_hours(24))), LONGEST_REST);
    }

    #[test]
    fn a_day_that_ends_nobody_knows_when_is_asked_for_seldom() {
        assert_eq!(rest(Reason::DayQuotaExhausted, None), LONGEST_REST);
        let minutes = Duration::from_secs(432);
        assert_eq!(rest(Reason::DayQuotaExhausted, Some(minutes)), minutes);
    }
}
