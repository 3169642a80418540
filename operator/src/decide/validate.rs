//! Before anything is sent: the intake, in this process or in a pod of its own.

use std::time::Duration;

use penstock_crds::{names::Child, reason::Evidence, state::State};

use super::{Action, Decision, Finding, Work, execute, finish, until};
use crate::{
    intake::Word,
    observe::{IntakeSeen, Observed},
    workload::{Farewell, Stage, Workload},
};

/// The wait before a look is repeated that found nothing that lasts; it doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest such wait: what a person has corrected is seen within this.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// When what is not watched is looked at again: a Secret, or a Job of somebody else.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A job of which nothing is known yet.
pub(super) fn validating(seen: &Observed) -> Decision {
    if seen.is_cancelled() {
        return cancelled(seen);
    }
    if let Some(rival) = &seen.rival {
        return finish::occupied(&occupied_by(rival));
    }
    // What is suspended is validated all the same: nothing is sent for it.
    let evidence = Evidence { suspended: None, ..seen.evidence() };
    if evidence.misconfigured.is_some() {
        return Decision::say(Finding::held(State::Validating, evidence)).again(LOOK_AGAIN);
    }
    if let Some(validation) = &seen.jobs.validation {
        return in_pod(seen, validation);
    }
    match &seen.intake {
        IntakeSeen::None => Decision::say(looking(seen)).then(Action::Intake),
        IntakeSeen::Running => Decision::say(looking(seen)),
        IntakeSeen::Said { word, ago, tries } => {
            let decision = heed(seen, word);
            if decision.is_settled() {
                return decision;
            }
            // Somebody may have corrected what was wrong, or the input may have come.
            match wait(*tries).saturating_sub(*ago) {
                Duration::ZERO => decision.then(Action::Intake),
                left => decision.again(left),
            }
        }
    }
}

impl Decision {
    /// Whether the job comes further with it, so that nothing is looked at again.
    fn is_settled(&self) -> bool {
        let told = self.finding.as_ref().map(|finding| finding.state);
        !self.actions.is_empty() || !matches!(told, Some(State::Validating | State::AwaitingUpload))
    }
}

/// What a word means for a job.
fn heed(seen: &Observed, word: &Word) -> Decision {
    match word {
        Word::Accepted(validated) => {
            let mut finding = Finding::held(State::Queued, execute::before_starting(seen));
            finding.validated = Some(validated.clone());
            Decision::say(finding)
        }
        Word::Refused { reason, message, validated } => {
            let mut finding = Finding::ended(State::Failed, *reason, message);
            finding.validated.clone_from(validated);
            Decision::say(finding)
        }
        Word::Over(over) => finish::over(seen, over),
        Word::Occupied { message } => finish::occupied(message),
        Word::Absent { message } => Decision::say(Finding::new(State::AwaitingUpload).note(message)),
        Word::TooLarge { .. } | Word::Denied { .. } if seen.jobs.validation.is_none() => {
            // The job's own service account reads and writes there; the operator's need not.
            Decision::say(Finding::new(State::Validating)).then(Action::Create(Work::Validate))
        }
        Word::TooLarge { size_bytes } => {
            misconfigured(format!("an input of {size_bytes} bytes was refused by the pod that validates it"))
        }
        Word::Denied { message } | Word::Misconfigured { message } => misconfigured(message.clone()),
        Word::Trouble { message } => Decision::say(Finding::new(State::Validating).note(message)),
    }
}

/// The validation runs, or ran, in a pod.
fn in_pod(seen: &Observed, validation: &Workload) -> Decision {
    let delete = || Action::Delete { child: Child::Validation, uid: validation.uid.clone() };
    // What a person must correct is looked at again by another pod, after a while.
    let try_again = |decision: Decision| {
        let age = validation.made_at.as_ref().map_or(LONGEST_WAIT, |at| until(at.0, seen.now));
        match LONGEST_WAIT.saturating_sub(age) {
            Duration::ZERO => decision.then(delete()),
            left => decision.again(left),
        }
    };
    if validation.is_deleting {
        return Decision::say(Finding::new(State::Validating));
    }
    match &validation.stage {
        Stage::Succeeded(Farewell { message, .. }) => {
            let word = message.as_deref().and_then(Word::from_message);
            let Some(word) = word else {
                // Its pod is gone with what it said; another one finds validation.json.
                return Decision::say(Finding::new(State::Validating)).then(delete());
            };
            let decision = heed(seen, &word);
            if decision.is_settled() { decision } else { try_again(decision) }
        }
        Stage::Refused(Farewell { message, .. }) => try_again(misconfigured(
            message.clone().unwrap_or_else(|| "the pod that validates the input was refused".to_owned()),
        )),
        Stage::GivenUp(told) => try_again(misconfigured(format!(
            "the pod that validates the input does not come to its end: {told}"
        ))),
        Stage::Waiting(Some(told)) => {
            let evidence = Evidence { pod_waits: Some(told.clone()), ..Evidence::default() };
            Decision::say(Finding::held(State::Validating, evidence))
        }
        Stage::Waiting(None) | Stage::Running => Decision::say(Finding::new(State::Validating)),
    }
}

/// Nothing was begun, so nothing is published.
fn cancelled(seen: &Observed) -> Decision {
    let finding = Finding::new(State::Cancelled)
        .note("The job was cancelled before anything was sent; nothing is published.");
    let decision = Decision::say(finding).then(Action::StopIntake);
    match &seen.jobs.validation {
        Some(validation) if !validation.is_deleting => {
            decision.then(Action::Delete { child: Child::Validation, uid: validation.uid.clone() })
        }
        _ => decision,
    }
}

/// A look is under way. An input that was not there is awaited until it was seen.
fn looking(seen: &Observed) -> Finding {
    Finding::new(seen.state().filter(|state| *state == State::AwaitingUpload).unwrap_or(State::Validating))
}

fn misconfigured(evidence: String) -> Decision {
    let evidence = Evidence { misconfigured: Some(evidence), ..Evidence::default() };
    Decision::say(Finding::held(State::Validating, evidence))
}

/// Another BatchJob writes to the same output.
pub(super) fn occupied_by(rival: &str) -> String {
    format!("the BatchJob {rival} writes to the same output; choose another output, or delete the other one")
}

fn wait(tries: u32) -> Duration {
    FIRST_WAIT
        .saturating_mul(1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX))
        .min(LONGEST_WAIT)
}
