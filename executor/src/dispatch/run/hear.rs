//! How attempts end: what each end tells the learner and the board, and when its line or its model is tried again.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use penstock_job::Reason;
use penstock_rate::{Hints, Verdict};
use tokio::time::Instant;

use super::{Ended, Running, TICK, waits};
use crate::{
    dispatch::{attempt::Attempted, task::Task},
    error::RunError,
    provider::{Resumption, in_words},
};

/// So many attempts in a row without an answer mean that the provider is not available.
const UNAVAILABLE_AFTER: u32 = 5;

/// Why a provider turns every line of a model away.
const BLOCKS: [Reason; 3] =
    [Reason::CredentialsRefused, Reason::BillingOrZeroQuota, Reason::DayQuotaExhausted];

impl Running {
    pub(super) fn hear(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        let Ended { model, id, expected, attempted } = match ended {
            Ok(ended) => ended,
            Err(error) => {
                self.dispatch.halt.because(RunError::Defect(format!("an attempt ended abnormally: {error}")));
                return;
            }
        };
        self.schedule.ended(&model);
        self.allowance.ended(&model, expected);
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
                let after = if perhaps_alone { rest + waits::SPREAD } else { Duration::ZERO };
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

    fn try_again(&mut self, task: Task, asked: Option<Duration>) {
        let wait = waits::after_failure(self.dispatch.limits.retry, asked, task.tries);
        self.schedule.try_again(task, Instant::now() + wait);
    }

    fn throttled(&mut self, task: Task, asked: Option<Duration>) {
        let asked = waits::named(asked);
        let unasked = || {
            if self.dispatch.pacing.is_adaptive() {
                // Its turn comes when the learner lets anything go.
                Duration::ZERO
            } else {
                waits::after_refusal(task.refusals)
            }
        };
        let due = Instant::now() + asked.unwrap_or_else(unasked);
        // A learner reads refusals and lowers the rate; without one, only the provider's own word can stop the next
        // request from being refused as well.
        if self.dispatch.pacing.is_fixed() && asked.is_some() {
            self.schedule.close(&task.model, due);
        }
        self.schedule.try_again(task, due);
    }

    /// Lets the model of a refused line rest, and says how long.
    fn blocked(&mut self, task: &Task, reason: Reason, resumes: Resumption, message: String) -> Duration {
        if reason == Reason::CredentialsRefused && self.dispatch.fail_fast && !self.succeeded {
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
        let rest = waits::rest(reason, wait);
        self.schedule.close(&task.model, Instant::now() + rest);
        rest
    }
}
