//! What is in the cluster around one BatchJob. Reads only, each call with a deadline.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Event, Pod, Secret},
};
use kube::{Api, Client, Config, Error, Resource, ResourceExt, api::ListParams};
use penstock_crds::{
    BatchJob, Provider,
    resolve::{FileSource, resolve},
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::WhyError;

/// The longest that one call may take.
const CALL: Duration = Duration::from_secs(10);

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The namespace that was looked into.
    pub(super) namespace: String,
    /// The name that was looked for.
    pub(super) name: String,
    /// The cluster knows the kind.
    pub(super) is_installed: bool,
    pub(super) batch_job: Option<BatchJob>,
    pub(super) provider: Option<Provider>,
    /// The first Secret, or key of one, that is not there.
    pub(super) missing_secret: Option<MissingSecret>,
    pub(super) job: Option<Job>,
    /// The newest pod of the job.
    pub(super) pod: Option<Pod>,
    /// The newest warning about that pod, or about the Job.
    pub(super) warning: Option<String>,
}

/// A Secret that a pod would wait for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MissingSecret {
    pub(super) name: String,
    /// The key that it lacks; `None` where the Secret itself is not there.
    pub(super) key: Option<String>,
}

/// Looks at a BatchJob in `namespace`, by default that of the kubeconfig.
pub(super) async fn look(namespace: Option<&str>, name: &str) -> Result<Seen, WhyError> {
    let config = Config::infer().await.map_err(|error| WhyError::Cluster(error.to_string()))?;
    let client = Client::try_from(config).map_err(|error| WhyError::Cluster(error.to_string()))?;
    let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
    let from = Place { client, namespace };
    let mut seen = Seen {
        namespace: from.namespace.clone(),
        name: name.to_owned(),
        is_installed: true,
        ..Seen::default()
    };
    seen.batch_job = match from.get::<BatchJob>("batchjobs", name).await {
        Ok(found) => found,
        Err(WhyError::Refused { source, .. }) if is_unknown_kind(&source) => {
            seen.is_installed = false;
            return Ok(seen);
        }
        Err(error) => return Err(error),
    };
    let Some(batch_job) = &seen.batch_job else { return Ok(seen) };
    seen.provider = from.get("providers", &batch_job.spec.provider_ref.name).await?;
    if let Some(Ok(resolved)) = seen.provider.as_ref().map(|provider| resolve(batch_job, provider)) {
        seen.missing_secret =
            from.missing(resolved.files.iter().map(|file| (&file.source, &file.key))).await?;
    }
    seen.job = from.get("jobs", name).await?;
    seen.pod = from.newest_pod(name).await?;
    let about: BTreeSet<String> = seen
        .pod
        .iter()
        .map(ResourceExt::name_any)
        .chain(seen.job.as_ref().map(ResourceExt::name_any))
        .collect();
    seen.warning = from.newest_warning(&about).await?;
    Ok(seen)
}

/// Whether the cluster has never heard of the kind: the API server then answers 404 without naming an object.
fn is_unknown_kind(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

struct Place {
    client: Client,
    namespace: String,
}

impl Place {
    /// An object, if it is there.
    async fn get<K>(&self, kind: &'static str, name: &str) -> Result<Option<K>, WhyError>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        match self.within(kind, name, api.get(name)).await {
            Ok(found) => Ok(Some(found)),
            Err(WhyError::Refused { source, .. }) if names_an_object(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn missing<'a>(
        &self,
        files: impl Iterator<Item = (&'a FileSource, &'a String)>,
    ) -> Result<Option<MissingSecret>, WhyError> {
        for (source, key) in files {
            let FileSource::Secret(name) = source else { continue };
            let found: Option<Secret> = match self.get("secrets", name).await {
                // Most people may not look into Secrets, and need not.
                Err(WhyError::Refused { source, .. }) if is_forbidden(&source) => continue,
                found => found?,
            };
            let Some(secret) = found else {
                return Ok(Some(MissingSecret { name: name.clone(), key: None }));
            };
            if !secret.data.is_some_and(|data| data.contains_key(key)) {
                return Ok(Some(MissingSecret { name: name.clone(), key: Some(key.clone()) }));
            }
        }
        Ok(None)
    }

    async fn newest_pod(&self, batch_job: &str) -> Result<Option<Pod>, WhyError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_job = ListParams::default().labels(&format!("penstock.dev/batch-job={batch_job}"));
        let pods = self.within("pods", batch_job, api.list(&of_job)).await?;
        Ok(pods.items.into_iter().max_by_key(|pod| pod.creation_timestamp().map(|time| time.0)))
    }

    async fn newest_warning(&self, about: &BTreeSet<String>) -> Result<Option<String>, WhyError> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let warnings = ListParams::default().fields("type=Warning").limit(500);
        let events = match self.within("events", "", api.list(&warnings)).await {
            Err(WhyError::Refused { source, .. }) if is_forbidden(&source) => return Ok(None),
            events => events?,
        };
        let about = events
            .items
            .into_iter()
            .filter(|event| event.involved_object.name.as_ref().is_some_and(|name| about.contains(name)));
        let newest = about.max_by_key(|event| {
            let seen = event.last_timestamp.as_ref().map(|time| time.0);
            seen.or_else(|| event.event_time.as_ref().map(|time| time.0))
        });
        Ok(newest.map(|event| {
            format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())
        }))
    }

    async fn within<T>(
        &self,
        kind: &'static str,
        name: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, WhyError> {
        let answer = timeout(CALL, call).await.map_err(|_| WhyError::Slow(CALL.as_secs()))?;
        answer.map_err(|source| WhyError::Refused {
            kind,
            name: name.to_owned(),
            namespace: self.namespace.clone(),
            source: Box::new(source),
        })
    }
}

/// Whether the API server says that just this object is not there.
fn names_an_object(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404 && status.details.as_ref().is_some_and(|details| !details.name.is_empty()))
}

fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 403)
}
