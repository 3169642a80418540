//! Writing an object in one request.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{
    Exchange, json, multipart,
    resource::{self, ObjectBody},
    route::WriteKind,
};
use crate::{
    body::Body,
    bucket::{NewObject, Refusal},
    checksum::ExpectedChecksums,
    content::ContentBuilder,
    faults::Fault,
    name::{BucketName, ObjectName},
    visit::{Stop, Visit},
};

impl Exchange {
    /// Writes what the body holds.
    pub(super) async fn write(mut self, bucket: BucketName, kind: WriteKind) -> Result<Response<Body>, Stop> {
        let preconditions = self.query.preconditions()?;
        let mut builder = ContentBuilder::new(Arc::clone(&self.visit.service.spool));
        let described = match kind {
            WriteKind::Multipart => {
                let boundary = multipart::boundary(&self.parts.headers)?;
                let body = collect(&self.visit, self.body).await?;
                let (described, content) = read_parts(&multipart::parts(&body, &boundary)?)?;
                self.visit.received(content.len() as u64);
                builder.push(&content).await.map_err(|error| Refusal::machine(&error))?;
                described
            }
            WriteKind::Media => {
                while let Some(bytes) = next(&self.visit, &mut self.body, builder.length()).await? {
                    self.visit.received(bytes.len() as u64);
                    builder.push(&bytes).await.map_err(|error| Refusal::machine(&error))?;
                }
                let content_type = text(&self.parts.headers, header::CONTENT_TYPE.as_str());
                Described { body: ObjectBody { content_type, ..ObjectBody::default() }, trailing: None }
            }
        };
        let (content, checksums) = builder.finish().await.map_err(|error| Refusal::machine(&error))?;
        let name = object_name(self.query.get("name"), described.body.name.as_deref())?;
        let new = NewObject {
            content,
            checksums,
            expected: described.expected()?.and(expected_in_headers(&self.parts.headers)?),
            metadata: described.body.metadata(),
            component_count: None,
        };
        let object =
            self.visit.change(|buckets, now| buckets.put(&bucket, &name, new, &preconditions, now)).await?;
        Ok(json(&resource::object(&bucket, &object)))
    }
}

/// What the parts beside the content say.
struct Described {
    body: ObjectBody,
    /// Checksums that follow the content.
    trailing: Option<ObjectBody>,
}

impl Described {
    fn expected(&self) -> Result<ExpectedChecksums, Refusal> {
        let trailing =
            self.trailing.as_ref().map_or_else(|| Ok(ExpectedChecksums::default()), ObjectBody::expected)?;
        Ok(self.body.expected()?.and(trailing))
    }
}

fn read_parts(parts: &[multipart::Part]) -> Result<(Described, Bytes), Refusal> {
    let read = |part: &multipart::Part| {
        let body = serde_json::from_slice::<ObjectBody>(&part.body);
        body.map_err(|error| Refusal::invalid(format!("the metadata of the upload: {error}")))
    };
    let (metadata, content, trailing) = match parts {
        [metadata, content] => (metadata, content, None),
        [metadata, content, trailing] => (metadata, content, Some(read(trailing)?)),
        _ => return Err(Refusal::invalid("a multipart upload has a part of metadata and one of content")),
    };
    let mut body = read(metadata)?;
    body.content_type = body.content_type.or_else(|| content.content_type.clone());
    Ok((Described { body, trailing }, content.body.clone()))
}

/// The name, which the URL and the metadata may both say, if they say the same.
pub(super) fn object_name(in_url: Option<&str>, in_body: Option<&str>) -> Result<ObjectName, Refusal> {
    match (in_url, in_body) {
        (Some(in_url), Some(in_body)) if in_url != in_body => {
            Err(Refusal::invalid(format!("the name {in_body:?} in the body is not {in_url:?} of the URL")))
        }
        (in_url, in_body) => ObjectName::parse(in_url.or(in_body).unwrap_or_default()),
    }
}

/// The checksums that `x-goog-hash` names.
pub(super) fn expected_in_headers(headers: &HeaderMap) -> Result<ExpectedChecksums, Refusal> {
    let mut expected = ExpectedChecksums::default();
    let values = headers.get_all("x-goog-hash").iter().filter_map(|value| value.to_str().ok());
    for hash in values.flat_map(|value| value.split(',')) {
        let hash = hash.trim();
        let (crc32c, md5) = (hash.strip_prefix("crc32c="), hash.strip_prefix("md5="));
        expected = expected.and(resource::expected(crc32c, md5)?);
    }
    Ok(expected)
}

/// A header as text.
pub(super) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

async fn collect(visit: &Visit, mut body: Incoming) -> Result<Bytes, Stop> {
    let mut collected = BytesMut::new();
    while let Some(bytes) = next(visit, &mut body, collected.len() as u64).await? {
        collected.extend_from_slice(&bytes);
    }
    Ok(collected.freeze())
}

/// The next bytes of a body, of which `received` have come; breaks as the visit's fault says.
pub(super) async fn next(visit: &Visit, body: &mut Incoming, received: u64) -> Result<Option<Bytes>, Stop> {
    let frame = body.frame().await.transpose().map_err(|_| Stop::Dropped)?;
    let mut data = frame.map(|frame| frame.into_data().unwrap_or_default());
    if let Some(Fault::BreakRequest { after_bytes }) = visit.fault {
        let left = after_bytes.saturating_sub(received);
        let data = data.as_mut().filter(|_| left > 0).ok_or(Stop::Dropped)?;
        data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    }
    Ok(data)
}
