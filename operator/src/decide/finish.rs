//! The end of a job: the receipt, the Job that only publishes, and the time to live.

use std::time::Duration;

use penstock_crds::{batch_job::BatchJobStatus, names::Child, reason::Evidence, state::State};
use penstock_job::{Reason, receipt::ReceiptEnding, report::Hindrance};

use super::{Action, Decision, Finding, execute::last_word, until};
use crate::{
    intake::{Over, Validated, Word},
    observe::{IntakeSeen, Observed},
    workload::{Farewell, Stage, Workload},
};

/// The job is over, by its receipt.
pub(super) fn over(seen: &Observed, over: &Over) -> Decision {
    let mut finding = match over.receipt.ending {
        ReceiptEnding::Completed => Finding::new(State::Completed),
        ReceiptEnding::Cancelled => Finding::new(State::Cancelled),
        ReceiptEnding::Expired => Finding::ended(
            State::Expired,
            Reason::CompletionWindowOver,
            "the completion window was over before every line was answered",
        ),
        ReceiptEnding::Failed => match seen.said_of_the_end() {
            Some(Hindrance { reason, evidence }) => Finding::ended(State::Failed, reason, &evidence),
            None => Finding::new(State::Failed)
                .note("The job could not be run to its end; what was answered is published."),
        },
    };
    finding.validated = Some(over.validated.clone());
    finding.over = Some(over.clone());
    finding.heard.clone_from(&seen.heard);
    Decision::say(finding).then(Action::StopIntake)
}

/// The pod that decided its Job has ended well: a receipt is there.
pub(super) fn ended(seen: &Observed, farewell: &Farewell) -> Decision {
    let word = last_word(farewell);
    let told = word.as_ref().and_then(|word| {
        let receipt = word.receipt.clone()?;
        let validated = Validated {
            identity: word.identity.clone()?,
            generation: seen.status()?.validation.as_ref()?.generation.clone(),
            lines: receipt.lines,
            rejected: receipt.outcomes.rejected,
        };
        Some((Over { validated, receipt }, word.reason))
    });
    match told {
        Some((told, Some(reason))) if told.receipt.ending == ReceiptEnding::Failed => {
            let mut decision = over(seen, &told);
            if let (Some(finding), Some(word)) = (&mut decision.finding, &word) {
                let ended = Some(Hindrance { reason, evidence: word.message.clone() });
                finding.evidence = Evidence { ended, ..Evidence::default() };
            }
            decision
        }
        Some((told, _)) => over(seen, &told),
        // The pod is gone with what it said: the bucket says it as well.
        None => look(seen),
    }
}

fn look(seen: &Observed) -> Decision {
    let finding =
        Finding::new(seen.after(State::Finalizing)).note("The receipt is being read from the bucket.");
    match &seen.intake {
        IntakeSeen::Said { word: Word::Over(found), .. } => over(seen, found),
        IntakeSeen::Running => Decision::say(finding),
        IntakeSeen::None => Decision::say(finding).then(Action::Intake),
        IntakeSeen::Said { ago, .. } => {
            let left = Duration::from_secs(30).saturating_sub(*ago);
            if left.is_zero() {
                Decision::say(finding).then(Action::Intake)
            } else {
                Decision::say(finding).again(left)
            }
        }
    }
}

/// The Job that only publishes is there.
pub(super) fn publishing(seen: &Observed, finalizer: &Workload) -> Decision {
    match &finalizer.stage {
        Stage::Succeeded(farewell) => ended(seen, farewell),
        Stage::Refused(farewell) => match last_word(farewell) {
            Some(word) => failed(seen, &word.message),
            None => failed(seen, "the pod that publishes ended without a word; its log says why"),
        },
        Stage::GivenUp(told) => failed(seen, told),
        Stage::Waiting(told) => {
            let evidence = Evidence { pod_waits: told.clone(), ..Evidence::default() };
            Decision::say(Finding::held(state(seen), evidence))
        }
        Stage::Running => {
            Decision::say(Finding::new(state(seen)).note("What was answered is being published."))
        }
    }
}

fn failed(seen: &Observed, evidence: &str) -> Decision {
    let mut finding = Finding::ended(State::Failed, Reason::FinalizationFailed, evidence);
    finding.heard.clone_from(&seen.heard);
    Decision::say(finding)
}

/// The output belongs to somebody else.
pub(super) fn occupied(evidence: &str) -> Decision {
    Decision::say(Finding::ended(State::Failed, Reason::OutputOccupied, evidence))
}

/// Where a job is that is being published without an executor.
pub(super) fn state(seen: &Observed) -> State {
    seen.after(if seen.is_cancelled() { State::Cancelling } else { State::Finalizing })
}

/// A job that is over: it is deleted when its time has come, and nothing else is done.
pub(super) fn after_the_end(seen: &Observed, status: &BatchJobStatus) -> Decision {
    let decision = leftovers(seen);
    let Some(ttl) = seen.batch_job.spec.ttl_seconds_after_finished else { return decision };
    let Some(ended) = status.completion_time.as_ref() else { return decision };
    let since = until(ended.0, seen.now);
    match Duration::from_secs(u64::try_from(ttl).unwrap_or_default()).checked_sub(since) {
        None | Some(Duration::ZERO) => decision.then(Action::DeleteBatchJob),
        Some(left) => decision.again(left),
    }
}

/// Jobs that still do something though the job is over.
fn leftovers(seen: &Observed) -> Decision {
    let jobs = [(Child::Executor, &seen.jobs.executor), (Child::Validation, &seen.jobs.validation)];
    jobs.into_iter().fold(Decision::rest(), |decision, (child, job)| match job {
        Some(job) if !job.is_over() && !job.is_deleting => {
            decision.then(Action::Delete { child, uid: job.uid.clone() })
        }
        _ => decision,
    })
}

impl Observed {
    /// What the bucket said of a job that was over before it was applied.
    pub(super) fn over_by_intake(&self) -> Option<&Over> {
        match &self.intake {
            IntakeSeen::Said { word: Word::Over(over), .. } => Some(over),
            _ => None,
        }
    }

    /// What the executor has said of the end of the job.
    fn said_of_the_end(&self) -> Option<Hindrance> {
        self.heard.as_ref()?.report.hindrance.clone()
    }
}
