//! Which request is which operation.

use http::Method;
use percent_encoding::percent_decode_str;

use super::query::Query;
use crate::{
    bucket::Refusal,
    name::{BucketName, ObjectName},
    operation::{Operation, Transport},
    visit::Call,
};

/// A request that has an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    CreateBucket,
    Buckets,
    Bucket(BucketName),
    List(BucketName),
    Read(BucketName, ObjectName),
    Get(BucketName, ObjectName),
    Update(BucketName, ObjectName),
    Delete(BucketName, ObjectName),
    Compose(BucketName, ObjectName),
    Write(BucketName, WriteKind),
    StartUpload(BucketName),
    /// With the name of the upload.
    UploadChunk(BucketName, String),
    /// With the name of the upload.
    CancelUpload(BucketName, String),
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// Metadata and content in one body.
    Multipart,
    /// Content alone.
    Media,
}

impl Route {
    pub(super) fn of(method: &Method, path: &str, query: &Query) -> Result<Self, Refusal> {
        let decode = |segment| {
            let decoded = percent_decode_str(segment).decode_utf8();
            decoded.map_err(|_| Refusal::invalid("the path is not UTF-8"))
        };
        let segments: Vec<_> =
            path.trim_start_matches('/').split('/').map(decode).collect::<Result<_, _>>()?;
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        let bucket = |name| BucketName::parse(name).map_err(Refusal::from);
        let pair = |bucket, name| Ok::<_, Refusal>((BucketName::parse(bucket)?, ObjectName::parse(name)?));
        match (method, segments.as_slice()) {
            (method, ["upload", "storage", "v1", "b", name, "o"]) => {
                Self::of_upload(method, bucket(name)?, query)
            }
            (&Method::POST, ["storage", "v1", "b"]) => Ok(Self::CreateBucket),
            (&Method::GET, ["storage", "v1", "b"]) => Ok(Self::Buckets),
            (&Method::GET, ["storage", "v1", "b", name]) => Ok(Self::Bucket(bucket(name)?)),
            (&Method::GET, ["storage", "v1", "b", name, "o"]) => Ok(Self::List(bucket(name)?)),
            (&Method::GET, ["storage" | "download", rest @ ..]) if query.get("alt") == Some("media") => {
                match rest {
                    ["v1", "b", name, "o", object] | ["storage", "v1", "b", name, "o", object] => {
                        let (bucket, object) = pair(name, object)?;
                        Ok(Self::Read(bucket, object))
                    }
                    _ => Err(Refusal::NoSuchResource),
                }
            }
            (&Method::GET, ["storage", "v1", "b", name, "o", object]) => {
                let (bucket, object) = pair(name, object)?;
                Ok(Self::Get(bucket, object))
            }
            (&Method::PATCH, ["storage", "v1", "b", name, "o", object]) => {
                let (bucket, object) = pair(name, object)?;
                Ok(Self::Update(bucket, object))
            }
            (&Method::DELETE, ["storage", "v1", "b", name, "o", object]) => {
                let (bucket, object) = pair(name, object)?;
                Ok(Self::Delete(bucket, object))
            }
            (&Method::POST, ["storage", "v1", "b", name, "o", object, "compose"]) => {
                let (bucket, object) = pair(name, object)?;
                Ok(Self::Compose(bucket, object))
            }
            _ => Err(Refusal::NoSuchResource),
        }
    }

    fn of_upload(method: &Method, bucket: BucketName, query: &Query) -> Result<Self, Refusal> {
        let kind = query.get("uploadType").ok_or(Refusal::Required { what: "uploadType" })?;
        match (method, kind, query.get("upload_id")) {
            (&Method::POST, "multipart", None) => Ok(Self::Write(bucket, WriteKind::Multipart)),
            (&Method::POST, "media", None) => Ok(Self::Write(bucket, WriteKind::Media)),
            (&Method::POST, "resumable", None) => Ok(Self::StartUpload(bucket)),
            (&Method::PUT, "resumable", Some(id)) => Ok(Self::UploadChunk(bucket, id.to_owned())),
            (&Method::DELETE, "resumable", Some(id)) => Ok(Self::CancelUpload(bucket, id.to_owned())),
            _ => Err(Refusal::invalid(format!("uploadType {kind:?}"))),
        }
    }

    /// What the log and the fault rules know of it.
    pub(super) fn call(&self, query: &Query) -> Call {
        let asked = |name| query.get(name).unwrap_or_default();
        let (operation, bucket, object) = match self {
            Self::CreateBucket | Self::Buckets => (Operation::Bucket, "", ""),
            Self::Bucket(bucket) => (Operation::Bucket, bucket.as_str(), ""),
            Self::List(bucket) => (Operation::List, bucket.as_str(), asked("prefix")),
            Self::Read(bucket, name) => (Operation::Read, bucket.as_str(), name.as_str()),
            Self::Get(bucket, name) => (Operation::Get, bucket.as_str(), name.as_str()),
            Self::Update(bucket, name) => (Operation::Update, bucket.as_str(), name.as_str()),
            Self::Delete(bucket, name) => (Operation::Delete, bucket.as_str(), name.as_str()),
            Self::Compose(bucket, name) => (Operation::Compose, bucket.as_str(), name.as_str()),
            Self::Write(bucket, _) => (Operation::Write, bucket.as_str(), asked("name")),
            Self::StartUpload(bucket) => (Operation::StartUpload, bucket.as_str(), asked("name")),
            Self::UploadChunk(bucket, _) => (Operation::UploadChunk, bucket.as_str(), asked("name")),
            Self::CancelUpload(bucket, _) => (Operation::CancelUpload, bucket.as_str(), asked("name")),
        };
        let (bucket, object) = (bucket.to_owned(), object.to_owned());
        Call { transport: Transport::Rest, operation, bucket, object }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_in_which_slashes_are_encoded() {
        let route = |path| Route::of(&Method::GET, path, &Query::read(""));
        let name = ObjectName::parse("a/b c%").unwrap();
        let bucket = BucketName::parse("bucket").unwrap();
        assert_eq!(route("/storage/v1/b/bucket/o/a%2Fb%20c%25"), Ok(Route::Get(bucket, name)));
        assert_eq!(route("/storage/v1/b/bucket/o/a/b"), Err(Refusal::NoSuchResource));
        assert_eq!(route("/storage/v1/b/bucket/o/%2F%ff"), Err(Refusal::invalid("the path is not UTF-8")));
        assert!(route("/storage/v1/b/B/o").is_err());
    }
}
