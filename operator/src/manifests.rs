//! What the operator makes in the cluster, as data: Jobs and the ConfigMap with their job file. Pure.

mod job;
mod job_file;
mod pod;

pub use job::job;
pub use job_file::job_file;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt, api::ObjectMeta, core::DeserializeGuard, runtime::reflector::ObjectRef};
use penstock_crds::{BatchJob, GROUP, names::Child};

/// The label of everything that the operator makes.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "penstock-operator");
/// The label that names the BatchJob.
pub const BATCH_JOB: &str = "penstock.dev/batch-job";
/// Where pods find the ConfigMap.
pub const JOB_FILE_FOLDER: &str = "/etc/penstock";
/// The job file in it.
pub const JOB_FILE: &str = "job.json";
/// Where pods find the token for the progress call.
pub const TOKEN_FOLDER: &str = "/var/run/secrets/penstock";
/// The token in it.
pub const TOKEN: &str = "token";

/// The audience of the tokens with which the pods of a job report: nobody else accepts them, nor those of another job.
pub fn audience(uid: &str) -> String {
    format!("{GROUP}/batch-jobs/{uid}")
}

/// The BatchJob that something was made for, by its label.
pub fn batch_job_of<K: Resource>(object: &K) -> Option<ObjectRef<DeserializeGuard<BatchJob>>> {
    let name = object.labels().get(BATCH_JOB)?;
    Some(ObjectRef::new(name).within(&object.namespace()?))
}

/// The metadata of something that belongs to a BatchJob.
fn metadata(batch_job: &BatchJob, child: Child) -> ObjectMeta {
    let spec = &batch_job.spec.executor;
    let mut labels = spec.labels.clone();
    labels.extend(own_labels(batch_job));
    ObjectMeta {
        name: Some(child.name(&batch_job.name_any())),
        namespace: batch_job.namespace(),
        labels: Some(labels),
        annotations: Some(spec.annotations.clone()).filter(|annotations| !annotations.is_empty()),
        owner_references: Some(vec![owner(batch_job)]),
        ..ObjectMeta::default()
    }
}

fn own_labels(batch_job: &BatchJob) -> [(String, String); 2] {
    [(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned()), (BATCH_JOB.to_owned(), batch_job.name_any())]
}

/// Who deletes the BatchJob in the foreground sees it gone when the pods of its Jobs have ended.
fn owner(batch_job: &BatchJob) -> OwnerReference {
    let owner = batch_job.controller_owner_ref(&());
    let owner = owner.expect("invariant: a BatchJob that was read has a name and a uid");
    OwnerReference { block_owner_deletion: Some(true), ..owner }
}

#[cfg(test)]
mod tests;
