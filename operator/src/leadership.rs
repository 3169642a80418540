//! Of several replicas one leads: it alone acts, and its pod alone has the label that the progress Service selects.
//!
//! The Lease is that of `k8s-controller`: the protocol of client-go, in which a candidate takes over what did not change
//! for the length of the lease on its own clock. Whoever loses the lease ends its process; a new one begins as a candidate.

use std::time::Duration;

use k8s_controller::LeaderElection;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::sleep;

use crate::call::{CallError, bounded};

/// The Lease.
const LEASE: &str = "penstock-operator";
/// The label of the pod that leads.
const LEADER: &str = "penstock.dev/leader";

/// How long after an API server was away it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// How long the lease is kept: as client-go does.
const TIMES: Times = Times {
    lease: Duration::from_secs(15),
    give_up: Duration::from_secs(10),
    renew_every: Duration::from_secs(2),
};

/// The times of a lease.
#[derive(Clone, Copy)]
struct Times {
    /// How long it must stand unchanged before another may take it.
    lease: Duration,
    /// How long its holder tries to renew it.
    give_up: Duration,
    /// How often it does.
    renew_every: Duration,
}

/// One replica among the candidates.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a client has nothing to show")]
pub struct Candidate {
    client: Client,
    namespace: String,
    pod: String,
    times: Times,
}

impl Candidate {
    /// The replica that runs in this pod.
    pub fn new(client: Client, namespace: String, pod: String) -> Self {
        Self { client, namespace, pod, times: TIMES }
    }

    /// Runs `work` once this replica leads. `None` when it leads no more before the work is done.
    pub async fn lead<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        LeaderElection::new(self.client.clone(), &self.namespace, LEASE, &self.pod)
            .with_lease_duration(self.times.lease)
            .with_renew_deadline(self.times.give_up)
            .with_retry_period(self.times.renew_every)
            .with_lease(work)
            .await
    }

    /// Takes the label from whoever has it, and puts it on this pod.
    pub async fn take_label(&self) -> Result<(), CallError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let labelled = ListParams::default().labels(&format!("{LEADER}=true"));
        for pod in bounded(pods.list(&labelled)).await? {
            let name = pod.name_any();
            if name != self.pod {
                forgive_absence(label(&pods, &name, None).await)?;
            }
        }
        label(&pods, &self.pod, Some("true")).await
    }

    /// Takes the label from this pod: a replica that starts does not lead, whatever its last process did. Waits for an API
    /// server that is away: a process that ended instead would be started ever more seldom, and stay away for longer.
    pub async fn drop_label(&self) -> Result<(), CallError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        loop {
            match forgive_absence(label(&pods, &self.pod, None).await) {
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the API server does not answer; it is asked again");
                    sleep(ASK_AGAIN).await;
                }
                answer => return answer,
            }
        }
    }
}

async fn label(pods: &Api<Pod>, name: &str, value: Option<&str>) -> Result<(), CallError> {
    let patch = json!({"metadata": {"labels": {(LEADER): value}}});
    bounded(pods.patch(name, &PatchParams::default(), &Patch::Merge(patch))).await?;
    Ok(())
}

/// A pod that is gone has no label.
fn forgive_absence(answer: Result<(), CallError>) -> Result<(), CallError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer,
    }
}

#[cfg(test)]
mod tests;
