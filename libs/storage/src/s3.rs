//! A bucket of Amazon S3, or of a service that speaks like it, as a store.
//!
//! | file | what it owns |
//! |---|---|
//! | `bucket` | settings, credentials, attempts and deadlines |
//! | `read`, `list`, `write`, `compose`, `delete` | the operations |
//! | `create_only` | why an upload in parts cannot overwrite |
//! | `object` | what stands beside the content: CRC32C, mark of the write, content type |
//! | `answer` | what an answer means: kind and advice |
//! | [`input`](S3Input) | an object as a job's input |
//! | `signed` | URLs for others |
//!
//! A generation is an `ETag`, which for most objects is a digest of the content: equal bytes written again have the
//! generation that they had. Whoever must tell two writes apart writes something of his own into each.

mod answer;
mod bucket;
mod compose;
mod create_only;
mod delete;
mod input;
mod list;
mod object;
mod read;
mod signed;
mod write;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, Stream, TryStreamExt};
use tokio::io::AsyncReadExt;

pub use self::bucket::{S3Bucket, S3Key, S3Settings};
pub use self::input::S3Input;

use self::read::Found;
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::settle::{self, Write, new_mark, settled};
use crate::store::{Page, Store};

/// Objects that one request deletes.
const DELETES_AT_ONCE: NonZeroUsize = NonZeroUsize::new(1_000).expect("it is not zero");

/// Bytes that are read from a local file at once.
const FILE_CHUNK_BYTES: usize = 1 << 20;

/// What lies below one prefix of a bucket.
#[derive(Clone, Debug)]
pub struct S3Store {
    bucket: S3Bucket,
    /// Empty, or ends with a slash.
    prefix: String,
    /// Checksums of objects that came without one, by the generation that was read for it.
    computed: Arc<Mutex<HashMap<(ObjectName, Generation), u32>>>,
}

impl S3Store {
    /// The objects of `bucket` below `prefix`, which has no slash at either end and may be empty. One listing is asked
    /// for, so that a bucket or a right that is missing is told at once.
    pub async fn open(bucket: S3Bucket, prefix: &str) -> Result<Self> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let store = Self { bucket, prefix, computed: Arc::default() };
        list::page(&store.bucket, &store.prefix, "", None).await?;
        Ok(store)
    }

    fn key(&self, name: &ObjectName) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Creates or replaces an object that is in memory.
    async fn put(
        &self,
        action: Action,
        name: &ObjectName,
        content: Bytes,
        replaces: Option<&Generation>,
    ) -> Result<ObjectMeta> {
        let checksum = Checksum::of(&content);
        let mark = new_mark();
        let write = Write { action, name, mark: &mark, replaces };
        let answer = write::put(&self.bucket, &self.key(name), &write, content.into(), checksum).await;
        settled(&write, answer, self.look(name, checksum)).await
    }

    /// Creates an object of a stream.
    async fn put_stream(
        &self,
        action: Action,
        name: &ObjectName,
        content: impl Stream<Item = Result<Bytes>>,
        expected: Option<Checksum>,
        contradicted: impl Fn() -> StorageError,
    ) -> Result<ObjectMeta> {
        let mark = new_mark();
        let write = Write { action, name, mark: &mark, replaces: None };
        let key = self.key(name);
        let (checksum, answer) =
            write::stream(&self.bucket, &key, &write, content, expected, contradicted).await?;
        settled(&write, answer, self.look(name, checksum)).await
    }

    /// What the name holds now, for [`settled`]: where the object is the one that was written, `sent` is its checksum.
    async fn look(&self, name: &ObjectName, sent: Checksum) -> Result<Option<settle::Found>> {
        let found = read::head(&self.bucket, &self.key(name), name.as_str()).await?;
        Ok(found.as_ref().map(Found::of).map(|found| settle::Found {
            meta: ObjectMeta {
                name: name.clone(),
                generation: found.generation,
                size_bytes: found.size_bytes,
                crc32c: found.crc32c.or(Some(sent.crc32c)),
            },
            mark: found.mark,
        }))
    }

    /// The CRC32C of an object that has none beside it: what was written or read here, or else the object is read.
    async fn computed_crc32c(&self, name: &ObjectName, found: &Found) -> Result<u32> {
        let known = self.computed().get(&(name.clone(), found.generation.clone())).copied();
        if let Some(crc32c) = known {
            return Ok(crc32c);
        }
        let key = self.key(name);
        let Found { generation, size_bytes, .. } = found;
        let read = read::checksum(&self.bucket, &key, name.as_str(), generation, *size_bytes).await?;
        self.remember(name, generation, read.crc32c);
        Ok(read.crc32c)
    }

    fn remember(&self, name: &ObjectName, generation: &Generation, crc32c: u32) {
        self.computed().insert((name.clone(), generation.clone()), crc32c);
    }

    fn computed(&self) -> std::sync::MutexGuard<'_, HashMap<(ObjectName, Generation), u32>> {
        self.computed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for S3Store {
    fn mutation_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn compose_limit(&self) -> Option<usize> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn generations_are_digests(&self) -> bool {
        true
    }

    fn deletes_at_once(&self) -> NonZeroUsize {
        DELETES_AT_ONCE
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        let Some(found) = read::head(&self.bucket, &self.key(name), name.as_str()).await? else {
            return Ok(None);
        };
        let found = Found::of(&found);
        let crc32c = match found.crc32c {
            Some(crc32c) => crc32c,
            None => self.computed_crc32c(name, &found).await?,
        };
        let Found { generation, size_bytes, .. } = found;
        Ok(Some(ObjectMeta { name: name.clone(), generation, size_bytes, crc32c: Some(crc32c) }))
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let key = self.key(name);
        let Some((found, content)) = read::get(&self.bucket, &key, name.as_str(), limit_bytes).await? else {
            return Ok(None);
        };
        if found.size_bytes > limit_bytes {
            return Err(StorageError::too_large(name, found.size_bytes, limit_bytes));
        }
        let checksum = Checksum::of(&content);
        if found.crc32c.is_some_and(|told| told != checksum.crc32c) {
            return Err(contradicted(Action::Read, name));
        }
        let meta = ObjectMeta {
            name: name.clone(),
            generation: found.generation,
            size_bytes: checksum.size_bytes,
            crc32c: Some(checksum.crc32c),
        };
        Ok(Some((meta, content)))
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        read::read_range(&self.bucket, &self.key(name), name.as_str(), generation, range).await
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        self.put(Action::Create, name, content, None).await
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        self.put(Action::Replace, name, content, Some(generation)).await
    }

    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        let failed = |answer: &std::io::Error| StorageError::io(Action::Read, source.display(), answer);
        let file = tokio::fs::File::open(source).await.map_err(|answer| failed(&answer))?;
        let content = stream::try_unfold(file, |mut file| async move {
            let mut chunk = bytes::BytesMut::with_capacity(FILE_CHUNK_BYTES);
            let read = file.read_buf(&mut chunk).await?;
            Ok((read > 0).then(|| (chunk.freeze(), file)))
        })
        .map_err(|answer| failed(&answer));
        let another = || contradicted(Action::Read, source.display());
        self.put_stream(Action::Create, name, content, Some(checksum), another).await
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        list::page(&self.bucket, &self.prefix, prefix, start_after).await
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        if sources.is_empty() {
            return Err(StorageError::wrong_source_count(target, sources.len()));
        }
        let content = compose::content(&self.bucket, &self.prefix, sources);
        let unexpected = || contradicted(Action::Compose, target);
        let composed = self.put_stream(Action::Compose, target, content, None, unexpected).await?;
        if let Some(crc32c) = composed.crc32c {
            self.remember(target, &composed.generation, crc32c);
        }
        Ok(composed)
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        delete::delete(&self.bucket, &self.prefix, name, generation).await
    }

    async fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        let mut result = Ok(());
        for some in objects.chunks(DELETES_AT_ONCE.get()) {
            result = result.and(delete::delete_all(&self.bucket, &self.prefix, some).await);
        }
        result
    }
}

fn contradicted(action: Action, object: impl std::fmt::Display) -> StorageError {
    StorageError::new(
        ErrorKind::Damaged,
        action,
        object,
        "its content contradicts its checksum",
        "make sure that nobody else writes to it",
    )
}
