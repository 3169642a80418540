//! What is in the cluster, as watches keep it: no pass asks the API server for what it can look up here.

mod pods;

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::reflector::{ObjectRef, Store},
};
use penstock_crds::{BatchJob, Provider, State, names::Child};
use tokio::sync::OnceCell;

use crate::{act::is_owned_by, observe::Jobs, workload::Workload};

pub use pods::Pods;

/// Every object that the operator watches.
#[derive(Debug)]
pub struct Caches {
    /// BatchJobs.
    pub batch_jobs: Store<DeserializeGuard<BatchJob>>,
    /// Providers.
    pub providers: Store<DeserializeGuard<Provider>>,
    /// Jobs that the operator made.
    pub jobs: Store<DeserializeGuard<Job>>,
    /// Their pods.
    pub pods: Pods,
    filled: OnceCell<()>,
}

impl Caches {
    /// What these watches will have seen.
    pub fn new(
        batch_jobs: Store<DeserializeGuard<BatchJob>>,
        providers: Store<DeserializeGuard<Provider>>,
        jobs: Store<DeserializeGuard<Job>>,
        pods: Store<DeserializeGuard<Pod>>,
    ) -> Self {
        Self { batch_jobs, providers, jobs, pods: Pods::new(pods), filled: OnceCell::new() }
    }

    /// Completes when every watch has been heard once: a BatchJob that is seen before its Jobs would be taken for one that
    /// has none. Watches are heard while the controller runs, so only a pass can wait for them.
    pub async fn filled(&self) {
        let Self { batch_jobs, providers, jobs, pods, filled } = self;
        // A store wakes only the last of those who wait for it (kube-runtime 5.0, `DelayedInit`), so one waits for all.
        let all = async || {
            // They fail only when their watch has ended, and then the process ends too.
            let _ = tokio::join!(
                batch_jobs.wait_until_ready(),
                providers.wait_until_ready(),
                jobs.wait_until_ready(),
                pods.filled()
            );
        };
        filled.get_or_init(all).await;
    }

    /// A BatchJob, unless it cannot be read.
    pub fn batch_job(&self, namespace: &str, name: &str) -> Option<Arc<BatchJob>> {
        let found = self.batch_jobs.get(&ObjectRef::new(name).within(namespace))?;
        found.0.as_ref().ok().map(|batch_job| Arc::new(batch_job.clone()))
    }

    /// The state of each BatchJob, as its status has it.
    pub fn states(&self) -> Vec<Option<State>> {
        let state = |found: &Arc<DeserializeGuard<BatchJob>>| found.0.as_ref().ok()?.status.as_ref()?.state;
        self.batch_jobs.state().iter().map(state).collect()
    }

    /// The Provider of a BatchJob, unless it is not there or cannot be read.
    pub fn provider_of(&self, batch_job: &BatchJob) -> Option<Arc<Provider>> {
        let namespace = batch_job.namespace().unwrap_or_default();
        let found =
            self.providers.get(&ObjectRef::new(&batch_job.spec.provider_ref.name).within(&namespace))?;
        found.0.as_ref().ok().map(|provider| Arc::new(provider.clone()))
    }

    /// The Jobs of a BatchJob.
    pub fn jobs_of(&self, batch_job: &BatchJob) -> Jobs {
        let mut jobs = Jobs::default();
        let pods = self.pods.of(batch_job);
        for child in [Child::Executor, Child::Validation, Child::Finalizer] {
            let name = child.name(&batch_job.name_any());
            let found =
                self.jobs.get(&ObjectRef::new(&name).within(&batch_job.namespace().unwrap_or_default()));
            let Some(Ok(job)) = found.as_ref().map(|found| &found.0) else { continue };
            if !is_owned_by(job, batch_job) {
                jobs.foreign = Some(name);
                continue;
            }
            let workload = Some(Workload::read(job, pods.iter().filter_map(|pod| pod.0.as_ref().ok())));
            match child {
                Child::Executor => jobs.executor = workload,
                Child::Validation => jobs.validation = workload,
                Child::Finalizer => jobs.finalizer = workload,
                Child::JobFile => {}
            }
        }
        jobs
    }

    /// Whether the pod of this uid works for a BatchJob.
    pub fn is_pod_of(&self, batch_job: &BatchJob, uid: &str) -> bool {
        let jobs = self.jobs_of(batch_job);
        [jobs.executor, jobs.finalizer].iter().flatten().any(|job| job.has_pod(uid))
    }

    /// Another live BatchJob with the same output, that was there first. Nobody looks for one where the job is over or has
    /// its Job: every BatchJob there is would be looked at.
    pub fn rival_of(&self, batch_job: &BatchJob, jobs: &Jobs) -> Option<String> {
        if jobs.executor.is_some() || is_over(batch_job) {
            return None;
        }
        let age = |job: &BatchJob| (job.creation_timestamp().map(|time| time.0), job.uid());
        let is_rival = |other: &BatchJob| {
            other.metadata.uid != batch_job.metadata.uid
                && output(other) == output(batch_job)
                && other.metadata.deletion_timestamp.is_none()
                && !is_over(other)
                && age(other) < age(batch_job)
        };
        let rival = self.batch_jobs.find(|other| other.0.as_ref().is_ok_and(is_rival))?;
        Some(format!("{}/{}", rival.namespace().unwrap_or_default(), rival.name_any()))
    }

    /// The BatchJobs that use a Provider.
    pub fn users_of(
        &self,
        provider: &DeserializeGuard<Provider>,
    ) -> Vec<ObjectRef<DeserializeGuard<BatchJob>>> {
        let (name, namespace) = (provider.name_any(), provider.namespace());
        let users = self.batch_jobs.state_filter(|job| {
            job.0.as_ref().is_ok_and(|job| job.namespace() == namespace && job.spec.provider_ref.name == name)
        });
        users.iter().map(|job| ObjectRef::from_obj(&**job)).collect()
    }

    /// The uids of all BatchJobs.
    pub fn uids(&self) -> BTreeSet<String> {
        self.batch_jobs.state().iter().filter_map(|job| job.meta().uid.clone()).collect()
    }
}

fn output(batch_job: &BatchJob) -> &str {
    batch_job.spec.output.uri.trim_end_matches('/')
}

fn is_over(batch_job: &BatchJob) -> bool {
    batch_job.status.as_ref().and_then(|status| status.state).is_some_and(State::is_over)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::runtime::{reflector, watcher::Event};
    use tokio::{task::JoinSet, time::timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_pass_that_waits_for_the_watches_goes_on_when_they_were_heard() {
        let (batch_jobs, mut of_batch_jobs) = reflector::store();
        let (providers, mut of_providers) = reflector::store();
        let (jobs, mut of_jobs) = reflector::store();
        let (pods, mut of_pods) = reflector::store();
        let caches = Arc::new(Caches::new(batch_jobs, providers, jobs, pods));
        let mut passes = JoinSet::new();
        for _ in 0..8 {
            let caches = Arc::clone(&caches);
            passes.spawn(async move { caches.filled().await });
        }
        tokio::task::yield_now().await;
        of_batch_jobs.apply_watcher_event(&Event::InitDone);
        of_providers.apply_watcher_event(&Event::InitDone);
        of_jobs.apply_watcher_event(&Event::InitDone);
        of_pods.apply_watcher_event(&Event::InitDone);
        let all = timeout(Duration::from_mins(1), passes.join_all()).await;
        assert_eq!(all.map(|passed| passed.len()), Ok(8), "nobody waits for ever");
    }
}
