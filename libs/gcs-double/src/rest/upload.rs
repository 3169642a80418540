//! Uploads in chunks: starting one, sending a chunk, asking how far it is, giving it up.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::{
    Exchange,
    content_range::ContentRange,
    json, json_body,
    resource::{self, ObjectBody},
    write::{expected_in_headers, next, object_name, text},
};
use crate::{
    body::{self, Body},
    bucket::{NewObject, Refusal},
    faults::Fault,
    name::BucketName,
    upload::{BLOCK, Purpose, Receiving, Session, Stage},
    visit::Stop,
};

/// How the service says that an upload was given up.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl Exchange {
    /// Starts an upload; the answer's `Location` is where its chunks go.
    pub(super) async fn start_upload(self, bucket: BucketName) -> Result<Response<Body>, Stop> {
        let preconditions = self.query.preconditions()?;
        let headers = &self.parts.headers;
        let content_type = text(headers, "x-upload-content-type");
        // The official client leaves out the port.
        let host = text(headers, header::HOST.as_str())
            .filter(|host| host.contains(':'))
            .unwrap_or_else(|| self.visit.service.address.to_string());
        let expected = expected_in_headers(headers)?;
        let mut described: ObjectBody = json_body(self.body).await?;
        described.content_type = described.content_type.or(content_type);
        let name = object_name(self.query.get("name"), described.name.as_deref())?;
        let purpose = Purpose {
            bucket: bucket.clone(),
            name: name.clone(),
            metadata: described.metadata(),
            expected: described.expected()?.and(expected),
            preconditions,
        };
        let service = &self.visit.service;
        let id = self
            .visit
            .change(|buckets, _| {
                buckets.check(&bucket, &name, &preconditions)?;
                Ok(service.uploads.start(purpose, Arc::clone(&service.spool)))
            })
            .await?;
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("uploadType", "resumable")
            .append_pair("name", name.as_str())
            .append_pair("upload_id", &id)
            .finish();
        let location = format!("http://{host}/upload/storage/v1/b/{bucket}/o?{query}");
        let mut response = Response::new(body::whole(Bytes::new()));
        put(response.headers_mut(), header::LOCATION, &location);
        put(response.headers_mut(), header::HeaderName::from_static("x-guploader-uploadid"), &id);
        Ok(response)
    }

    /// Takes a chunk, or says how much has arrived.
    pub(super) async fn upload_chunk(mut self, id: &str) -> Result<Response<Body>, Stop> {
        let session = self.visit.service.uploads.find(id).ok_or(Refusal::NoSuchUpload)?;
        let mut session = session.lock().await;
        let range = ContentRange::read(text(&self.parts.headers, "content-range").as_deref())?;
        if let Some(Fault::ErrorBefore { .. }) = self.visit.fault {
            while next(&self.visit, &mut self.body, 0).await?.is_some() {}
            self.visit.before()?;
        }
        let ends = match &mut session.stage {
            Stage::Finished(object) => {
                return Ok(json(object));
            }
            Stage::Cancelled => return Err(Refusal::UploadCancelled.into()),
            Stage::Received(content, _) => {
                let length = content.length();
                !matches!(range, ContentRange::Status { total } if total != Some(length))
            }
            Stage::Receiving(receiving) => {
                receiving.begin();
                self.receive(receiving, range).await?
            }
        };
        if !ends {
            let response = incomplete(&session.stage);
            drop(session);
            self.visit.apply(|_, _| Ok(()), !matches!(range, ContentRange::Status { .. }))?;
            self.visit.after().await?;
            return Ok(response);
        }
        let expected = expected_in_headers(&self.parts.headers)?;
        session.purpose.expected = session.purpose.expected.and(expected);
        receive_all(&mut session).await?;
        let finished = self.finish(&mut session);
        drop(session);
        let response = finished?;
        self.visit.after().await?;
        Ok(response)
    }

    /// Takes the bytes of a request; tells whether they were the last.
    async fn receive(&mut self, receiving: &mut Receiving, range: ContentRange) -> Result<bool, Stop> {
        let kept = receiving.kept();
        let (first, length, ends) = match range {
            ContentRange::Status { total: Some(total) } if total < kept => {
                return Err(Refusal::invalid(format!("{kept} bytes have arrived, more than {total}")).into());
            }
            ContentRange::Status { total } => return Ok(total == Some(kept)),
            ContentRange::Chunk { first, last, total } => {
                (first, Some(last - first + 1), total == Some(last + 1))
            }
            ContentRange::Rest { first } => (first, None, true),
        };
        if first > kept {
            return Err(Refusal::OffsetTooLarge { offset: first, kept }.into());
        }
        // What had arrived before is passed over.
        let (mut skip, mut arrived) = (kept - first, 0_u64);
        while let Some(bytes) = next(&self.visit, &mut self.body, arrived).await? {
            arrived += bytes.len() as u64;
            self.visit.received(bytes.len() as u64);
            if length.is_some_and(|length| arrived > length) {
                break;
            }
            let passed = skip.min(bytes.len() as u64);
            skip -= passed;
            let new = &bytes[usize::try_from(passed).unwrap_or(bytes.len())..];
            receiving.push(new).await.map_err(|error| Refusal::machine(&error))?;
        }
        if length.is_some_and(|length| arrived != length) {
            return Err(Refusal::invalid("Content-Range does not agree with the length of the body").into());
        }
        if !ends && arrived < BLOCK {
            return Err(Refusal::ChunkTooSmall { bytes: arrived }.into());
        }
        Ok(ends)
    }

    /// Makes the object of what has arrived.
    fn finish(&self, session: &mut Session) -> Result<Response<Body>, Stop> {
        let Session { purpose, stage } = session;
        let Stage::Received(content, checksums) = &*stage else {
            return Err(Refusal::UploadCancelled.into());
        };
        let new = NewObject {
            content: content.clone(),
            checksums: *checksums,
            expected: purpose.expected,
            metadata: purpose.metadata.clone(),
            component_count: None,
        };
        let Purpose { bucket, name, preconditions, .. } = &*purpose;
        self.visit.apply(
            |buckets, now| {
                let object = buckets.put(bucket, name, new, preconditions, now)?;
                let value = resource::object(bucket, &object);
                let response = json(&value);
                *stage = Stage::Finished(value);
                Ok(response)
            },
            true,
        )
    }

    /// Gives an upload up.
    pub(super) async fn cancel_upload(self, id: &str) -> Result<Response<Body>, Stop> {
        let session = self.visit.service.uploads.find(id).ok_or(Refusal::NoSuchUpload)?;
        let mut session = session.lock().await;
        if matches!(session.stage, Stage::Finished(_)) {
            return Err(Refusal::NoSuchUpload.into());
        }
        self.visit.apply(|_, _| Ok(()), true)?;
        session.stage = Stage::Cancelled;
        drop(session);
        self.visit.after().await?;
        let mut response = Response::new(body::whole(Bytes::new()));
        *response.status_mut() = StatusCode::from_u16(CLIENT_CLOSED_REQUEST).map_err(|_| Stop::Dropped)?;
        Ok(response)
    }
}

/// Goes from receiving to received.
async fn receive_all(session: &mut Session) -> Result<(), Stop> {
    let stage = std::mem::replace(&mut session.stage, Stage::Cancelled);
    session.stage = match stage {
        Stage::Receiving(receiving) => {
            let (content, checksums) = receiving.finish().await.map_err(|error| Refusal::machine(&error))?;
            Stage::Received(content, checksums)
        }
        other => other,
    };
    Ok(())
}

/// The answer while bytes are still to come.
fn incomplete(stage: &Stage) -> Response<Body> {
    let kept = match stage {
        Stage::Receiving(receiving) => receiving.kept(),
        Stage::Received(content, _) => content.length(),
        Stage::Finished(_) | Stage::Cancelled => 0,
    };
    let mut response = Response::new(body::whole(Bytes::new()));
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    if kept > 0 {
        put(response.headers_mut(), header::RANGE, &format!("bytes=0-{}", kept - 1));
    }
    response
}

fn put(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}
