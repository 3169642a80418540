//! The pods that the operator made, found by the BatchJob that they work for: a pass among thousands of jobs looks at its
//! own pods only.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    core::DeserializeGuard,
    runtime::reflector::{ObjectRef, Store},
};
use penstock_crds::BatchJob;

use crate::manifests::batch_job_of;

type Guarded<K> = DeserializeGuard<K>;
type BatchJobRef = ObjectRef<Guarded<BatchJob>>;

/// The pods that a watch keeps.
#[derive(Debug)]
pub struct Pods {
    store: Store<Guarded<Pod>>,
    /// Whose pods were seen. Some may be gone: the store knows.
    of: Mutex<HashMap<BatchJobRef, HashSet<ObjectRef<Guarded<Pod>>>>>,
}

impl Pods {
    /// Those that a store has and will have, if it tells of each.
    pub fn new(store: Store<Guarded<Pod>>) -> Self {
        let pods = Self { store, of: Mutex::default() };
        for pod in pods.store.state() {
            pods.saw(&pod);
        }
        pods
    }

    /// Remembers whose pod this is.
    pub fn saw(&self, pod: &Guarded<Pod>) -> Option<BatchJobRef> {
        let batch_job = batch_job_of(pod)?;
        self.index().entry(batch_job.clone()).or_default().insert(ObjectRef::from_obj(pod));
        Some(batch_job)
    }

    /// Those that work for a BatchJob.
    pub fn of(&self, batch_job: &BatchJob) -> Vec<Arc<Guarded<Pod>>> {
        let mut index = self.index();
        let Some(refs) = index.get_mut(&reference(batch_job)) else { return Vec::new() };
        let mut pods = Vec::with_capacity(refs.len());
        refs.retain(|pod| match self.store.get(pod) {
            Some(pod) => {
                pods.push(pod);
                true
            }
            None => false,
        });
        pods
    }

    /// Completes when the watch has been heard once.
    pub async fn filled(&self) {
        // It fails only when the watch has ended, and then the process ends too.
        let _ = self.store.wait_until_ready().await;
    }

    /// Forgets pods that are gone.
    pub fn forget(&self) {
        self.index().retain(|_, refs| refs.iter().any(|pod| self.store.get(pod).is_some()));
    }

    fn index(&self) -> MutexGuard<'_, HashMap<BatchJobRef, HashSet<ObjectRef<Guarded<Pod>>>>> {
        // Nothing panics while it holds this lock.
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reference(batch_job: &BatchJob) -> BatchJobRef {
    let own = &batch_job.metadata;
    ObjectRef::new(own.name.as_deref().unwrap_or_default())
        .within(own.namespace.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use kube::{
        ResourceExt,
        runtime::{
            reflector::{self, store::Writer},
            watcher::Event,
        },
    };
    use serde_json::json;

    use super::*;

    fn pod(name: &str, batch_job: &str) -> Guarded<Pod> {
        let labels = json!({"penstock.dev/batch-job": batch_job});
        serde_json::from_value(
            json!({"metadata": {"name": name, "namespace": "team", "uid": name, "labels": labels}}),
        )
        .unwrap()
    }

    fn batch_job(namespace: &str) -> BatchJob {
        let metadata = json!({"name": "nightly", "namespace": namespace});
        let spec = json!({
            "input": {"uri": "gs://b/in.jsonl"}, "output": {"uri": "gs://b/out"}, "providerRef": {"name": "gateway"},
        });
        let object = json!({
            "apiVersion": "penstock.dev/v1alpha1", "kind": "BatchJob", "metadata": metadata, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    fn names(pods: &Pods, namespace: &str) -> Vec<String> {
        let mut names: Vec<_> = pods.of(&batch_job(namespace)).iter().map(|pod| pod.name_any()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_job_has_its_own_pods_as_long_as_they_are_there() {
        let (store, mut writer): (_, Writer<Guarded<Pod>>) = reflector::store();
        writer.apply_watcher_event(&Event::Apply(pod("first", "nightly")));
        let pods = Pods::new(store);
        for seen in [pod("second", "nightly"), pod("other", "weekly")] {
            writer.apply_watcher_event(&Event::Apply(seen.clone()));
            assert!(pods.saw(&seen).is_some());
        }
        assert_eq!(names(&pods, "team"), ["first", "second"]);
        assert_eq!(names(&pods, "elsewhere"), Vec::<String>::new());
        writer.apply_watcher_event(&Event::Delete(pod("first", "nightly")));
        assert_eq!(names(&pods, "team"), ["second"]);
        writer.apply_watcher_event(&Event::Delete(pod("second", "nightly")));
        pods.forget();
        assert_eq!(pods.index().len(), 1, "what is gone is forgotten");
    }
}
