//! Signed URLs of Google Cloud Storage (<https://cloud.google.com/storage/docs/access-control/signed-urls>, version 4).

use std::time::Duration;

use async_trait::async_trait;
use google_cloud_auth::build_errors::Error as BuildError;
use google_cloud_auth::credentials;
use google_cloud_auth::signer::Signer;
use google_cloud_storage::builder::storage::SignedUrlBuilder;

use super::answer::chain_of;
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::signed::{SignedRequest, SignedUpload, SignedUrls, check_expiry};

/// The size in bytes from which an upload is worth a session that can be resumed.
const SESSION_BYTES: u64 = 32 << 20;

/// The longest time for one signature: without a key on this machine, Google signs.
const SIGNATURE: Duration = Duration::from_secs(45);

/// A bucket for which the service account of this machine signs.
#[derive(Debug)]
pub struct GsSigner {
    bucket: String,
    endpoint: Option<String>,
    signer: Signer,
}

impl GsSigner {
    /// Takes the service account of the application default credentials: a key, one that is impersonated, or the one that
    /// is attached to this machine. `endpoint` is the URL of the service instead of `https://storage.googleapis.com`.
    pub fn open(bucket: impl Into<String>, endpoint: Option<String>) -> Result<Self> {
        let bucket = bucket.into();
        match credentials::Builder::default().build_signer() {
            Ok(signer) => Ok(Self { bucket, endpoint, signer }),
            Err(refused) => Err(cannot_sign(&bucket, &refused)),
        }
    }

    async fn sign(
        &self,
        method: http::Method,
        key: &str,
        headers: &[(&'static str, String)],
        expires_in: Duration,
    ) -> Result<String> {
        let uri = self.uri(key);
        check_expiry(&uri, expires_in)?;
        let bucket = format!("projects/_/buckets/{}", self.bucket);
        let mut url =
            SignedUrlBuilder::for_object(bucket, key).with_method(method).with_expiration(expires_in);
        if let Some(endpoint) = &self.endpoint {
            url = url.with_endpoint(endpoint);
        }
        for (name, value) in headers {
            url = url.with_header(*name, value);
        }
        let failed = |kind, cause| StorageError::new(kind, Action::Sign, &uri, cause, GRANT);
        match tokio::time::timeout(SIGNATURE, url.sign_with(&self.signer)).await {
            Ok(Ok(url)) => Ok(url),
            Ok(Err(error)) => Err(failed(ErrorKind::Refused, chain_of(&error))),
            Err(_) => Err(failed(
                ErrorKind::Unavailable,
                format!("there was no answer for {} s", SIGNATURE.as_secs()),
            )),
        }
    }

    fn uri(&self, key: &str) -> String {
        format!("gs://{}/{key}", self.bucket)
    }
}

const GRANT: &str =
    "grant the service account the role Service Account Token Creator on itself, or give it a key";

fn cannot_sign(bucket: &str, refused: &BuildError) -> StorageError {
    StorageError::new(
        ErrorKind::Refused,
        Action::Sign,
        format_args!("gs://{bucket}"),
        format!("only a service account can sign: {}", chain_of(refused)),
        "name its key in `GOOGLE_APPLICATION_CREDENTIALS`, or impersonate it \
         (`gcloud auth application-default login --impersonate-service-account=ACCOUNT`)",
    )
}

#[async_trait]
impl SignedUrls for GsSigner {
    async fn download(&self, key: &str, expires_in: Duration) -> Result<SignedRequest> {
        let url = self.sign(http::Method::GET, key, &[], expires_in).await?;
        Ok(SignedRequest { method: "GET", url, headers: Vec::new() })
    }

    async fn upload(
        &self,
        key: &str,
        size_bytes: Option<u64>,
        content_type: Option<&str>,
        expires_in: Duration,
    ) -> Result<SignedUpload> {
        let mut headers = Vec::new();
        if let Some(content_type) = content_type {
            headers.push(("content-type", content_type.to_owned()));
        }
        if size_bytes.is_some_and(|size_bytes| size_bytes >= SESSION_BYTES) {
            headers.push(("x-goog-resumable", "start".to_owned()));
            let url = self.sign(http::Method::POST, key, &headers, expires_in).await?;
            return Ok(SignedUpload::Session(SignedRequest { method: "POST", url, headers }));
        }
        let url = self.sign(http::Method::PUT, key, &headers, expires_in).await?;
        Ok(SignedUpload::Whole(SignedRequest { method: "PUT", url, headers }))
    }
}
