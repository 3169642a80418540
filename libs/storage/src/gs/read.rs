//! Reading: one request for a range of one generation, taken up again where it broke off or stood still.
//!
//! The client library would resume only what fails, and knows no deadline; so its resumption is off and this one on.

use std::ops::Range;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use google_cloud_storage::Error;
use google_cloud_storage::error::ReadError;
use google_cloud_storage::model_ext::ReadRange;
use google_cloud_storage::read_object::ReadObjectResponse;

use super::GsStore;
use super::answer::told;
use super::bucket::{ATTEMPTS, GsBucket, answered, within};
use super::object::{head, number, without_checksum};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;

/// The pause before the first resumption; the second one has twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// The bytes of a range of one generation, as they arrive.
#[derive(Debug)]
pub(super) struct Stream {
    bucket: GsBucket,
    path: String,
    /// What messages call the object.
    display: String,
    generation: i64,
    rest: Range<u64>,
    answer: Option<ReadObjectResponse>,
}

impl Stream {
    /// `range` of one generation of the object at `path`.
    pub(super) fn new(
        bucket: GsBucket,
        path: String,
        display: String,
        generation: i64,
        range: Range<u64>,
    ) -> Self {
        Self { bucket, path, display, generation, rest: range, answer: None }
    }

    /// The next bytes, never empty; `None` at the end of the range. Told are three attempts one after the other that bring
    /// nothing, within a minute, and at once an error other than [`Unavailable`](ErrorKind::Unavailable).
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        let mut failures = 0;
        while !self.rest.is_empty() {
            let (limit, display) = (self.bucket.patience, self.display.clone());
            let error = match within(limit, Action::Read, display, self.attempt()).await {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => {
                    self.rest.start += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                Err(error) => error,
            };
            self.answer = None;
            failures += 1;
            if error.kind() == ErrorKind::Changed {
                return Err(self.gone_or(error).await);
            }
            if error.kind() != ErrorKind::Unavailable || failures == ATTEMPTS {
                return Err(error);
            }
            tracing::debug!(%error, from = self.rest.start, "a read is taken up where it broke off");
            tokio::time::sleep(PAUSE * failures).await;
        }
        Ok(None)
    }

    /// A condition on the generation fails of an object that is gone, too.
    async fn gone_or(&mut self, changed: StorageError) -> StorageError {
        match head(&self.bucket, &self.path, &self.display).await {
            Ok(None) => StorageError::new(
                ErrorKind::NotFound,
                Action::Read,
                &self.display,
                "there is no such object",
                "make sure that nobody deletes what a job needs",
            ),
            _ => changed,
        }
    }

    /// All that is left, in one piece.
    pub(super) async fn collect(mut self) -> Result<Bytes> {
        let length = usize::try_from(self.rest.end - self.rest.start)
            .map_err(|_| StorageError::past_the_end(&self.display, &self.rest, 0))?;
        let mut bytes = BytesMut::new();
        while let Some(next) = self.next().await? {
            if next.len() == length {
                return Ok(next);
            }
            bytes.reserve(length - bytes.len());
            bytes.extend_from_slice(&next);
        }
        Ok(bytes.freeze())
    }

    async fn attempt(&mut self) -> Result<Bytes> {
        if self.answer.is_none() {
            self.answer = Some(self.send().await?);
        }
        let answer = self.answer.as_mut().expect("invariant: it has just been set");
        let rest_bytes = self.rest.end - self.rest.start;
        received(answer, rest_bytes).await.map_err(|answer| told(Action::Read, &self.display, &answer))
    }

    async fn send(&mut self) -> Result<ReadObjectResponse> {
        let range = ReadRange::segment(self.rest.start, self.rest.end - self.rest.start);
        let answer = self.bucket.read(&self.path, &self.display, Some(self.generation), range).await?;
        let size_bytes = answer.object().size.unsigned_abs();
        // A server that does not tell the size sends less than was asked for.
        if size_bytes > 0 && self.rest.end > size_bytes {
            return Err(StorageError::past_the_end(&self.display, &self.rest, size_bytes));
        }
        Ok(answer)
    }
}

/// The next bytes of an answer that has `rest_bytes` left to give. The last ones are only given when nothing follows them:
/// a server that does not know ranges sends the object from its beginning.
async fn received(answer: &mut ReadObjectResponse, rest_bytes: u64) -> google_cloud_storage::Result<Bytes> {
    let bytes = answer.next().await.ok_or_else(|| Error::io(ReadError::ShortRead(rest_bytes)))??;
    let got = bytes.len() as u64;
    let too_many = |got| Err(Error::deser(ReadError::LongRead { expected: rest_bytes, got }));
    if got > rest_bytes {
        return too_many(got);
    }
    if got < rest_bytes {
        return Ok(bytes);
    }
    match answer.next().await.transpose()? {
        None => Ok(bytes),
        Some(more) => too_many(got + more.len() as u64),
    }
}

impl GsBucket {
    /// Asks for a range of the object at `path`, of one generation or of the present one.
    async fn read(
        &self,
        path: &str,
        display: &str,
        generation: Option<i64>,
        range: ReadRange,
    ) -> Result<ReadObjectResponse> {
        let mut request =
            self.storage.read_object(self.resource(), path).set_read_range(range).compute_crc32c(false);
        if let Some(generation) = generation {
            request = request.set_if_generation_match(generation);
        }
        // The future of a request has 26 KB, and is part of every stream that may have to send one.
        answered(self.patience, Action::Read, display, Box::pin(request.send())).await
    }
}

impl GsStore {
    /// See [`Store::get`](crate::Store::get): one request, which tells generation and checksum beside the bytes. An object
    /// that is replaced while its bytes are read is [`Unavailable`](ErrorKind::Unavailable).
    pub(super) async fn read_whole(
        &self,
        name: &ObjectName,
        limit_bytes: u64,
    ) -> Result<Option<(ObjectMeta, Bytes)>> {
        let path = self.path(name);
        let answer = match self.bucket.read(&path, name.as_str(), None, ReadRange::all()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            answer => answer?,
        };
        let object = answer.object();
        let size_bytes = object.size.unsigned_abs();
        if size_bytes > limit_bytes {
            return Err(StorageError::too_large(name, size_bytes, limit_bytes));
        }
        let crc32c = object.checksums.and_then(|checksums| checksums.crc32c);
        let crc32c = crc32c.ok_or_else(|| without_checksum(Action::Read, name))?;
        let (bucket, display) = (self.bucket.clone(), name.to_string());
        let stream = Stream {
            answer: Some(answer),
            ..Stream::new(bucket, path, display, object.generation, 0..size_bytes)
        };
        let content = stream.collect().await.map_err(|error| match error.kind() {
            ErrorKind::Changed | ErrorKind::NotFound => replaced_meanwhile(name),
            _ => error,
        })?;
        verify(name, &content, Checksum { size_bytes, crc32c })?;
        let generation = Generation::new(object.generation.to_string());
        Ok(Some((ObjectMeta { name: name.clone(), generation, size_bytes, crc32c: Some(crc32c) }, content)))
    }

    /// See [`Store::read_range`](crate::Store::read_range).
    pub(super) async fn read_pinned(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        let Some(pinned) = number(generation).filter(|_| !range.is_empty()) else {
            return self.read_nothing(name, generation, range).await;
        };
        Stream::new(self.bucket.clone(), self.path(name), name.to_string(), pinned, range).collect().await
    }

    /// A range without bytes, or of a generation that no object here has: still it is told what is wrong with it.
    async fn read_nothing(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        let found = self.look(name).await?.ok_or_else(|| StorageError::not_found(Action::Read, name))?;
        if found.meta.generation != *generation {
            return Err(StorageError::changed(Action::Read, name));
        }
        if range.start > range.end || range.end > found.meta.size_bytes {
            return Err(StorageError::past_the_end(name, &range, found.meta.size_bytes));
        }
        Ok(Bytes::new())
    }

    /// What there is at `name`.
    pub(super) async fn look(&self, name: &ObjectName) -> Result<Option<crate::settle::Found>> {
        match head(&self.bucket, &self.path(name), name.as_str()).await? {
            None => Ok(None),
            Some(object) => super::object::found(Action::Read, name, &object).map(Some),
        }
    }
}

fn replaced_meanwhile(name: &ObjectName) -> StorageError {
    StorageError::new(
        ErrorKind::Unavailable,
        Action::Read,
        name,
        "it was replaced while it was being read",
        "read it again",
    )
}

fn verify(name: &ObjectName, content: &[u8], expected: Checksum) -> Result<()> {
    if Checksum::of(content) == expected {
        return Ok(());
    }
    Err(StorageError::new(
        ErrorKind::Damaged,
        Action::Read,
        name,
        "its content contradicts its checksum",
        "read it again, and look at what lies between if it happens twice",
    ))
}
