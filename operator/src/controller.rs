//! The controller: which watches lead to which passes.
//!
//! Job and Pod watches are narrowed to what the operator made; every watched type is read through a guard, so that one
//! object that cannot be read does not stop the others.

use std::{fmt::Debug, sync::Arc};

use futures_util::{Stream, StreamExt, future};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Pod, PodTemplateSpec},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::{
        Controller, WatchStreamExt,
        controller::{self, Error as ControllerError},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use penstock_crds::{BatchJob, Provider};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    caches::Caches,
    manifests::{MANAGED_BY, batch_job_of},
    reconcile::{Reconciler, after_failure, reconcile},
};

/// Passes at once.
const CONCURRENCY: u16 = 16;

type Guarded<K> = DeserializeGuard<K>;

/// The watches, before anything is made of what they see.
#[expect(missing_debug_implementations, reason = "a controller has nothing to show")]
pub struct Watches {
    /// What they keep.
    pub caches: Arc<Caches>,
    controller: Controller<Guarded<BatchJob>>,
}

/// Begins to watch one namespace, or all.
pub fn watch(client: &Client, namespace: Option<&str>) -> Watches {
    let made_by_us = watcher::Config::default().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    let controller = Controller::new(api(client, namespace), watcher::Config::default());
    let batch_jobs = controller.store();
    let (providers, provider_changes) =
        reflect(api::<Provider>(client, namespace), watcher::Config::default(), |_| {});
    // What the operator itself has put there is most of a Job and of a pod, and is read by nobody here.
    let without_template = |job: &mut Job| {
        if let Some(spec) = &mut job.spec {
            spec.template = PodTemplateSpec::default();
        }
    };
    let (jobs, job_changes) = reflect(api::<Job>(client, namespace), made_by_us.clone(), without_template);
    let (pods, pod_changes) = reflect(api::<Pod>(client, namespace), made_by_us, |pod| pod.spec = None);
    let caches = Arc::new(Caches::new(batch_jobs, providers, jobs, pods));
    let (users, seen) = (Arc::clone(&caches), Arc::clone(&caches));
    let controller = controller
        .with_config(controller::Config::default().concurrency(CONCURRENCY))
        .watches_stream(provider_changes, move |provider| users.users_of(&provider))
        .watches_stream(job_changes, |job| batch_job_of(&job))
        .watches_stream(pod_changes, move |pod| seen.pods.saw(&pod));
    Watches { caches, controller }
}

impl Watches {
    /// Makes passes until `stop`; those that have begun are finished. `turned` asks for one from elsewhere.
    pub async fn run(
        self,
        reconciler: Arc<Reconciler>,
        turned: mpsc::Receiver<ObjectRef<BatchJob>>,
        stop: CancellationToken,
    ) {
        self.controller
            .reconcile_on(receive(turned).map(|batch_job| {
                ObjectRef::new(&batch_job.name).within(&batch_job.namespace.unwrap_or_default())
            }))
            .graceful_shutdown_on(stop.cancelled_owned())
            .run(reconcile, after_failure, reconciler)
            .for_each(|passed| {
                // A failed pass was logged where it is known how often; an object that is gone needs none.
                if let Err(ControllerError::QueueError(error)) = passed {
                    tracing::warn!(%error, "a watch is being started anew");
                }
                future::ready(())
            })
            .await;
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<Guarded<K>>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// What a watch keeps, without what nobody reads, and the objects that change.
fn reflect<K>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    drop_unread: impl Fn(&mut K) + Send + 'static,
) -> (Store<Guarded<K>>, impl Stream<Item = Result<Guarded<K>, watcher::Error>> + Send)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let changes = watcher(api, config)
        .default_backoff()
        .modify(move |object| {
            // Who has set which field is of no use here, and often half of an object.
            object.managed_fields_mut().clear();
            if let Ok(object) = &mut object.0 {
                drop_unread(object);
            }
        })
        .reflect(writer)
        .touched_objects();
    (store, changes)
}

fn receive<T: Send + 'static>(receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send {
    futures_util::stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)))
}
