//! Signed URLs of S3 (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-presigned-url.html>).

use std::time::Duration;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use object_store::signer::{SignedUrlOptions, Signer};

use super::bucket::{S3Bucket, path};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::signed::{SignedRequest, SignedUpload, SignedUrls, check_expiry};

/// The most that S3 takes in one request
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html>).
const WHOLE_BYTES: u64 = 5 << 30;

#[async_trait]
impl SignedUrls for S3Bucket {
    async fn download(&self, key: &str, expires_in: Duration) -> Result<SignedRequest> {
        let url = self.sign(Method::GET, key, &SignedUrlOptions::default(), expires_in).await?;
        Ok(SignedRequest { method: "GET", url, headers: Vec::new() })
    }

    async fn upload(
        &self,
        key: &str,
        size_bytes: Option<u64>,
        content_type: Option<&str>,
        expires_in: Duration,
    ) -> Result<SignedUpload> {
        if size_bytes.is_some_and(|size_bytes| size_bytes > WHOLE_BYTES) {
            return Err(self.unsigned(
                key,
                "S3 takes at most 5 GiB in one request",
                "upload it with a tool that sends it in parts, such as `aws s3 cp`, or split it",
            ));
        }
        let mut options = SignedUrlOptions::default();
        let mut headers = Vec::new();
        if let Some(content_type) = content_type {
            let value = HeaderValue::try_from(content_type)
                .map_err(|_| self.unsigned(key, "its content type cannot stand in a header", "correct it"))?;
            options = options.with_signed_header(CONTENT_TYPE, value);
            headers.push(("content-type", content_type.to_owned()));
        }
        let url = self.sign(Method::PUT, key, &options, expires_in).await?;
        Ok(SignedUpload::Whole(SignedRequest { method: "PUT", url, headers }))
    }
}

impl S3Bucket {
    async fn sign(
        &self,
        method: Method,
        key: &str,
        options: &SignedUrlOptions,
        expires_in: Duration,
    ) -> Result<String> {
        let uri = self.uri(key);
        check_expiry(&uri, expires_in)?;
        let path = path(key)?;
        let call = self.repeating.signed_url_opts(method, &path, expires_in, options);
        Ok(self.answer(Action::Sign, uri, call).await?.to_string())
    }

    fn unsigned(&self, key: &str, cause: &str, advice: &'static str) -> StorageError {
        StorageError::new(ErrorKind::Invalid, Action::Sign, self.uri(key), cause, advice)
    }
}
