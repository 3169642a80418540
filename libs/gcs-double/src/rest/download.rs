//! Reading the content of an object, or a range of it.

use std::{ops::Range, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::{Exchange, write::text};
use crate::{
    body::{self, Body},
    bucket::{Object, Refusal},
    etag::etag,
    name::{BucketName, ObjectName},
    visit::Stop,
};

impl Exchange {
    /// Sends the content, or the range of it that the headers ask for.
    pub(super) async fn download(
        self,
        bucket: &BucketName,
        name: &ObjectName,
    ) -> Result<Response<Body>, Stop> {
        let (generation, preconditions) = (self.query.generation()?, self.query.preconditions()?);
        let object = self.visit.read(|buckets| buckets.get(bucket, name, generation, &preconditions)).await?;
        let length = object.content.length();
        let asked = text(&self.parts.headers, header::RANGE.as_str()).and_then(|range| Asked::read(&range));
        let range = asked.map(|asked| asked.within(length)).transpose()?;
        let (status, range) = match range {
            Some(range) => (StatusCode::PARTIAL_CONTENT, range),
            None => (StatusCode::OK, 0..length),
        };
        let slice = object.content.slice(range.clone());
        let mut response = Response::new(body::content(&slice, Arc::clone(&self.visit)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        describe(headers, &object);
        put(headers, header::CONTENT_LENGTH, &slice.length().to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            let Range { start, end } = range;
            put(headers, header::CONTENT_RANGE, &format!("bytes {start}-{}/{length}", end - 1));
        }
        Ok(response)
    }
}

/// The headers that tell of an object.
fn describe(headers: &mut HeaderMap, object: &Object) {
    let metadata = &object.metadata;
    let content_type = metadata.content_type.as_deref().unwrap_or("application/octet-stream");
    let encoding = metadata.content_encoding.as_deref();
    put(headers, header::CONTENT_TYPE, content_type);
    put(headers, header::ACCEPT_RANGES, "bytes");
    put(headers, header::ETAG, &etag(object));
    let optional = [
        (header::CONTENT_ENCODING, encoding),
        (header::CONTENT_DISPOSITION, metadata.content_disposition.as_deref()),
        (header::CONTENT_LANGUAGE, metadata.content_language.as_deref()),
        (header::CACHE_CONTROL, metadata.cache_control.as_deref()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            put(headers, name, value);
        }
    }
    let own = [
        ("x-goog-generation", object.generation.to_string()),
        ("x-goog-metageneration", object.metageneration.to_string()),
        ("x-goog-stored-content-encoding", encoding.unwrap_or("identity").to_owned()),
        ("x-goog-stored-content-length", object.content.length().to_string()),
        ("x-goog-storage-class", metadata.storage_class.clone().unwrap_or_else(|| "STANDARD".to_owned())),
        ("x-goog-hash", format!("crc32c={}", object.checksums.crc32c)),
    ];
    for (name, value) in own {
        put(headers, HeaderName::from_static(name), &value);
    }
    let append = |headers: &mut HeaderMap, name, value: &str| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.append(name, value);
        }
    };
    if let Some(md5) = object.checksums.md5 {
        append(headers, HeaderName::from_static("x-goog-hash"), &format!("md5={md5}"));
    }
    if let Some(count) = object.component_count {
        put(headers, HeaderName::from_static("x-goog-component-count"), &count.to_string());
    }
    for (key, value) in &metadata.custom {
        if let Ok(name) = HeaderName::try_from(format!("x-goog-meta-{key}")) {
            append(headers, name, value);
        }
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // A value that no header can hold, which a client may have stored, is left out.
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// The range that a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// From the first to the last, both included.
    Between(u64, u64),
    From(u64),
    /// The last so many.
    Last(u64),
}

impl Asked {
    /// `None` for what is no range of bytes, which the service passes over.
    fn read(header: &str) -> Option<Self> {
        let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
        match (first.trim(), last.trim()) {
            ("", last) => Some(Self::Last(last.parse().ok()?)),
            (first, "") => Some(Self::From(first.parse().ok()?)),
            (first, last) => {
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// The bytes of a content of this length, of which there must be one.
    fn within(self, length: u64) -> Result<Range<u64>, Refusal> {
        let range = match self {
            Self::Between(first, last) => first..length.min(last.saturating_add(1)),
            Self::From(first) => first..length,
            Self::Last(count) => length.saturating_sub(count)..length,
        };
        if range.start < range.end { Ok(range) } else { Err(Refusal::RangeNotSatisfiable { length }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_content_and_empty_ones_refused() {
        let cut = |header: &str, length| Asked::read(header).map(|asked| asked.within(length).ok());
        for (header, length, expected) in [
            ("bytes=0-3", 10, Some(Some(0..4))),
            ("bytes=8-20", 10, Some(Some(8..10))),
            ("bytes=9-", 10, Some(Some(9..10))),
            ("bytes=10-", 10, Some(None)),
            ("bytes=10-12", 10, Some(None)),
            ("bytes=-3", 10, Some(Some(7..10))),
            ("bytes=-30", 10, Some(Some(0..10))),
            ("bytes=-0", 10, Some(None)),
            ("bytes=0-", 0, Some(None)),
            ("bytes=3-2", 10, None),
            ("bytes=0-1,4-5", 10, None),
            ("lines=0-3", 10, None),
            ("bytes=0-18446744073709551615", 10, Some(Some(0..10))),
        ] {
            assert_eq!(cut(header, length), expected, "{header}");
        }
    }
}
