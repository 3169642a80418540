//! A bucket and how it is reached: settings, credentials, attempts and deadlines.

use std::fmt;
use std::fmt::Display;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};

use super::answer::storage_error;
use super::create_only::CreateOnly;
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};

/// Longest time for one call that moves no whole file: shorter than what its callers wait, so that they hear why.
const CALL: Duration = Duration::from_secs(50);

/// Longest time without a byte on a connection.
const SILENCE: Duration = Duration::from_secs(20);

/// How often a read, or a write that may be repeated blindly, is repeated at once; the caller repeats it later.
const REPETITIONS: usize = 3;

/// How to reach S3 where the environment does not say it. What is `None` is taken from the variables that the tools of
/// AWS know, `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID` and so on, and credentials also from a web identity,
/// a container's or an instance's role.
#[derive(Clone, Debug, Default)]
pub struct S3Settings {
    /// URL of the service; that of AWS in the region if nothing names one.
    pub endpoint: Option<String>,
    /// The region of the bucket; `us-east-1` if nothing names one.
    pub region: Option<String>,
    /// The access key.
    pub key: Option<S3Key>,
    /// Longest time for one call that moves no whole file; 50 s.
    pub deadline: Option<Duration>,
}

/// An access key of long standing.
#[derive(Clone)]
pub struct S3Key {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

impl fmt::Debug for S3Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("S3Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A bucket that can be reached. Clones share its connections.
#[derive(Clone, Debug)]
pub struct S3Bucket {
    pub(super) name: String,
    /// Repeats what fails, for calls that change nothing or may be made twice.
    pub(super) repeating: AmazonS3,
    /// Tries once, for writes: their callers read back before they write again.
    pub(super) once: AmazonS3,
    pub(super) deadline: Duration,
}

impl S3Bucket {
    /// Takes the settings; nothing is asked of the service yet.
    pub fn connect(settings: &S3Settings, bucket: &str) -> Result<Self> {
        let failed = |error: object_store::Error| {
            StorageError::new(
                ErrorKind::Refused,
                Action::Open,
                format!("s3://{bucket}"),
                error.to_string(),
                "correct the variables that begin with `AWS_`",
            )
        };
        let builder = builder(settings, bucket);
        let repeating = builder.clone().with_retry(attempts(REPETITIONS)).build().map_err(failed)?;
        let credentials = repeating.credentials().clone();
        let once = builder.with_credentials(credentials).with_retry(attempts(0)).build().map_err(failed)?;
        Ok(Self { name: bucket.to_owned(), repeating, once, deadline: settings.deadline.unwrap_or(CALL) })
    }

    /// The URI of one of its objects.
    pub(super) fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    /// The answer of one call that moves no whole file, within its deadline; `object` is what messages call it.
    pub(super) async fn answer<T>(
        &self,
        action: Action,
        object: impl Display,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.deadline, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(storage_error(action, object, &error)),
            Err(_) => Err(late(action, object, self.deadline)),
        }
    }
}

/// The key of an object as the library takes it. Names of this crate are always taken.
pub(super) fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|error| {
        StorageError::new(ErrorKind::Invalid, Action::Open, key, error.to_string(), "choose another name")
    })
}

pub(super) fn late(action: Action, object: impl Display, deadline: Duration) -> StorageError {
    StorageError::new(
        ErrorKind::Unavailable,
        action,
        object,
        format!("there was no answer for {} s", deadline.as_secs()),
        "see whether this machine can reach the service if it does not pass",
    )
}

fn builder(settings: &S3Settings, bucket: &str) -> AmazonS3Builder {
    let mut builder =
        AmazonS3Builder::from_env().with_bucket_name(bucket).with_http_connector(CreateOnly::default());
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    if let Some(key) = &settings.key {
        builder = builder.with_access_key_id(&key.id).with_secret_access_key(&key.secret);
    }
    // Who writes `http://` means it.
    let plain = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
        .iter()
        .find_map(|key| builder.get_config_value(key))
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    if plain {
        builder = builder.with_allow_http(true);
    }
    // A limit for a whole answer would end long streams: silence is what is limited, and each call by its deadline.
    let limits = [
        (ClientConfigKey::Timeout, Duration::from_hours(24)),
        (ClientConfigKey::ConnectTimeout, Duration::from_secs(10)),
        (ClientConfigKey::ReadTimeout, SILENCE),
    ];
    limits.into_iter().fold(builder, |builder, (key, limit)| {
        builder.with_config(AmazonS3ConfigKey::Client(key), format!("{} seconds", limit.as_secs()))
    })
}

fn attempts(repetitions: usize) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: repetitions,
        retry_timeout: Duration::from_secs(30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_of_a_bucket_has_the_secret() {
        let key = S3Key { id: "AKIAID".to_owned(), secret: "the-secret".to_owned() };
        let settings = S3Settings { key: Some(key), ..S3Settings::default() };
        let bucket = S3Bucket::connect(&settings, "bucket").unwrap();
        for shown in [format!("{settings:?}"), format!("{bucket:?}")] {
            assert!(!shown.contains("the-secret"), "{shown}");
        }
    }
}
