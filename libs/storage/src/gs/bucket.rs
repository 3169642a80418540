//! The clients of one bucket: where the service is, who asks, and how long an answer may take.
//!
//! Credentials are the application default ones: a key file or login on a machine, the metadata server on Google
//! Cloud, which is how Workload Identity works. The client library reads no `STORAGE_EMULATOR_HOST`: whoever wants another
//! endpoint says so in [`GsSettings`].

use std::fmt::{self, Display};
use std::future::Future;
use std::time::Duration;

use google_cloud_auth::credentials::anonymous;
use google_cloud_gax::client_builder;
use google_cloud_gax::exponential_backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use google_cloud_gax::retry_policy::{RetryPolicy, RetryPolicyExt};
use google_cloud_storage::client::{Storage, StorageControl};
use google_cloud_storage::read_resume_policy::NeverResume;
use google_cloud_storage::retry_policy::RetryableErrors;

use super::answer::{Answer, storage_error, told};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};

/// How often a call that changes nothing is attempted.
pub(super) const ATTEMPTS: u32 = 3;

/// What lies between the attempts, and more.
const PAUSES: Duration = Duration::from_secs(3);

/// How long one attempt may take: three of them, and what lies between, take less than a minute.
const PATIENCE: Duration = Duration::from_secs(14);

/// Where Google Cloud Storage is and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GsSettings {
    /// The URL of the service instead of `https://storage.googleapis.com`.
    pub endpoint: Option<String>,
    /// The URL of its gRPC side, where that is another one than `endpoint`.
    pub grpc_endpoint: Option<String>,
    /// Ask without credentials: public buckets, and services that know none.
    pub anonymous: bool,
    /// How long one attempt of a call that moves little may take, and how long a stream may stand still.
    pub patience: Duration,
}

impl Default for GsSettings {
    fn default() -> Self {
        Self { endpoint: None, grpc_endpoint: None, anonymous: false, patience: PATIENCE }
    }
}

/// One bucket. Clones share their connections.
#[derive(Clone)]
pub struct GsBucket {
    pub(super) storage: Storage,
    pub(super) control: StorageControl,
    name: String,
    /// See [`GsSettings::patience`].
    pub(super) patience: Duration,
}

impl GsBucket {
    /// Makes the clients of the bucket `name`; nothing is asked of the service yet.
    pub async fn connect(settings: &GsSettings, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let grpc_endpoint = settings.grpc_endpoint.as_ref().or(settings.endpoint.as_ref());
        let mut storage = Storage::builder()
            .with_retry_policy(a_few_attempts())
            .with_backoff_policy(backoff())
            .with_read_resume_policy(NeverResume);
        let mut control =
            StorageControl::builder().with_retry_policy(a_few_attempts()).with_backoff_policy(backoff());
        if let Some(endpoint) = &settings.endpoint {
            storage = storage.with_endpoint(endpoint);
        }
        if let Some(endpoint) = grpc_endpoint {
            control = control.with_endpoint(endpoint);
        }
        if settings.anonymous {
            storage = storage.with_credentials(anonymous::Builder::new().build());
            control = control.with_credentials(anonymous::Builder::new().build());
        }
        let failed = |answer: client_builder::Error| cannot_connect(&name, &answer);
        let storage = storage.build().await.map_err(failed)?;
        let control = control.build().await.map_err(failed)?;
        Ok(Self { storage, control, name, patience: settings.patience })
    }

    /// The bucket's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long a call that is attempted several times may take in all.
    pub(super) fn patience_in_all(&self) -> Duration {
        self.patience * ATTEMPTS + PAUSES
    }

    /// The bucket as the service's methods name it.
    pub(super) fn resource(&self) -> String {
        format!("projects/_/buckets/{}", self.name)
    }
}

impl fmt::Debug for GsBucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GsBucket").field(&self.name).finish()
    }
}

/// For calls that change nothing, and for the chunks of an upload that the service keeps apart until the last one.
pub(super) fn a_few_attempts() -> impl RetryPolicy {
    RetryableErrors.with_attempt_limit(ATTEMPTS)
}

fn backoff() -> ExponentialBackoff {
    ExponentialBackoffBuilder::new()
        .with_initial_delay(Duration::from_millis(100))
        .with_maximum_delay(Duration::from_secs(1))
        .build()
        .expect("invariant: the first delay is shorter than the longest")
}

/// What a call to the service comes to; no answer within `limit` is [`Unavailable`](ErrorKind::Unavailable).
pub(super) async fn answered<T>(
    limit: Duration,
    action: Action,
    object: impl Display,
    call: impl Future<Output = google_cloud_storage::Result<T>>,
) -> Result<T> {
    let call = async { call.await.map_err(|answer| told(action, &object, &answer)) };
    within(limit, action, &object, call).await
}

/// As [`answered`], for several calls that have one limit.
pub(super) async fn within<T>(
    limit: Duration,
    action: Action,
    object: impl Display,
    calls: impl Future<Output = Result<T>>,
) -> Result<T> {
    let ended = tokio::time::timeout(limit, calls).await;
    ended.unwrap_or_else(|_| Err(storage_error(action, object, &Answer::late(limit))))
}

fn cannot_connect(bucket: &str, answer: &client_builder::Error) -> StorageError {
    let advice = if answer.is_default_credentials() {
        "log in (`gcloud auth application-default login`), or run where a service account is attached"
    } else {
        "give the endpoint as a URL, such as `https://storage.googleapis.com`"
    };
    StorageError::new(
        ErrorKind::Invalid,
        Action::Open,
        format_args!("gs://{bucket}"),
        super::answer::chain_of(answer),
        advice,
    )
}
