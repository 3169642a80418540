//! Writing: an object at once, or one larger than memory should hold in parts, from a stream.

use std::future::ready;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    MultipartId, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, UpdateVersion,
};

use super::bucket::{S3Bucket, path};
use super::object;
use crate::Result;
use crate::error::{Action, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::settle::Write;

/// Bytes a part, and the most that is written at once. S3 takes 10,000 parts of at least 5 MiB, and some services want
/// all but the last to be of one size.
pub(super) const PART_BYTES: usize = 8 << 20;

/// Parts under way at once.
const PARTS_AT_ONCE: usize = 2;

/// Writes an object whole under the precondition of `write`.
pub(super) async fn put(
    bucket: &S3Bucket,
    key: &str,
    write: &Write<'_>,
    content: PutPayload,
    checksum: Checksum,
) -> Result<ObjectMeta> {
    let path = path(key)?;
    let options = PutOptions {
        mode: mode(write.replaces),
        attributes: object::attributes(write.name, write.mark, Some(checksum)),
        ..PutOptions::default()
    };
    let call = bucket.once.put_opts(&path, content, options);
    let written = bucket.answer(write.action, write.name, call).await?;
    Ok(meta(write, &written, checksum))
}

fn mode(replaces: Option<&Generation>) -> PutMode {
    match replaces {
        None => PutMode::Create,
        Some(generation) => {
            PutMode::Update(UpdateVersion { e_tag: Some(object::e_tag(generation)), version: None })
        }
    }
}

fn meta(write: &Write<'_>, written: &PutResult, checksum: Checksum) -> ObjectMeta {
    ObjectMeta {
        name: write.name.clone(),
        generation: object::generation(written.e_tag.as_deref()),
        size_bytes: checksum.size_bytes,
        crc32c: Some(checksum.crc32c),
    }
}

/// Creates an object of a stream. What fits into one part is written at once. `expected` is what the stream should come
/// to, where that is known; otherwise nothing is written and `contradicted` is the error.
///
/// The outer result is that of the stream and its parts, which leave no object behind; the inner one that of the call
/// that makes the object, with the checksum of what was sent.
pub(super) async fn stream(
    bucket: &S3Bucket,
    key: &str,
    write: &Write<'_>,
    content: impl Stream<Item = Result<Bytes>>,
    expected: Option<Checksum>,
    contradicted: impl Fn() -> StorageError,
) -> Result<(Checksum, Result<ObjectMeta>)> {
    let path = path(key)?;
    let mut parts = pin!(parts_of(content).peekable());
    let first = parts.try_next().await?.unwrap_or_default();
    let check = |found| match expected {
        Some(expected) if expected != found => Err(contradicted()),
        _ => Ok(found),
    };
    if parts.as_mut().peek().await.is_none() {
        let checksum = check(Checksum::of(&first))?;
        return Ok((checksum, put(bucket, key, write, first.into(), checksum).await));
    }
    let upload = Upload::begin(bucket, &path, write, expected).await?;
    let mut checksum = Checksum::default();
    let sent: Result<Vec<PartId>> = stream::once(ready(Ok(first)))
        .chain(parts)
        .enumerate()
        .map(|(index, part)| {
            let part = part.inspect(|part| checksum = checksum.extended(part));
            let upload = &upload;
            async move { upload.put(index, part?).await }
        })
        .buffered(PARTS_AT_ONCE)
        .try_collect()
        .await;
    match sent.and_then(|ids| Ok((ids, check(checksum)?))) {
        Ok((ids, checksum)) => {
            let written = upload.complete(ids, checksum).await;
            if written.is_err() {
                upload.abort().await;
            }
            Ok((checksum, written))
        }
        Err(error) => {
            upload.abort().await;
            Err(error)
        }
    }
}

/// A stream in pieces of [`PART_BYTES`], the last as long as what is left; none where it is empty.
fn parts_of(content: impl Stream<Item = Result<Bytes>>) -> impl Stream<Item = Result<Bytes>> {
    let start = (Box::pin(content), BytesMut::new());
    stream::try_unfold(start, |(mut content, mut held)| async move {
        while held.len() < PART_BYTES {
            match content.try_next().await? {
                Some(chunk) => held.extend_from_slice(&chunk),
                None if held.is_empty() => return Ok(None),
                None => break,
            }
        }
        let part = held.split_to(held.len().min(PART_BYTES)).freeze();
        Ok(Some((part, (content, held))))
    })
}

/// An upload in parts that was begun. What was sent is kept, and paid for, until it is completed or aborted.
struct Upload<'a> {
    bucket: &'a S3Bucket,
    path: &'a Path,
    write: &'a Write<'a>,
    id: MultipartId,
}

impl<'a> Upload<'a> {
    async fn begin(
        bucket: &'a S3Bucket,
        path: &'a Path,
        write: &'a Write<'a>,
        checksum: Option<Checksum>,
    ) -> Result<Self> {
        let attributes = object::attributes(write.name, write.mark, checksum);
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let call = bucket.repeating.create_multipart_opts(path, options);
        let id = bucket.answer(write.action, write.name, call).await?;
        Ok(Self { bucket, path, write, id })
    }

    async fn put(&self, index: usize, part: Bytes) -> Result<PartId> {
        let call = self.bucket.repeating.put_part(self.path, &self.id, index, part.into());
        self.bucket.answer(self.write.action, self.write.name, call).await
    }

    /// Makes the object, if the name is free (`create_only`).
    async fn complete(&self, parts: Vec<PartId>, checksum: Checksum) -> Result<ObjectMeta> {
        let call = self.bucket.once.complete_multipart(self.path, &self.id, parts);
        let written = self.bucket.answer(self.write.action, self.write.name, call).await?;
        Ok(meta(self.write, &written, checksum))
    }

    /// Gives up what was sent. Where that fails, too, a lifecycle rule of the bucket does it.
    async fn abort(&self) {
        let call = self.bucket.repeating.abort_multipart(self.path, &self.id);
        if let Err(error) = self.bucket.answer(Action::Delete, self.write.name, call).await {
            tracing::debug!(%error, "an unfinished upload stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_are_of_one_size_but_the_last() {
        for (chunks, expected) in [
            (vec![], vec![]),
            (vec![0, 0], vec![]),
            (vec![1, 2], vec![3]),
            (vec![PART_BYTES], vec![PART_BYTES]),
            (vec![PART_BYTES - 1, 2, PART_BYTES], vec![PART_BYTES, PART_BYTES, 1]),
            (vec![3 * PART_BYTES], vec![PART_BYTES; 3]),
        ] {
            let content = stream::iter(chunks.clone()).map(|length| Ok(Bytes::from(vec![b'a'; length])));
            let parts: Vec<Bytes> = parts_of(content).try_collect().await.unwrap();
            assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), expected, "{chunks:?}");
        }
    }
}
