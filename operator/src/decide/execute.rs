//! A validated job: its executor's Job is made once, watched, suspended on request, and replaced when its pods are lost.

use std::time::Duration;

use penstock_crds::{
    names::Child,
    reason::{Evidence, Suspension},
    state::State,
};
use penstock_job::{
    ExitCode, LastWord, Reason, document,
    report::{self, Hindrance},
};

use super::{Action, Decision, Finding, Work, finish, until, validate};
use crate::{
    observe::Observed,
    workload::{Farewell, Stage, Suspender, Workload},
};

/// Pods that a Job may lose before another Job takes its place: the Job controller waits twice as long after each, up to
/// ten minutes, and never begins anew.
const LOST_BEFORE_REPLACING: u32 = 3;
/// Pods that may be lost, one after the other, while the job comes no further.
const LOST_IN_VAIN: u32 = 20;
/// How long after a Job was made another takes its place whose pod may find the output open to it.
const REFUSED_BY_STORAGE: Duration = Duration::from_mins(2);
/// What is said from validation until somebody says more of the pod.
const NO_POD: &str = "its Job has no pod yet";
/// How long an executor may be silent before a cancellation no longer waits for it to be heard.
const SILENT: Duration = Duration::from_mins(1);

/// No Job is there.
pub(super) fn starting(seen: &Observed) -> Decision {
    if seen.is_cancelled() || seen.is_expired() {
        return ending(seen, Finding::new(finish::state(seen)));
    }
    if let Some(rival) = &seen.rival {
        return finish::occupied(&validate::occupied_by(rival));
    }
    let evidence = seen.evidence();
    if evidence.misconfigured.is_some() {
        return Decision::say(waiting(seen, evidence)).again(validate::LOOK_AGAIN);
    }
    if evidence.suspended.is_some() {
        return Decision::say(waiting(seen, evidence));
    }
    let lost = seen.before().lost;
    if lost >= LOST_IN_VAIN {
        let told = format!("{lost} pods were lost, one after the other, and the job came no further.");
        return ending(seen, Finding::new(finish::state(seen)).note(told));
    }
    Decision::say(waiting(seen, pod_waits(NO_POD))).then(Action::Create(Work::Execute))
}

/// The executor's Job is there.
pub(super) fn running(seen: &Observed, executor: &Workload) -> Decision {
    if executor.is_deleting {
        return Decision::say(waiting(seen, pod_waits("its Job is being replaced")));
    }
    match &executor.stage {
        Stage::Succeeded(farewell) => return finish::ended(seen, farewell),
        Stage::Refused(farewell) => return refused(seen, executor, farewell),
        Stage::GivenUp(told) => return ending(seen, Finding::new(finish::state(seen)).note(told)),
        Stage::Waiting(_) | Stage::Running => {}
    }
    if seen.is_cancelled() {
        return cancelling(seen, executor);
    }
    if seen.is_expired() && (executor.suspended_by.is_some() || executor.stage != Stage::Running) {
        return Decision::say(Finding::new(finish::state(seen))).then(delete(executor));
    }
    let mut decision = Decision::say(going_on(seen, executor));
    if let Some(left) = seen.left().filter(|left| !left.is_zero()) {
        decision = decision.again(left);
    }
    if seen.is_queued_by_others() {
        return decision;
    }
    // What others have suspended they resume.
    let suspend = match (seen.batch_job.spec.suspend, executor.suspended_by) {
        (true, None) => Some(true),
        (false, Some(Suspender::Operator)) => Some(false),
        _ => None,
    };
    if let Some(suspend) = suspend {
        return decision.then(Action::Suspend { uid: executor.uid.clone(), suspend });
    }
    let is_free = executor.suspended_by.is_none() && executor.pods.is_empty();
    if is_free && executor.lost >= LOST_BEFORE_REPLACING {
        return decision.then(delete(executor));
    }
    decision
}

/// A job whose Job is there and does its part.
fn going_on(seen: &Observed, executor: &Workload) -> Finding {
    let suspended = match (seen.batch_job.spec.suspend, executor.suspended_by) {
        (true, _) => Some(Suspension::Spec),
        (false, Some(Suspender::Other)) => Some(Suspension::Queue),
        (false, Some(Suspender::Operator) | None) => None,
    };
    let mut finding = match &executor.stage {
        _ if executor.suspended_by.is_some() => {
            Finding::held(seen.after(State::Queued), Evidence { suspended, ..Evidence::default() })
        }
        Stage::Waiting(told) => {
            let told = told.as_deref().unwrap_or(NO_POD);
            waiting(seen, Evidence { suspended, ..pod_waits(told) })
        }
        _ => told(seen, suspended),
    };
    finding.lost = Some(lost_in_vain(seen, executor));
    finding
}

/// A running executor, by what it says of itself.
fn told(seen: &Observed, suspended: Option<Suspension>) -> Finding {
    let Some(heard) = &seen.heard else {
        let evidence = Evidence { suspended, ..Evidence::default() };
        return Finding::held(seen.after(State::Running), evidence)
            .note("Its pod runs, and has not reported yet.");
    };
    let report = &heard.report;
    let state = match report.stage {
        report::Stage::Reconciling | report::Stage::Publishing => State::Finalizing,
        _ => State::Running,
    };
    let evidence = Evidence { suspended, executor: report.hindrance.clone(), ..Evidence::default() };
    let mut finding = Finding::held(seen.after(state), evidence);
    finding.heard = Some(heard.clone());
    finding
}

/// Cancelled: an executor that listens ends the job itself, so that what is in flight is not lost. Where none does, it is
/// taken away, and the job is published without one.
fn cancelling(seen: &Observed, executor: &Workload) -> Decision {
    let mut finding = Finding::new(seen.after(State::Cancelling));
    finding.heard.clone_from(&seen.heard);
    let Some(silent) = silence(seen, executor) else {
        return Decision::say(finding.note("No executor runs: the job is published without one."))
            .then(delete(executor));
    };
    let Some(left) = SILENT.checked_sub(silent).filter(|left| !left.is_zero()) else {
        let told = format!("The executor was not heard for {} s and is stopped.", silent.as_secs());
        return Decision::say(finding.note(told)).then(delete(executor));
    };
    Decision::say(finding).again(left)
}

/// How long the executor that runs has said nothing; `None` when none runs.
fn silence(seen: &Observed, executor: &Workload) -> Option<Duration> {
    let pod = executor.pods.iter().find(|pod| pod.is_running)?;
    let runs = pod.started_at.as_ref().map_or(Duration::ZERO, |at| until(at.0, seen.now));
    Some(seen.heard.as_ref().map_or(runs, |heard| heard.ago.min(runs)))
}

/// The executor says that no other can do better.
fn refused(seen: &Observed, executor: &Workload, farewell: &Farewell) -> Decision {
    let word = last_word(farewell);
    let code = farewell.exit_code.unwrap_or_default();
    let reason = word.as_ref().and_then(|word| word.reason).unwrap_or(match code {
        code if code == i32::from(ExitCode::Configuration.code()) => Reason::Misconfigured,
        code if code == i32::from(ExitCode::OutputOccupied.code()) => Reason::OutputOccupied,
        _ => Reason::FinalizationFailed,
    });
    let told = match word {
        Some(word) => word.message.to_string(),
        None => format!("the executor ended with exit code {code}; its log says why"),
    };
    if reason == Reason::StorageRefused {
        return refused_by_storage(seen, executor, &told);
    }
    let mut finding = Finding::ended(State::Failed, reason, &told);
    finding.heard.clone_from(&seen.heard);
    Decision::say(finding)
}

/// Its account may not write, or read, what it must. Somebody can allow it, and what was answered waits in the bucket.
fn refused_by_storage(seen: &Observed, executor: &Workload, told: &str) -> Decision {
    if seen.is_cancelled() || seen.is_expired() {
        return ending(seen, Finding::new(finish::state(seen)));
    }
    let hindrance = Hindrance { reason: Reason::StorageRefused, evidence: told.into() };
    let decision = Decision::say(waiting(seen, Evidence { executor: Some(hindrance), ..seen.evidence() }));
    let age = executor.made_at.as_ref().map_or(REFUSED_BY_STORAGE, |at| until(at.0, seen.now));
    match REFUSED_BY_STORAGE.saturating_sub(age) {
        Duration::ZERO => decision.then(delete(executor)),
        left => decision.again(left),
    }
}

/// What an executor left behind.
pub(super) fn last_word(farewell: &Farewell) -> Option<LastWord> {
    document::read(farewell.message.as_deref()?.as_bytes()).ok()
}

/// The job ends without an executor: once the Job is gone, one that only publishes is made.
fn ending(seen: &Observed, mut finding: Finding) -> Decision {
    if let Some(executor) = &seen.jobs.executor {
        return Decision::say(finding).then(delete(executor));
    }
    // Without its Provider a job can be published only where an earlier Job has left its job file.
    finding.evidence.misconfigured = seen.evidence().misconfigured;
    Decision::say(finding).then(Action::Create(Work::Finish(seen.ending()))).again(validate::LOOK_AGAIN)
}

/// A job without a pod: on its way again where it has begun.
fn waiting(seen: &Observed, evidence: Evidence) -> Finding {
    let is_held = evidence.suspended.is_some() || !seen.has_started();
    Finding::held(seen.after(if is_held { State::Queued } else { State::Running }), evidence)
}

/// Pods lost since the job came further.
fn lost_in_vain(seen: &Observed, executor: &Workload) -> u32 {
    let has_come_further = seen.before().done > executor.before.done;
    executor.lost.saturating_add(if has_come_further { 0 } else { executor.before.lost })
}

/// What stands in the way of a job that was validated in this pass: the same as in the next ones, so that these have
/// nothing new to write.
pub(super) fn before_starting(seen: &Observed) -> Evidence {
    Evidence { pod_waits: Some(NO_POD.to_owned()), ..seen.evidence() }
}

fn pod_waits(told: &str) -> Evidence {
    Evidence { pod_waits: Some(told.to_owned()), ..Evidence::default() }
}

fn delete(executor: &Workload) -> Action {
    Action::Delete { child: Child::Executor, uid: executor.uid.clone() }
}
