//! The one place that changes the cluster. Every action may be repeated: what is there already is left alone.

use std::fmt;

use k8s_openapi::api::{batch::v1::Job, core::v1::ConfigMap};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use penstock_crds::{BatchJob, names::Child, resolve::Resolved};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use thiserror::Error;

use crate::{
    call::{CallError, bounded},
    decide::Work,
    manifests,
    settings::Settings,
    workload::{Before, Suspender},
};

/// The field manager of what is changed in a Job.
const MANAGER: &str = "penstock.dev/operator";

/// What could not be done. Messages read after "failed to".
#[derive(Debug, Error)]
#[error("{verb} the {kind} {name}: {source}{}", if source.is_forbidden() { "; see that the operator's role allows it" } else { "" })]
pub struct ActError {
    verb: &'static str,
    kind: &'static str,
    name: String,
    source: CallError,
}

/// Acts for one BatchJob.
#[expect(missing_debug_implementations, reason = "a client has nothing to show")]
pub struct Actor<'a> {
    /// The API server.
    pub client: &'a Client,
    /// How pods are made.
    pub settings: &'a Settings,
    /// For whom.
    pub batch_job: &'a BatchJob,
}

impl Actor<'_> {
    /// Makes the Job for some work, and the job file that its pods read. Where that cannot be told any more, since the
    /// Provider is gone, the one that was made before serves: who only publishes asks nobody.
    pub async fn create(
        &self,
        work: Work,
        before: Before,
        resolved: Option<&Resolved>,
    ) -> Result<(), ActError> {
        match resolved {
            Some(resolved) => {
                self.create_once(&manifests::job_file(self.batch_job, &resolved.spec), "ConfigMap").await?;
            }
            None if self.has_job_file().await? => {}
            None => return Ok(()),
        }
        // Who only publishes needs no key, and must not wait for a Secret that is gone.
        let files = resolved.filter(|_| !matches!(work, Work::Finish(_))).map(|resolved| &*resolved.files);
        let job = manifests::job(self.batch_job, work, before, files.unwrap_or_default(), self.settings);
        self.create_once(&job, "Job").await
    }

    /// Whether an earlier Job of this BatchJob has left its job file.
    async fn has_job_file(&self) -> Result<bool, ActError> {
        let name = Child::JobFile.name(&self.batch_job.name_any());
        match bounded(self.api::<ConfigMap>().get_opt(&name)).await {
            Ok(found) => Ok(found.is_some_and(|found| is_owned_by(&found, self.batch_job))),
            Err(source) => Err(ActError { verb: "look at", kind: "ConfigMap", name, source }),
        }
    }

    /// Deletes the Job of this uid with its pods, in the foreground: it is gone when they have ended.
    pub async fn delete(&self, child: Child, uid: &str) -> Result<(), ActError> {
        let name = child.name(&self.batch_job.name_any());
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        match bounded(self.api::<Job>().delete(&name, &parameters)).await {
            Ok(_) => Ok(()),
            // Gone, or another one has its name: either way that one is no more.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(source) => Err(ActError { verb: "delete", kind: "Job", name, source }),
        }
    }

    /// Suspends the executor's Job of this uid, and says in it who did, or lets it run.
    pub async fn suspend(&self, uid: &str, suspend: bool) -> Result<(), ActError> {
        let name = Child::Executor.name(&self.batch_job.name_any());
        // The uid keeps the patch from another Job of that name.
        let patch = json!({
            "metadata": {"uid": uid, "annotations": {Suspender::ANNOTATION: suspend.then_some("true")}},
            "spec": {"suspend": suspend},
        });
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match bounded(self.api::<Job>().patch(&name, &parameters, &Patch::Merge(patch))).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(source) => Err(ActError { verb: "suspend or resume", kind: "Job", name, source }),
        }
    }

    /// Deletes the BatchJob itself. Its Jobs are deleted after it.
    pub async fn delete_batch_job(&self) -> Result<(), ActError> {
        let name = self.batch_job.name_any();
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions { uid: self.batch_job.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match bounded(self.api::<BatchJob>().delete(&name, &parameters)).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(source) => Err(ActError { verb: "delete", kind: "BatchJob", name, source }),
        }
    }

    /// Makes an object unless it is there. One of its name that belongs to somebody else, or to a BatchJob of the same
    /// name that is being deleted, is not taken for it.
    async fn create_once<K>(&self, object: &K, kind: &'static str) -> Result<(), ActError>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let name = object.name_any();
        let source = match bounded(self.api::<K>().create(&parameters, object)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => match bounded(self.api::<K>().get(&name)).await {
                Ok(found) if is_owned_by(&found, self.batch_job) => return Ok(()),
                Ok(_) => error,
                Err(error) => error,
            },
            Err(error) => error,
        };
        Err(ActError { verb: "create", kind, name, source })
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.batch_job.namespace().unwrap_or_default())
    }
}

/// Whether an object belongs to this very BatchJob.
pub fn is_owned_by<K: Resource>(object: &K, batch_job: &BatchJob) -> bool {
    let uid = batch_job.uid();
    object.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref())
}
