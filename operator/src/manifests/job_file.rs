//! The ConfigMap with the job file, which every pod of a job reads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use penstock_crds::{BatchJob, names::Child};
use penstock_job::JobSpec;

use super::{JOB_FILE, metadata};

/// The ConfigMap of a job. Its content never changes: what it says is part of the job, and its Job is made once.
pub fn job_file(batch_job: &BatchJob, spec: &JobSpec) -> ConfigMap {
    let text =
        serde_json::to_string_pretty(spec).expect("invariant: a job file holds only what JSON can hold");
    ConfigMap {
        metadata: metadata(batch_job, Child::JobFile),
        data: Some(BTreeMap::from([(JOB_FILE.to_owned(), text)])),
        immutable: Some(true),
        ..ConfigMap::default()
    }
}
