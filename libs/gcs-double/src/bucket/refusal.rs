//! What the service refuses, in the words of the real one.

use super::{Generation, Moment};
use crate::{
    checksum::{Crc32c, Md5},
    name::{BucketName, InvalidBucketName, ObjectName},
};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("The specified bucket does not exist.")]
    NoSuchBucket,
    #[error("Your previous request to create the named bucket succeeded and you already own it.")]
    BucketExists,
    #[error("No such object: {bucket}/{name}{}", generation_suffix(*.generation))]
    NoSuchObject { bucket: BucketName, name: ObjectName, generation: Option<Generation> },
    #[error("Object {name} (generation: {}) not found.", .generation.map_or(0, |generation| generation.0))]
    NoSuchSource { name: ObjectName, generation: Option<Generation> },
    #[error("At least one of the pre-conditions you specified did not hold.")]
    ConditionNotMet,
    #[error("At least one of the pre-conditions you specified did not hold.")]
    NotModified,
    #[error(
        "The object {bucket}/{name} exceeded the rate limit for object mutation operations (create, update, and \
         delete). Please reduce your request rate. See https://cloud.google.com/storage/docs/gcs429."
    )]
    ChangedTooOften { bucket: BucketName, name: ObjectName },
    #[error(
        "Object '{bucket}/{name}' is subject to bucket's retention policy or object retention and cannot be deleted or \
         overwritten until {}",
        humantime::format_rfc3339_seconds(.until.system_time())
    )]
    Retained { bucket: BucketName, name: ObjectName, until: Moment },
    #[error(transparent)]
    InvalidBucketName(#[from] InvalidBucketName),
    #[error("The specified object name is not valid: '{name}'.")]
    InvalidObjectName { name: String },
    #[error("The maximum object name length is 1024 characters, but got a name with more.")]
    ObjectNameTooLong,
    #[error("Required parameter: {what}")]
    Required { what: &'static str },
    #[error("Invalid argument: {what}")]
    Invalid { what: String },
    #[error("The number of source components provided ({count}) exceeds the maximum (32).")]
    TooManySources { count: usize },
    #[error("You must provide at least one source component.")]
    NoSources,
    #[error("Provided CRC32C \"{provided}\" doesn't match calculated CRC32C \"{calculated}\".")]
    Crc32cMismatch { provided: Crc32c, calculated: Crc32c },
    #[error("Provided MD5 hash \"{provided}\" doesn't match calculated MD5 hash \"{calculated}\".")]
    Md5Mismatch { provided: Md5, calculated: Md5 },
    #[error("The object is larger than the maximum of 5 TiB.")]
    TooLarge,
    #[error("Request range not satisfiable")]
    RangeNotSatisfiable { length: u64 },
    #[error("The requested resource was not found.")]
    NoSuchResource,
    #[error("The upload session was not found; it has expired, or never was.")]
    NoSuchUpload,
    #[error("The upload session was cancelled.")]
    UploadCancelled,
    #[error(
        "Invalid request. According to the Content-Range header, the upload offset is {offset} byte(s), which exceeds \
         already uploaded size of {kept} byte(s)."
    )]
    OffsetTooLarge { offset: u64, kept: u64 },
    #[error(
        "Invalid request. The number of bytes uploaded is required to be equal or greater than 262144, except for \
         the final request (it's recommended to be the exact multiple of 262144). The received request contained \
         {bytes} bytes, which does not meet this requirement."
    )]
    ChunkTooSmall { bytes: u64 },
    #[error("{what} is not served by this double.")]
    NotServed { what: String },
    /// A fault of the rules, or of the machine that the double runs on.
    #[error("{what}")]
    Failed { status: u16, what: String },
}

/// The kinds that clients tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is asked for is not there.
    NotFound,
    /// What is to be made is there.
    Conflict,
    /// A precondition does not hold.
    ConditionNotMet,
    /// A precondition of the kind "if it has changed" does not hold.
    NotModified,
    /// Too many changes of one name.
    RateLimited,
    /// The bucket keeps it for some time yet.
    Retained,
    /// The request makes no sense.
    Invalid,
    /// The request lacks something.
    Required,
    /// There is nothing in the range.
    RangeNotSatisfiable,
    /// It was there and is gone for good.
    Gone,
    /// This double does not do it.
    NotServed,
    /// A failure with this status.
    Failed(u16),
}

impl Kind {
    /// The HTTP status that it is answered with.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::ConditionNotMet => 412,
            Self::NotModified => 304,
            Self::RateLimited => 429,
            Self::Retained => 403,
            Self::Invalid | Self::Required => 400,
            Self::RangeNotSatisfiable => 416,
            Self::Gone => 410,
            Self::NotServed => 501,
            Self::Failed(status) => status,
        }
    }
}

impl Refusal {
    /// Its kind.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::NoSuchBucket
            | Self::NoSuchObject { .. }
            | Self::NoSuchSource { .. }
            | Self::NoSuchResource
            | Self::NoSuchUpload => Kind::NotFound,
            Self::BucketExists => Kind::Conflict,
            Self::ConditionNotMet => Kind::ConditionNotMet,
            Self::NotModified => Kind::NotModified,
            Self::ChangedTooOften { .. } => Kind::RateLimited,
            Self::Retained { .. } => Kind::Retained,
            Self::InvalidBucketName(_)
            | Self::InvalidObjectName { .. }
            | Self::ObjectNameTooLong
            | Self::Invalid { .. }
            | Self::TooManySources { .. }
            | Self::Crc32cMismatch { .. }
            | Self::Md5Mismatch { .. }
            | Self::OffsetTooLarge { .. }
            | Self::ChunkTooSmall { .. }
            | Self::TooLarge => Kind::Invalid,
            Self::Required { .. } | Self::NoSources => Kind::Required,
            Self::RangeNotSatisfiable { .. } => Kind::RangeNotSatisfiable,
            Self::UploadCancelled => Kind::Gone,
            Self::NotServed { .. } => Kind::NotServed,
            Self::Failed { status, .. } => Kind::Failed(*status),
        }
    }

    /// The same for a request that would change something, to which "not modified" is no answer.
    pub(super) fn of_change(self) -> Self {
        match self {
            Self::NotModified => Self::ConditionNotMet,
            other => other,
        }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }

    /// A failure as a fault rule asks for it, in the words of the service.
    pub(crate) fn failed(status: u16) -> Self {
        let what = match status {
            401 => "Invalid Credentials",
            403 => {
                "The caller does not have storage.objects access to the Google Cloud Storage object. Permission \
                 denied on resource (or it may not exist)."
            }
            408 | 504 => "The request took too long.",
            429 => "The rate of requests to the bucket is too high. Please reduce your request rate.",
            _ => "We encountered an internal error. Please try again.",
        };
        Self::Failed { status, what: what.to_owned() }
    }

    /// A failure of the machine that the double runs on.
    pub(crate) fn machine(error: &std::io::Error) -> Self {
        Self::Failed { status: 500, what: format!("the double failed to keep content: {error}") }
    }
}

fn generation_suffix(generation: Option<Generation>) -> String {
    generation.map(|generation| format!("#{generation}")).unwrap_or_default()
}
