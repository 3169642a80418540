//! A job's input in a bucket: pinned to the generation that it had when it was opened, and read in order by one long
//! request.

use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use google_cloud_storage::model::Object;

use super::bucket::GsBucket;
use super::object::{head, without_checksum};
use super::read::Stream;
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation};
use crate::input::Input;
use crate::reader::Chunks;
use crate::unreadable::{changed, encoded, missing, of_input};

/// A chunk has at least as many bytes, but for the last: what arrives in smaller pieces is put together.
const CHUNK_BYTES: usize = 256 << 10;

/// The largest object that there is, in bytes: 5 TiB (<https://cloud.google.com/storage/quotas#objects>).
const LARGEST: i64 = 5 << 40;

/// An object of a bucket as an input. Its URI is `gs://<bucket>/<object>`; its generation is the service's number.
#[derive(Clone, Debug)]
pub struct GsInput {
    bucket: GsBucket,
    path: String,
    uri: String,
    number: i64,
    generation: Generation,
    checksum: Checksum,
}

impl GsInput {
    /// Takes note of the object's generation. One whose content is encoded is refused: its ranges would be ranges of
    /// something else than its lines.
    pub async fn open(bucket: GsBucket, path: impl Into<String>) -> Result<Self> {
        let path = path.into();
        let uri = format!("gs://{}/{path}", bucket.name());
        let object = head(&bucket, &path, &uri).await?.ok_or_else(|| missing(Action::Open, &uri))?;
        let checksum = readable(&uri, &object)?;
        Ok(Self {
            bucket,
            path,
            uri,
            number: object.generation,
            generation: Generation::new(object.generation.to_string()),
            checksum,
        })
    }
}

#[async_trait]
impl Input for GsInput {
    fn uri(&self) -> &str {
        &self.uri
    }

    fn generation(&self) -> &Generation {
        &self.generation
    }

    fn size_bytes(&self) -> u64 {
        self.checksum.size_bytes
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.size_bytes() {
            return Err(StorageError::past_the_end(&self.uri, &range, self.size_bytes()));
        }
        self.stream(range).collect().await.map_err(|error| self.told(error))
    }

    fn chunks(&self, range: Range<u64>) -> Box<dyn Chunks + '_> {
        let whole = range == (0..self.size_bytes());
        Box::new(GsChunks {
            input: self,
            stream: self.stream(range),
            expected: whole.then_some(self.checksum),
            read: Checksum::default(),
            ended: false,
        })
    }

    async fn verify_unchanged(&self) -> Result<()> {
        let object = head(&self.bucket, &self.path, &self.uri).await?;
        match object {
            None => Err(missing(Action::Read, &self.uri)),
            Some(object) if object.generation == self.number => Ok(()),
            Some(_) => Err(changed(&self.uri)),
        }
    }
}

impl GsInput {
    fn stream(&self, range: Range<u64>) -> Stream {
        Stream::new(self.bucket.clone(), self.path.clone(), self.uri.clone(), self.number, range)
    }

    fn told(&self, error: StorageError) -> StorageError {
        of_input(&self.uri, error)
    }
}

/// The bytes of a range as they arrive. The checksum of a whole input is compared before its last chunk is given.
#[derive(Debug)]
struct GsChunks<'a> {
    input: &'a GsInput,
    stream: Stream,
    /// What the whole object must come to; `None` for a part of it.
    expected: Option<Checksum>,
    read: Checksum,
    /// Nothing more comes, after an error or if nobody waited for it.
    ended: bool,
}

#[async_trait]
impl Chunks for GsChunks<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(None);
        }
        let chunk = self.gathered().await.map_err(|error| self.input.told(error))?;
        if let Some(expected) = self.expected {
            self.read = self.read.extended(&chunk);
            if self.read.size_bytes == expected.size_bytes && self.read != expected {
                return Err(damaged(&self.input.uri));
            }
        }
        self.ended = chunk.is_empty();
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

impl GsChunks<'_> {
    /// At least [`CHUNK_BYTES`], or what is left; nothing at the end.
    async fn gathered(&mut self) -> Result<Bytes> {
        let Some(first) = self.stream.next().await? else { return Ok(Bytes::new()) };
        if first.len() >= CHUNK_BYTES {
            return Ok(first);
        }
        let mut chunk = BytesMut::with_capacity(2 * CHUNK_BYTES);
        chunk.extend_from_slice(&first);
        while chunk.len() < CHUNK_BYTES {
            let Some(next) = self.stream.next().await? else { break };
            chunk.extend_from_slice(&next);
        }
        Ok(chunk.freeze())
    }
}

/// What the bytes of an input come to, if it is one that can be read at any place.
fn readable(uri: &str, object: &Object) -> Result<Checksum> {
    if !matches!(object.content_encoding.as_str(), "" | "identity") {
        return Err(encoded(uri, &object.content_encoding));
    }
    if object.size > LARGEST {
        return Err(impossible(uri, object.size));
    }
    let crc32c = object.checksums.as_ref().and_then(|checksums| checksums.crc32c);
    let crc32c = crc32c.ok_or_else(|| without_checksum(Action::Open, uri))?;
    Ok(Checksum { size_bytes: object.size.unsigned_abs(), crc32c })
}

fn impossible(uri: &str, size_bytes: i64) -> StorageError {
    StorageError::new(
        ErrorKind::Invalid,
        Action::Open,
        uri,
        format!("it is said to have {size_bytes} bytes, and no object has more than {LARGEST}"),
        "make sure that the endpoint is Google Cloud Storage, or speaks as it does",
    )
}

fn damaged(uri: &str) -> StorageError {
    StorageError::new(
        ErrorKind::Damaged,
        Action::Read,
        uri,
        "what was read contradicts the checksum that the storage keeps",
        "run the same command again, and look at what lies between if it happens twice",
    )
}

#[cfg(test)]
mod tests {
    use google_cloud_storage::model::ObjectChecksums;

    use super::*;

    #[test]
    fn only_what_can_be_read_at_any_place_is_an_input() {
        let checksums = ObjectChecksums::new().set_crc32c(7_u32);
        let plain = Object::new().set_size(LARGEST).set_checksums(checksums.clone());
        let read = readable("gs://b/o", &plain).unwrap();
        assert_eq!(read, Checksum { size_bytes: 5 << 40, crc32c: 7 });
        let table = [
            (plain.clone().set_size(LARGEST + 1), ErrorKind::Invalid, "no object has more than"),
            (plain.clone().set_content_encoding("gzip"), ErrorKind::Invalid, "Content-Encoding: gzip"),
            (Object::new().set_size(1), ErrorKind::Damaged, "tells no CRC32C"),
        ];
        for (object, kind, told) in table {
            let error = readable("gs://b/o", &object).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
        assert!(readable("gs://b/o", &plain.set_content_encoding("identity")).is_ok());
    }
}
