//! A job's input in a bucket: pinned to the generation that it had when it was opened, and read in order by one long
//! request.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{BoxStream, StreamExt};
use object_store::{Attribute, ObjectStore};

use super::answer::storage_error;
use super::bucket::{S3Bucket, late, path};
use super::list;
use super::read::{self, Found};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::Generation;
use crate::input::Input;
use crate::reader::Chunks;
use crate::unreadable::{changed, encoded, missing, of_input};

/// A chunk has at least as many bytes, but for the last: what arrives in smaller pieces is put together.
const CHUNK_BYTES: usize = 256 << 10;

/// An object of a bucket as an input. Its URI is `s3://<bucket>/<key>`; its generation is its `ETag`.
#[derive(Clone, Debug)]
pub struct S3Input {
    bucket: S3Bucket,
    key: String,
    uri: String,
    generation: Generation,
    size_bytes: u64,
}

impl S3Input {
    /// Takes note of the object's generation. One whose content is encoded is refused: its ranges would be ranges of
    /// something else than its lines.
    pub async fn open(bucket: S3Bucket, key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        let uri = bucket.uri(&key);
        let Some(found) = read::head(&bucket, &key, &uri).await? else {
            // An answer without a body does not tell a missing bucket from a missing object; a listing does.
            list::page(&bucket, "", &key, None).await?;
            return Err(missing(Action::Open, &uri));
        };
        let encoding = found.attributes.get(&Attribute::ContentEncoding).map_or("", AsRef::as_ref);
        if !matches!(encoding, "" | "identity" | "aws-chunked") {
            return Err(encoded(&uri, encoding));
        }
        let Found { generation, size_bytes, .. } = Found::of(&found);
        Ok(Self { bucket, key, uri, generation, size_bytes })
    }

    fn told(&self, error: StorageError) -> StorageError {
        of_input(&self.uri, error)
    }
}

#[async_trait]
impl Input for S3Input {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = read::read_range(&self.bucket, &self.key, &self.uri, &self.generation, range).await;
        read.map_err(|error| self.told(error))
    }

    fn chunks(&self, range: Range<u64>) -> Box<dyn Chunks + '_> {
        Box::new(S3Chunks { input: self, rest: range, stream: None })
    }

    async fn verify_unchanged(&self) -> Result<()> {
        match read::head(&self.bucket, &self.key, &self.uri).await?.as_ref().map(Found::of) {
            None => Err(missing(Action::Read, &self.uri)),
            Some(found) if found.generation == self.generation => Ok(()),
            Some(_) => Err(changed(&self.uri)),
        }
    }
}

/// The bytes of a range as they arrive.
struct S3Chunks<'a> {
    input: &'a S3Input,
    /// What has not arrived yet; empty after an error.
    rest: Range<u64>,
    /// The answer, once there was a reason to ask.
    stream: Option<BoxStream<'static, object_store::Result<Bytes>>>,
}

impl fmt::Debug for S3Chunks<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("S3Chunks")
            .field("input", self.input)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Chunks for S3Chunks<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        // Nothing more comes if this fails, or if nobody waits for it.
        let rest = std::mem::replace(&mut self.rest, 0..0);
        let deadline = self.input.bucket.deadline;
        let chunk = match tokio::time::timeout(deadline, self.gathered(rest.clone())).await {
            Ok(chunk) => chunk.map_err(|error| self.input.told(error))?,
            Err(_) => return Err(late(Action::Read, &self.input.uri, deadline)),
        };
        self.rest = rest.start + chunk.len() as u64..rest.end;
        Ok(Some(chunk))
    }
}

impl S3Chunks<'_> {
    /// At least [`CHUNK_BYTES`] of `rest`, or all of it.
    async fn gathered(&mut self, rest: Range<u64>) -> Result<Bytes> {
        let S3Input { bucket, key, uri, generation, size_bytes } = self.input;
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                if rest.end > *size_bytes {
                    return Err(StorageError::past_the_end(uri, &rest, *size_bytes));
                }
                let path = path(key)?;
                let call = bucket.repeating.get_opts(&path, read::pinned(generation, rest.clone()));
                none.insert(bucket.answer(Action::Read, uri, call).await?.into_stream())
            }
        };
        let wanted = usize::try_from(rest.end - rest.start).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let mut chunk = BytesMut::new();
        while chunk.len() < wanted {
            let Some(piece) = stream.next().await else { return Err(short(uri)) };
            let piece = piece.map_err(|error| storage_error(Action::Read, uri, &error))?;
            if chunk.is_empty() && piece.len() >= wanted {
                return Ok(piece);
            }
            chunk.extend_from_slice(&piece);
        }
        Ok(chunk.freeze())
    }
}

fn short(uri: &str) -> StorageError {
    StorageError::new(
        ErrorKind::Unavailable,
        Action::Read,
        uri,
        "the answer ended before its last byte",
        "look at what lies between this machine and the service if it does not pass",
    )
}
