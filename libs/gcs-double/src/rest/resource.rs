//! Buckets and objects as the JSON API writes them, and the bodies of its requests.

use std::{collections::BTreeMap, fmt, time::SystemTime};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value, json};

use crate::{
    bucket::{
        Bucket, Change, CustomChange, Edit, Generation, Metadata, Moment, Object, Page, Refusal, Source,
    },
    checksum::{Crc32c, ExpectedChecksums, Md5},
    etag::etag,
    name::{BucketName, ObjectName},
};

/// A bucket to be made.
#[derive(Debug, Deserialize)]
pub(super) struct BucketBody {
    #[serde(default)]
    pub(super) name: String,
}

/// What a writer says of an object. What the double does not keep (such as access control) is passed over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ObjectBody {
    pub(super) name: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_language: Option<String>,
    pub(super) cache_control: Option<String>,
    pub(super) storage_class: Option<String>,
    pub(super) custom_time: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) crc32c: Option<String>,
    pub(super) md5_hash: Option<String>,
}

/// What is changed of an object: a field that is null is removed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct PatchBody(Map<String, Value>);

/// What is to be composed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ComposeBody {
    pub(super) source_objects: Vec<SourceBody>,
    pub(super) destination: ObjectBody,
}

/// One source.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SourceBody {
    name: String,
    #[serde(deserialize_with = "number")]
    generation: Option<i64>,
    object_preconditions: SourcePreconditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SourcePreconditions {
    #[serde(deserialize_with = "number")]
    if_generation_match: Option<i64>,
}

impl ObjectBody {
    pub(super) fn metadata(&self) -> Metadata {
        let body = self.clone();
        Metadata {
            content_type: body.content_type,
            content_encoding: body.content_encoding,
            content_disposition: body.content_disposition,
            content_language: body.content_language,
            cache_control: body.cache_control,
            storage_class: body.storage_class,
            custom_time: body.custom_time,
            custom: body.metadata,
        }
    }

    /// The checksums that it names.
    pub(super) fn expected(&self) -> Result<ExpectedChecksums, Refusal> {
        expected(self.crc32c.as_deref(), self.md5_hash.as_deref())
    }
}

/// Reads checksums that a client names.
pub(super) fn expected(crc32c: Option<&str>, md5: Option<&str>) -> Result<ExpectedChecksums, Refusal> {
    let invalid = |what, text: &str| Refusal::invalid(format!("{what} {text:?}"));
    let crc32c = crc32c.map(|text| Crc32c::parse(text).ok_or_else(|| invalid("CRC32C", text))).transpose()?;
    let md5 = md5.map(|text| Md5::parse(text).ok_or_else(|| invalid("MD5", text))).transpose()?;
    Ok(ExpectedChecksums { crc32c, md5 })
}

impl PatchBody {
    pub(super) fn change(&self) -> Result<Change, Refusal> {
        let field = |name| edit(name, self.0.get(name));
        Ok(Change {
            content_type: field("contentType")?,
            content_encoding: field("contentEncoding")?,
            content_disposition: field("contentDisposition")?,
            content_language: field("contentLanguage")?,
            cache_control: field("cacheControl")?,
            custom_time: field("customTime")?,
            custom: match self.0.get("metadata") {
                None => CustomChange::Keep,
                Some(Value::Null) => CustomChange::Replace(BTreeMap::new()),
                Some(Value::Object(keys)) => {
                    let edits = keys.iter().map(|(key, value)| Ok((key.clone(), edit(key, Some(value))?)));
                    CustomChange::Merge(edits.collect::<Result<_, Refusal>>()?)
                }
                Some(other) => return Err(Refusal::invalid(format!("metadata {other}"))),
            },
        })
    }
}

fn edit(name: &str, value: Option<&Value>) -> Result<Edit<String>, Refusal> {
    match value {
        None => Ok(Edit::Keep),
        Some(Value::Null) => Ok(Edit::Remove),
        Some(Value::String(text)) => Ok(Edit::Set(text.clone())),
        Some(other) => Err(Refusal::invalid(format!("{name} {other}"))),
    }
}

impl SourceBody {
    pub(super) fn read(self) -> Result<Source, Refusal> {
        Ok(Source {
            name: ObjectName::parse(&self.name)?,
            generation: self.generation.map(Generation),
            generation_match: self.object_preconditions.if_generation_match,
        })
    }
}

/// A bucket.
pub(super) fn bucket(name: &BucketName, bucket: &Bucket) -> Value {
    json!({
        "kind": "storage#bucket",
        "id": name.as_str(),
        "name": name.as_str(),
        "location": "US",
        "storageClass": "STANDARD",
        "metageneration": "1",
        "timeCreated": time(bucket.created),
        "updated": time(bucket.created),
    })
}

/// An object.
pub(crate) fn object(bucket: &BucketName, object: &Object) -> Value {
    let encoded = utf8_percent_encode(object.name.as_str(), NON_ALPHANUMERIC);
    let mut value = json!({
        "kind": "storage#object",
        "id": format!("{bucket}/{}/{}", object.name, object.generation),
        "selfLink": format!("https://www.googleapis.com/storage/v1/b/{bucket}/o/{encoded}"),
        "name": object.name.as_str(),
        "bucket": bucket.as_str(),
        "generation": object.generation.to_string(),
        "metageneration": object.metageneration.to_string(),
        "size": object.content.length().to_string(),
        "storageClass": object.metadata.storage_class.as_deref().unwrap_or("STANDARD"),
        "crc32c": object.checksums.crc32c.to_string(),
        "etag": etag(object),
        "timeCreated": time(object.created),
        "timeFinalized": time(object.created),
        "timeStorageClassUpdated": time(object.created),
        "updated": time(object.updated),
    });
    let metadata = &object.metadata;
    let texts = [
        ("contentType", &metadata.content_type),
        ("contentEncoding", &metadata.content_encoding),
        ("contentDisposition", &metadata.content_disposition),
        ("contentLanguage", &metadata.content_language),
        ("cacheControl", &metadata.cache_control),
        ("customTime", &metadata.custom_time),
        ("md5Hash", &object.checksums.md5.map(|md5| md5.to_string())),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            value[name] = json!(text);
        }
    }
    if let Some(count) = object.component_count {
        value["componentCount"] = json!(count);
    }
    if !metadata.custom.is_empty() {
        value["metadata"] = json!(metadata.custom);
    }
    value
}

/// A page of objects.
pub(super) fn page(bucket: &BucketName, page: &Page) -> Value {
    let mut value = json!({ "kind": "storage#objects" });
    if !page.objects.is_empty() {
        value["items"] = page.objects.iter().map(|item| object(bucket, item)).collect();
    }
    if !page.prefixes.is_empty() {
        value["prefixes"] = json!(page.prefixes);
    }
    if let Some(next) = &page.next {
        value["nextPageToken"] = json!(next);
    }
    value
}

fn time(moment: Moment) -> String {
    let time: SystemTime = moment.system_time();
    humantime::format_rfc3339_millis(time).to_string()
}

/// A number of 64 bits, which travels as text; a JSON number is taken as well.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Text(String),
        Plain(i64),
    }
    let invalid = |error: &dyn fmt::Display| D::Error::custom(format!("a number is not one: {error}"));
    match Option::<Number>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Number::Plain(number)) => Ok(Some(number)),
        Some(Number::Text(text)) => text.parse().map(Some).map_err(|error| invalid(&error)),
    }
}
