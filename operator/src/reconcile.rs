//! One pass over one BatchJob: observe, decide, act, report.

use std::{
    collections::HashMap,
    num::NonZeroU64,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_controller::events::{Event, EventRecorder, EventType};
use k8s_openapi::{api::core::v1::Secret, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    core::DeserializeGuard,
    runtime::{controller::Action as Requeue, reflector::ObjectRef},
};
use penstock_crds::{
    BatchJob, GROUP, VERSION,
    batch_job::BatchJobStatus,
    resolve::{FileSource, Resolved, resolve},
    state::State,
};
use penstock_job::{Reason, spec::ReportTo};
use serde_json::json;
use thiserror::Error;

use crate::{
    act::{ActError, Actor},
    caches::Caches,
    call::{CallError, bounded},
    decide::{Action, Decision, Work, decide},
    intakes::Intakes,
    manifests::{TOKEN, TOKEN_FOLDER},
    metrics::Metrics,
    observe::{HeardSeen, Observed},
    progress::{Heard, Reports, report_url},
    settings::Settings,
    status::{PROGRESS_EVERY, has_turned, status},
};

/// The field manager of the status.
const MANAGER: &str = "penstock.dev/operator-status";
/// When a job is looked at again though nothing happened, on average: the safety net under the watches.
const RESYNC: Duration = Duration::from_mins(10);
/// How often executors report.
const REPORT_EVERY: NonZeroU64 = NonZeroU64::new(10).expect("a positive number");
/// The first wait after a failed pass; it doubles up to [`LONGEST_BACKOFF`].
const BACKOFF: Duration = Duration::from_secs(1);
/// The longest such wait.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// Why a pass failed. Messages read after "failed to".
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// An action.
    #[error(transparent)]
    Act(#[from] ActError),
    /// The status.
    #[error("write the status: {0}")]
    Status(#[source] CallError),
    /// A Secret could not be looked at.
    #[error("look at the Secret {name}: {source}")]
    Secret {
        /// Which.
        name: String,
        /// What the API server says.
        source: CallError,
    },
}

/// What every pass shares.
#[expect(missing_debug_implementations, reason = "a client has nothing to show")]
pub struct Reconciler {
    /// The API server.
    pub client: Client,
    /// What is in the cluster.
    pub caches: Arc<Caches>,
    /// What executors said.
    pub reports: Arc<Reports>,
    /// The intakes of this process.
    pub intakes: Intakes,
    /// How pods are made.
    pub settings: Settings,
    /// The certificate that executors trust.
    pub authority: String,
    /// Tells of what happens.
    pub events: EventRecorder,
    /// What Prometheus is told.
    pub metrics: Arc<Metrics>,
    /// How often in a row the pass of a job failed, by its uid.
    pub failures: Mutex<HashMap<String, u32>>,
}

/// Makes one pass.
pub async fn reconcile(
    found: Arc<DeserializeGuard<BatchJob>>,
    reconciler: Arc<Reconciler>,
) -> Result<Requeue, ReconcileError> {
    let batch_job = match &found.0 {
        Ok(batch_job) => Arc::new(batch_job.clone()),
        Err(error) => {
            // Nobody can act on it before it is written anew.
            tracing::warn!(name = found.name_any(), namespace = found.namespace(), %error, "a BatchJob cannot be read");
            return Ok(Requeue::await_change());
        }
    };
    reconciler.caches.filled().await;
    let began = Instant::now();
    let passed = reconciler.pass(batch_job).await;
    reconciler.metrics.passed(began.elapsed(), passed.is_ok());
    let again = passed?;
    reconciler.failures().remove(&found.uid().unwrap_or_default());
    // Spread, so that not all jobs are looked at in the same second.
    let resync = RESYNC.mul_f64(fastrand::f64().mul_add(0.4, 0.8));
    Ok(Requeue::requeue(again.map_or(resync, |again| again.min(resync))))
}

/// How long to wait after a failed pass.
#[expect(clippy::needless_pass_by_value, reason = "the controller hands both over")]
pub fn after_failure(
    found: Arc<DeserializeGuard<BatchJob>>,
    error: &ReconcileError,
    reconciler: Arc<Reconciler>,
) -> Requeue {
    let mut failures = reconciler.failures();
    let failures = failures.entry(found.uid().unwrap_or_default()).or_default();
    *failures = failures.saturating_add(1);
    let wait = BACKOFF.saturating_mul(1 << (*failures - 1).min(10)).min(LONGEST_BACKOFF);
    tracing::warn!(
        name = found.name_any(),
        namespace = found.namespace(),
        failures = *failures,
        "failed to {error}"
    );
    Requeue::requeue(wait.mul_f64(fastrand::f64().mul_add(0.5, 0.75)))
}

impl Reconciler {
    async fn pass(&self, batch_job: Arc<BatchJob>) -> Result<Option<Duration>, ReconcileError> {
        let resolved = self.resolve(&batch_job).await?;
        let seen = self.observe(&batch_job, resolved.as_ref().err());
        let decision = decide(&seen);
        for action in &decision.actions {
            self.act(&seen, action, resolved.as_ref().ok()).await?;
        }
        self.report(&batch_job, &decision, seen.now).await
    }

    fn observe(&self, batch_job: &Arc<BatchJob>, problem: Option<&String>) -> Observed {
        let uid = batch_job.uid().unwrap_or_default();
        let jobs = self.caches.jobs_of(batch_job);
        let heard = self.reports.of(&uid).map(|Heard { report, at, per_minute }| HeardSeen {
            report,
            ago: at.elapsed(),
            per_minute,
        });
        Observed {
            batch_job: Arc::clone(batch_job),
            now: Timestamp::now(),
            problem: problem.cloned(),
            intake: self.intakes.of(&uid),
            heard,
            rival: self.caches.rival_of(batch_job, &jobs),
            jobs,
        }
    }

    /// The job file and the files that its pods need; the inner error is what a person must correct.
    async fn resolve(&self, batch_job: &BatchJob) -> Result<Result<Resolved, String>, ReconcileError> {
        let name = &batch_job.spec.provider_ref.name;
        let Some(provider) = self.caches.provider_of(batch_job) else {
            return Ok(Err(format!(
                "the Provider {name} is not in the namespace {}; create it, or correct spec.providerRef of a new BatchJob",
                batch_job.namespace().unwrap_or_default()
            )));
        };
        let mut resolved = match resolve(batch_job, &provider) {
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(error.to_string())),
        };
        resolved.spec.report = Some(ReportTo {
            url: report_url(&self.settings.progress_url, batch_job),
            ca: Some(self.authority.clone()),
            token_file: Some(format!("{TOKEN_FOLDER}/{TOKEN}").into()),
            every_seconds: REPORT_EVERY,
            ca_file: None,
        });
        if needs_pod(batch_job)
            && let Some(problem) = self.missing_file(batch_job, &resolved).await?
        {
            return Ok(Err(problem));
        }
        Ok(Ok(resolved))
    }

    /// The first Secret, or key of one, that a pod would wait for in vain.
    async fn missing_file(
        &self,
        batch_job: &BatchJob,
        resolved: &Resolved,
    ) -> Result<Option<String>, ReconcileError> {
        let namespace = batch_job.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        for file in &resolved.files {
            let FileSource::Secret(name) = &file.source else { continue };
            let found = bounded(secrets.get_opt(name))
                .await
                .map_err(|source| ReconcileError::Secret { name: name.clone(), source })?;
            let Some(secret) = found else {
                return Ok(Some(format!("the Secret {name} is not in the namespace {namespace}; create it")));
            };
            if !secret.data.is_some_and(|data| data.contains_key(&file.key)) {
                return Ok(Some(format!("the Secret {name} has no key `{}`; add it", file.key)));
            }
        }
        Ok(None)
    }

    async fn act(
        &self,
        seen: &Observed,
        action: &Action,
        resolved: Option<&Resolved>,
    ) -> Result<(), ReconcileError> {
        let batch_job = &seen.batch_job;
        let uid = &batch_job.uid().unwrap_or_default();
        let actor = Actor { client: &self.client, settings: &self.settings, batch_job };
        match action {
            Action::Intake => {
                if let Some(resolved) = resolved {
                    self.intakes.begin(uid, ObjectRef::from_obj(&**batch_job), resolved.spec.clone());
                }
            }
            Action::StopIntake => self.intakes.stop(uid),
            Action::Create(work) => {
                actor.create(*work, seen.before(), resolved).await?;
                let made = format!("Made the Job {}.", work.child().name(&batch_job.name_any()));
                self.tell(batch_job, EventType::Normal, reason_of(*work), made).await;
            }
            Action::Delete { child, uid } => actor.delete(*child, uid).await?,
            Action::Suspend { uid, suspend } => actor.suspend(uid, *suspend).await?,
            Action::DeleteBatchJob => actor.delete_batch_job().await?,
        }
        Ok(())
    }

    /// Writes the status when it says something new, and an event when that is news.
    async fn report(
        &self,
        batch_job: &BatchJob,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<Option<Duration>, ReconcileError> {
        let Some(finding) = &decision.finding else { return Ok(decision.again) };
        let before = batch_job.status.clone().unwrap_or_default();
        let after = status(batch_job, finding, now);
        if after == before {
            return Ok(decision.again);
        }
        if !has_turned(&before, &after)
            && let Some(wait) = too_soon(&before, now)
        {
            return Ok(Some(decision.again.map_or(wait, |again| again.min(wait))));
        }
        match self.write(batch_job, &after).await {
            Ok(()) => self.metrics.wrote_status(),
            // What was seen is old; the watch brings what is new.
            Err(error) if error.is_conflict() => return Ok(Some(BACKOFF)),
            Err(error) => return Err(ReconcileError::Status(error)),
        }
        if is_news(&before, &after) {
            let kind = if is_trouble(&after) { EventType::Warning } else { EventType::Normal };
            let reason = after.reason.clone().unwrap_or_default();
            self.tell(batch_job, kind, &reason, after.message.clone().unwrap_or_default()).await;
        }
        Ok(decision.again)
    }

    /// Server-side apply of everything that the operator says. The resource version keeps a leader that was frozen from
    /// writing what it saw before.
    async fn write(&self, batch_job: &BatchJob, status: &BatchJobStatus) -> Result<(), CallError> {
        let namespace = batch_job.namespace().unwrap_or_default();
        let api: Api<BatchJob> = Api::namespaced(self.client.clone(), &namespace);
        let patch = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "BatchJob",
            "metadata": {"name": batch_job.name_any(), "uid": batch_job.uid(), "resourceVersion": batch_job.resource_version()},
            "status": status,
        });
        let parameters = PatchParams::apply(MANAGER).force();
        bounded(api.patch_status(&batch_job.name_any(), &parameters, &Patch::Apply(patch))).await?;
        Ok(())
    }

    async fn tell(&self, batch_job: &BatchJob, type_: EventType, reason: &str, note: String) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            action: "Reconcile".to_owned(),
            note: Some(note),
            related: None,
        };
        if let Err(error) = self.events.publish(batch_job, &event).await {
            tracing::debug!(%error, "an event was not published");
        }
    }

    /// Forgets what is kept of jobs that are gone.
    pub fn forget(&self) {
        self.caches.pods.forget();
        let uids = self.caches.uids();
        self.reports.retain(|uid| uids.contains(uid));
        self.intakes.retain(|uid| uids.contains(uid));
        self.failures().retain(|uid, _| uids.contains(uid));
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        // Nothing panics while it holds this lock.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pod may be made in this pass: only then are Secrets looked at.
fn needs_pod(batch_job: &BatchJob) -> bool {
    let status = batch_job.status.as_ref();
    !status.and_then(|status| status.state).is_some_and(State::is_over)
        && status.is_none_or(|status| status.start_time.is_none())
}

fn reason_of(work: Work) -> &'static str {
    match work {
        Work::Validate => "ValidationStarted",
        Work::Execute => "ExecutorCreated",
        Work::Finish(_) => "FinalizerCreated",
    }
}

/// Whether an event tells of it: the end of a job, and what stands in its way and does so no more. How far a job is on its
/// way stands in its status, and each event is an object of its own.
fn is_news(before: &BatchJobStatus, after: &BatchJobStatus) -> bool {
    let has_changed = (before.state, &before.reason) != (after.state, &after.reason);
    has_changed && (after.state.is_some_and(State::is_over) || is_held_up(before) || is_held_up(after))
}

/// Whether something stands in its way that does not belong to the way.
fn is_held_up(status: &BatchJobStatus) -> bool {
    let (Some(state), Some(reason)) = (status.state, &status.reason) else { return false };
    let of_the_way = [Reason::WaitingForPod, Reason::Learning, Reason::AtOwnLimit, Reason::RunningAtLimit];
    *reason != state.to_string() && !of_the_way.iter().any(|one| *reason == one.to_string())
}

/// Whether somebody should look.
fn is_trouble(status: &BatchJobStatus) -> bool {
    status.state == Some(State::Failed) || status.reason == Some(Reason::Misconfigured.to_string())
}

/// How long to wait before mere progress is written again.
fn too_soon(before: &BatchJobStatus, now: Timestamp) -> Option<Duration> {
    let written = before.progress.as_ref()?.last_updated_time.as_ref()?.0;
    let since = Duration::try_from(now.duration_since(written)).unwrap_or_default();
    PROGRESS_EVERY.checked_sub(since).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(state: State, reason: &str) -> BatchJobStatus {
        BatchJobStatus { state: Some(state), reason: Some(reason.to_owned()), ..BatchJobStatus::default() }
    }

    #[test]
    fn an_event_tells_of_troubles_and_of_the_end_and_not_of_the_way() {
        let way = [
            BatchJobStatus::default(),
            told(State::Validating, "Validating"),
            told(State::Queued, "WaitingForPod"),
            told(State::Running, "Running"),
            told(State::Running, "Learning"),
            told(State::Running, "RunningAtLimit"),
            told(State::Finalizing, "Finalizing"),
        ];
        for step in way.windows(2) {
            assert!(!is_news(&step[0], &step[1]), "{:?}", step[1].reason);
        }
        let trouble = told(State::Running, "CredentialsRefused");
        assert!(is_news(&way[3], &trouble) && is_news(&trouble, &way[3]));
        assert!(!is_news(&trouble, &trouble));
        assert!(is_news(&way[6], &told(State::Completed, "Completed")));
        assert!(is_news(&way[0], &told(State::Failed, "OutputOccupied")));
    }
}
