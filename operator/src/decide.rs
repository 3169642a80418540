//! What is to be done about one BatchJob, and what is to be said of it: a pure function of what was seen.
//!
//! Each pass decides anew from what is there, so that it does not matter what an earlier pass, or an earlier operator,
//! had in mind. What exists is looked at in the order in which it ends a job: its publishing Job, its executor, its
//! validation.

mod execute;
mod finish;
mod validate;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use penstock_crds::{
    batch_job::BatchJobStatus,
    names::Child,
    reason::{Evidence, Suspension},
    state::State,
};
use penstock_job::{Reason, report::Hindrance, state::EndingReason};

use crate::{
    intake::{Over, Validated},
    observe::{HeardSeen, Observed},
    workload::Before,
};

/// The label with which Kueue queues a Job.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";

/// What to do, what to say, and when to look again if nothing happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// What is so; `None` where nothing is said any more.
    pub finding: Option<Finding>,
    /// When to look again, if nothing happens before.
    pub again: Option<Duration>,
}

/// One thing to do. Each may be done twice without harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Look at the bucket, and validate a small input, in this process.
    Intake,
    /// Stop doing so.
    StopIntake,
    /// Make a Job.
    Create(Work),
    /// Delete a Job and its pods: these have ended before it is gone.
    Delete {
        /// Which.
        child: Child,
        /// The very one.
        uid: String,
    },
    /// Set whether the executor's Job is suspended.
    Suspend {
        /// The very Job.
        uid: String,
        /// Whether it is to be.
        suspend: bool,
    },
    /// Delete the BatchJob itself, whose time to live is over.
    DeleteBatchJob,
}

/// What a Job is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// To validate the input.
    Validate,
    /// To run the job.
    Execute,
    /// To record what is undone and publish.
    Finish(EndingReason),
}

impl Work {
    /// What it is called.
    pub fn child(self) -> Child {
        match self {
            Self::Validate => Child::Validation,
            Self::Execute => Child::Executor,
            Self::Finish(_) => Child::Finalizer,
        }
    }
}

/// What is so.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Where the job is.
    pub state: State,
    /// What stands in its way, or ended it; the first of them is the one reason.
    pub evidence: Evidence,
    /// What is said where there is no reason; by default what the state says.
    pub note: Option<String>,
    /// What validation found, once it has.
    pub validated: Option<Validated>,
    /// The receipt, once it was seen.
    pub over: Option<Over>,
    /// What the executor says of its progress.
    pub heard: Option<HeardSeen>,
    /// Pods lost since the job came further; `None` where nobody looked.
    pub lost: Option<u32>,
}

impl PartialEq for HeardSeen {
    fn eq(&self, other: &Self) -> bool {
        self.report == other.report && self.per_minute == other.per_minute
    }
}

impl Finding {
    /// Nothing stands in the way.
    fn new(state: State) -> Self {
        Self::held(state, Evidence::default())
    }

    /// Something does.
    fn held(state: State, evidence: Evidence) -> Self {
        Self { state, evidence, note: None, validated: None, over: None, heard: None, lost: None }
    }

    /// The job has ended for a reason.
    fn ended(state: State, reason: Reason, evidence: &str) -> Self {
        let ended = Some(Hindrance { reason, evidence: evidence.into() });
        Self::held(state, Evidence { ended, ..Evidence::default() })
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl Decision {
    /// Nothing is to be done or said.
    fn rest() -> Self {
        Self { actions: Vec::new(), finding: None, again: None }
    }

    fn say(finding: Finding) -> Self {
        Self { actions: Vec::new(), finding: Some(finding), again: None }
    }

    fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    fn again(mut self, after: Duration) -> Self {
        self.again = Some(self.again.map_or(after, |sooner| sooner.min(after)));
        self
    }
}

/// Decides.
pub fn decide(seen: &Observed) -> Decision {
    if seen.batch_job.metadata.deletion_timestamp.is_some() {
        // Its Jobs are owned by it and go with it; a pod that is told to leave stores what it knows.
        return Decision::rest().then(Action::StopIntake);
    }
    let Some(status) = seen.batch_job.status.as_ref().filter(|status| status.state.is_some()) else {
        // Accepted before anything slow is done.
        return Decision::say(Finding::new(State::Validating));
    };
    if is_over(status) {
        return finish::after_the_end(seen, status);
    }
    if let Some(finalizer) = &seen.jobs.finalizer {
        return finish::publishing(seen, finalizer);
    }
    if let Some(over) = seen.over_by_intake() {
        return finish::over(seen, over);
    }
    match (&seen.jobs.executor, &status.validation) {
        (Some(executor), _) => execute::running(seen, executor),
        (None, Some(_)) => execute::starting(seen),
        (None, None) => validate::validating(seen),
    }
}

fn is_over(status: &BatchJobStatus) -> bool {
    status.state.is_some_and(State::is_over)
}

impl Observed {
    fn status(&self) -> Option<&BatchJobStatus> {
        self.batch_job.status.as_ref()
    }

    fn state(&self) -> Option<State> {
        self.status()?.state
    }

    /// The state to tell: never one that leads back from what an earlier pass has told.
    fn after(&self, state: State) -> State {
        self.state().filter(|before| !state.may_follow(Some(*before))).unwrap_or(state)
    }

    /// What stands in the way of a job that has no pod.
    fn evidence(&self) -> Evidence {
        let taken = self.jobs.foreign.as_ref().map(|foreign| {
            format!(
                "a Job named {foreign} belongs to somebody else; delete it, or give the BatchJob another name"
            )
        });
        Evidence {
            misconfigured: taken.or_else(|| self.problem.clone()),
            suspended: self.batch_job.spec.suspend.then_some(Suspension::Spec),
            ..Evidence::default()
        }
    }

    fn is_cancelled(&self) -> bool {
        self.batch_job.spec.cancel
    }

    /// Somebody else's queue decides when its Job runs.
    fn is_queued_by_others(&self) -> bool {
        self.batch_job.labels().contains_key(QUEUE_LABEL)
    }

    /// What is so before the next Job is made.
    pub fn before(&self) -> Before {
        let status = self.status();
        let counts = status.and_then(|status| status.counts).unwrap_or_default();
        let done = [counts.succeeded, counts.failed, counts.expired, counts.cancelled, counts.abandoned];
        Before {
            lost: status.and_then(|status| u32::try_from(status.lost_pods?).ok()).unwrap_or_default(),
            done: done.into_iter().filter_map(|count| u64::try_from(count).ok()).sum(),
        }
    }

    fn has_started(&self) -> bool {
        self.status().is_some_and(|status| status.start_time.is_some())
    }

    /// What is left of the completion window; `None` without one, or before it began.
    fn left(&self) -> Option<Duration> {
        let deadline = self.status()?.deadline.as_ref()?.0;
        Some(until(self.now, deadline))
    }

    fn is_expired(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// The word in which undone lines are recorded when no executor can record them.
    fn ending(&self) -> EndingReason {
        if self.is_cancelled() {
            EndingReason::Cancelled
        } else if self.is_expired() {
            EndingReason::Expired
        } else {
            EndingReason::Abandoned
        }
    }
}

/// From one moment to another; nothing when it has passed.
fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests;
