//! A finalized object as a `CloudEvent`.
//!
//! Its form is that of Eventarc: attributes in headers, the object as the JSON API writes it in the body
//! (`google.cloud.storage.object.v1.finalized`).

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use crate::{bucket::Object, name::BucketName, rest::object_resource};

/// What the `CloudEvents` binding of HTTP encodes in a header: all but what can be printed, and `"` and `%`.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The same each time that it is told.
    pub(crate) id: String,
    bucket: String,
    subject: String,
    time: String,
    /// The object.
    pub(crate) data: Value,
}

impl Event {
    /// The event of an object that is there since now.
    pub(crate) fn finalized(bucket: &BucketName, object: &Object) -> Self {
        let data = object_resource(bucket, object);
        Self {
            id: format!("{}-{}", object.generation, crc32c::crc32c(object.name.as_str().as_bytes())),
            bucket: bucket.to_string(),
            subject: format!("objects/{}", object.name),
            time: data["timeFinalized"].as_str().unwrap_or_default().to_owned(),
            data,
        }
    }

    /// Its attributes as headers.
    pub(crate) fn headers(&self) -> [(&'static str, String); 7] {
        let source = format!("//storage.googleapis.com/projects/_/buckets/{}", self.bucket);
        [
            ("ce-specversion", "1.0".to_owned()),
            ("ce-type", "google.cloud.storage.object.v1.finalized".to_owned()),
            ("ce-id", self.id.clone()),
            ("ce-source", source),
            ("ce-subject", utf8_percent_encode(&self.subject, ENCODED).to_string()),
            ("ce-time", self.time.clone()),
            ("ce-bucket", self.bucket.clone()),
        ]
    }
}
