//! Reading: what is known of an object, an object whole, a range of one generation.

use std::ops::Range;

use bytes::Bytes;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

use super::bucket::{S3Bucket, path};
use super::{answer, object};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation};

/// What S3 tells of an object, without its content; `None` when there is none.
pub(super) async fn head(bucket: &S3Bucket, key: &str, display: &str) -> Result<Option<GetResult>> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    let (path, action) = (path(key)?, Action::Read);
    match bucket.answer(action, display, bucket.repeating.get_opts(&path, options)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An object with its content; `None` when there is none.
pub(super) async fn get(
    bucket: &S3Bucket,
    key: &str,
    display: &str,
    limit_bytes: u64,
) -> Result<Option<(Found, Bytes)>> {
    let path = path(key)?;
    let call = async {
        let found = bucket.repeating.get_opts(&path, GetOptions::default()).await?;
        let facts = Found::of(&found);
        let content = if facts.size_bytes > limit_bytes { Bytes::new() } else { found.bytes().await? };
        Ok((facts, content))
    };
    match bucket.answer(Action::Read, display, call).await {
        Ok((found, content)) => Ok(Some((found, content))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a look at an object finds.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) generation: Generation,
    pub(super) size_bytes: u64,
    pub(super) crc32c: Option<u32>,
    pub(super) mark: Option<String>,
}

impl Found {
    pub(super) fn of(found: &GetResult) -> Self {
        Self {
            generation: object::generation(found.meta.e_tag.as_deref()),
            size_bytes: found.meta.size,
            crc32c: object::crc32c(&found.attributes),
            mark: object::mark(&found.attributes),
        }
    }
}

/// Exactly the bytes of `range` of one generation.
pub(super) async fn read_range(
    bucket: &S3Bucket,
    key: &str,
    display: &str,
    generation: &Generation,
    range: Range<u64>,
) -> Result<Bytes> {
    if range.start >= range.end {
        return nothing(bucket, key, display, generation, &range).await;
    }
    let path = path(key)?;
    let options = pinned(generation, range.clone());
    let call = async {
        let found = match bucket.repeating.get_opts(&path, options).await {
            Err(error) if answer::is_past_the_end(&error) => return Ok(None),
            found => found?,
        };
        if found.range == range { found.bytes().await.map(Some) } else { Ok(None) }
    };
    match bucket.answer(Action::Read, display, call).await? {
        Some(bytes) => Ok(bytes),
        // What it has instead is told by a look.
        None => nothing(bucket, key, display, generation, &range).await,
    }
}

/// Options for `range` of `generation`. S3 answers with the start of a range that it has only in part.
pub(super) fn pinned(generation: &Generation, range: Range<u64>) -> GetOptions {
    GetOptions {
        if_match: Some(object::e_tag(generation)),
        range: Some(GetRange::Bounded(range)),
        ..GetOptions::default()
    }
}

/// No bytes, where none are asked for, of a generation that must be there all the same.
async fn nothing(
    bucket: &S3Bucket,
    key: &str,
    display: &str,
    generation: &Generation,
    range: &Range<u64>,
) -> Result<Bytes> {
    let Some(found) = head(bucket, key, display).await?.as_ref().map(Found::of) else {
        return Err(StorageError::new(
            ErrorKind::NotFound,
            Action::Read,
            display,
            "there is no such object",
            "make sure that nobody deletes it",
        ));
    };
    if found.generation != *generation {
        return Err(StorageError::changed(Action::Read, display));
    }
    if range.start > range.end || range.end > found.size_bytes {
        return Err(StorageError::past_the_end(display, range, found.size_bytes));
    }
    Ok(Bytes::new())
}

/// The checksum of the whole of one generation, which is read for it piece by piece.
pub(super) async fn checksum(
    bucket: &S3Bucket,
    key: &str,
    display: &str,
    generation: &Generation,
    size_bytes: u64,
) -> Result<Checksum> {
    /// Bytes a piece: what stays in memory.
    const PIECE: u64 = 8 << 20;
    let mut checksum = Checksum::default();
    while checksum.size_bytes < size_bytes {
        let piece = checksum.size_bytes..size_bytes.min(checksum.size_bytes + PIECE);
        checksum = checksum.extended(&read_range(bucket, key, display, generation, piece).await?);
    }
    Ok(checksum)
}
