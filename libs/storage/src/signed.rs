//! Signed URLs: requests that whoever has them can make until they expire, without credentials of his own.

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};

/// The longest time that both clouds sign for.
pub const LONGEST: Duration = Duration::from_hours(7 * 24);

/// A request that its URL allows, if it is made exactly so.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedRequest {
    /// Its method.
    pub method: &'static str,
    /// Its URL, which is a secret until it expires.
    pub url: String,
    /// Headers that were signed with it, in lower case, apart from `host`.
    pub headers: Vec<(&'static str, String)>,
}

impl fmt::Debug for SignedRequest {
    /// Without the signature, and what else follows the path.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.url.split('?').next().unwrap_or_default();
        let Self { method, headers, .. } = self;
        formatter
            .debug_struct("SignedRequest")
            .field("method", method)
            .field("path", &path)
            .field("headers", headers)
            .finish()
    }
}

/// How an object may be uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedUpload {
    /// By one request with the content as its body.
    Whole(SignedRequest),
    /// By a session that can be resumed: one request without a body, whose answer names in `Location` where the content
    /// goes, at once or in pieces. That address needs no signature and holds for a week.
    Session(SignedRequest),
}

/// A bucket for which URLs can be signed. Signing asks nobody whether the object exists, or whether its signer may read
/// or write it: who uses the URL learns that.
#[async_trait]
pub trait SignedUrls: Debug + Send + Sync {
    /// A `GET` of the object with this key.
    async fn download(&self, key: &str, expires_in: Duration) -> Result<SignedRequest>;

    /// An upload of the object with this key, in place of what is there. The service holds the uploader to the content
    /// type. Without a size the content is taken for one that goes up at once; one too large for that is
    /// [`Invalid`](ErrorKind::Invalid).
    async fn upload(
        &self,
        key: &str,
        size_bytes: Option<u64>,
        content_type: Option<&str>,
        expires_in: Duration,
    ) -> Result<SignedUpload>;
}

/// Whether both clouds sign for so long; `uri` is what messages call the object.
pub(crate) fn check_expiry(uri: &str, expires_in: Duration) -> Result<()> {
    if (Duration::from_secs(1)..=LONGEST).contains(&expires_in) {
        return Ok(());
    }
    Err(StorageError::new(
        ErrorKind::Invalid,
        Action::Sign,
        uri,
        format!("a signed URL cannot hold for {} s", expires_in.as_secs()),
        "let it expire after a second at least and 7 days at most",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_not_shown() {
        let url = "https://bucket/a?X-Amz-Signature=5ec3e7".to_owned();
        let shown = format!("{:?}", SignedRequest { method: "GET", url, headers: Vec::new() });
        assert!(shown.contains("https://bucket/a") && !shown.contains("5ec3e7"), "{shown}");
    }

    #[test]
    fn a_url_holds_for_a_second_at_least_and_seven_days_at_most() {
        for (seconds, holds) in [(0, false), (1, true), (3_600, true), (604_800, true), (604_801, false)] {
            let checked = check_expiry("s3://bucket/a", Duration::from_secs(seconds));
            assert_eq!(checked.is_ok(), holds, "{seconds} s: {checked:?}");
        }
    }
}
