//! Buckets and objects as messages.

use bytes::Bytes;
use googleapis_tonic_google_storage_v2::google::storage::v2 as proto;
use prost_types::Timestamp;

use crate::{
    bucket::{Bucket, Change, CustomChange, Metadata, Moment, Object, Refusal},
    checksum::{Crc32c, ExpectedChecksums, Md5},
    etag::etag,
    name::BucketName,
};

/// What names of buckets begin with.
const BUCKETS: &str = "projects/_/buckets/";

/// Reads the name of a bucket.
pub(super) fn bucket_name(resource: &str) -> Result<BucketName, Refusal> {
    // Without what it begins with it is left as it is, which no name of a bucket can be.
    Ok(BucketName::parse(resource.strip_prefix(BUCKETS).unwrap_or(resource))?)
}

/// A bucket.
pub(super) fn bucket(name: &BucketName, bucket: &Bucket) -> proto::Bucket {
    proto::Bucket {
        name: format!("{BUCKETS}{name}"),
        bucket_id: name.to_string(),
        project: "projects/_".to_owned(),
        metageneration: 1,
        location: "US".to_owned(),
        storage_class: "STANDARD".to_owned(),
        create_time: Some(time(bucket.created)),
        update_time: Some(time(bucket.created)),
        ..proto::Bucket::default()
    }
}

/// An object.
pub(super) fn object(bucket: &BucketName, object: &Object) -> proto::Object {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let metadata = &object.metadata;
    proto::Object {
        name: object.name.to_string(),
        bucket: format!("{BUCKETS}{bucket}"),
        etag: etag(object),
        generation: object.generation.0,
        metageneration: object.metageneration,
        storage_class: metadata.storage_class.clone().unwrap_or_else(|| "STANDARD".to_owned()),
        size: i64::try_from(object.content.length()).unwrap_or(i64::MAX),
        content_type: text(&metadata.content_type),
        content_encoding: text(&metadata.content_encoding),
        content_disposition: text(&metadata.content_disposition),
        content_language: text(&metadata.content_language),
        cache_control: text(&metadata.cache_control),
        custom_time: metadata.custom_time.as_deref().and_then(|time| time.parse().ok()),
        metadata: metadata.custom.clone(),
        component_count: object.component_count.and_then(|count| i32::try_from(count).ok()).unwrap_or(0),
        checksums: Some(proto::ObjectChecksums {
            crc32c: Some(object.checksums.crc32c.0),
            md5_hash: object.checksums.md5.map(|md5| Bytes::copy_from_slice(&md5.0)).unwrap_or_default(),
        }),
        create_time: Some(time(object.created)),
        finalize_time: Some(time(object.created)),
        update_storage_class_time: Some(time(object.created)),
        update_time: Some(time(object.updated)),
        ..proto::Object::default()
    }
}

/// What a message says of an object to be written.
pub(super) fn metadata(object: &proto::Object) -> Metadata {
    Metadata {
        content_type: said(&object.content_type),
        content_encoding: said(&object.content_encoding),
        content_disposition: said(&object.content_disposition),
        content_language: said(&object.content_language),
        cache_control: said(&object.cache_control),
        storage_class: said(&object.storage_class),
        custom_time: object.custom_time.as_ref().map(ToString::to_string),
        custom: object.metadata.clone(),
    }
}

/// The checksums that a message names.
pub(super) fn expected(checksums: Option<&proto::ObjectChecksums>) -> Result<ExpectedChecksums, Refusal> {
    let Some(checksums) = checksums else { return Ok(ExpectedChecksums::default()) };
    let md5 = match checksums.md5_hash.as_ref() {
        [] => None,
        bytes => {
            let bytes = bytes.try_into().map_err(|_| Refusal::invalid("an MD5 has 16 bytes"))?;
            Some(Md5(bytes))
        }
    };
    Ok(ExpectedChecksums { crc32c: checksums.crc32c.map(Crc32c), md5 })
}

/// The change of the fields that a mask names.
pub(super) fn change(object: &proto::Object, paths: &[String]) -> Result<Change, Refusal> {
    let new = metadata(object);
    let mut change = Change::default();
    for path in paths {
        match path.as_str() {
            "content_type" => change.content_type = new.content_type.clone().into(),
            "content_encoding" => change.content_encoding = new.content_encoding.clone().into(),
            "content_disposition" => change.content_disposition = new.content_disposition.clone().into(),
            "content_language" => change.content_language = new.content_language.clone().into(),
            "cache_control" => change.cache_control = new.cache_control.clone().into(),
            "custom_time" => change.custom_time = new.custom_time.clone().into(),
            "metadata" => change.custom = CustomChange::Replace(new.custom.clone()),
            "*" => {
                change = Change {
                    content_type: new.content_type.clone().into(),
                    content_encoding: new.content_encoding.clone().into(),
                    content_disposition: new.content_disposition.clone().into(),
                    content_language: new.content_language.clone().into(),
                    cache_control: new.cache_control.clone().into(),
                    custom_time: new.custom_time.clone().into(),
                    custom: CustomChange::Replace(new.custom.clone()),
                };
            }
            other => return Err(Refusal::NotServed { what: format!("an update of {other:?}") }),
        }
    }
    Ok(change)
}

fn said(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn time(moment: Moment) -> Timestamp {
    moment.system_time().into()
}
