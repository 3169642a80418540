//! Writing: one attempt under a precondition, its CRC32C sent along, then settled.
//!
//! Contents from 16 MiB on go by a resumable upload, which the client library takes up where it broke off: nothing of
//! it is seen before its last byte. The others are one request.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicyArg};
use google_cloud_storage::streaming_source::{Payload, Seek, StreamingSource};

use super::GsStore;
use super::bucket::{a_few_attempts, answered};
use super::object::{content_type, found, number};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::settle::{MARK, Write, new_mark, settled};

/// From which size on an upload is resumable.
const RESUMABLE_BYTES: u64 = 16 << 20;

/// The slowest way to the storage that an upload has patience with, in bytes per second.
const SLOWEST_BYTES_PER_SECOND: u64 = 1 << 20;

impl GsStore {
    /// See [`Store::create`](crate::Store::create) and [`Store::replace`](crate::Store::replace).
    pub(super) async fn write_bytes(
        &self,
        name: &ObjectName,
        content: Bytes,
        replaces: Option<&Generation>,
    ) -> Result<ObjectMeta> {
        let checksum = Checksum::of(&content);
        self.write(name, content, checksum, replaces).await
    }

    /// See [`Store::upload`](crate::Store::upload).
    pub(super) async fn write_file(
        &self,
        name: &ObjectName,
        source: &Path,
        checksum: Checksum,
    ) -> Result<ObjectMeta> {
        let failed = |answer| StorageError::io(Action::Read, source.display(), &answer);
        let file = tokio::fs::File::open(source).await.map_err(failed)?;
        let size_bytes = file.metadata().await.map_err(failed)?.len();
        if size_bytes != checksum.size_bytes {
            return Err(StorageError::new(
                ErrorKind::Damaged,
                Action::Read,
                source.display(),
                format!("it has {size_bytes} bytes where {} were written", checksum.size_bytes),
                "make sure that nobody else writes to it",
            ));
        }
        self.write(name, file, checksum, None).await
    }

    async fn write<C, S>(
        &self,
        name: &ObjectName,
        content: C,
        checksum: Checksum,
        replaces: Option<&Generation>,
    ) -> Result<ObjectMeta>
    where
        C: Into<Payload<S>>,
        S: StreamingSource + Seek + Send + Sync + 'static,
    {
        let action = if replaces.is_some() { Action::Replace } else { Action::Create };
        let condition = match replaces {
            None => 0,
            Some(generation) => number(generation).ok_or_else(|| StorageError::changed(action, name))?,
        };
        let mark = new_mark();
        let attempts: RetryPolicyArg =
            if checksum.size_bytes < RESUMABLE_BYTES { NeverRetry.into() } else { a_few_attempts().into() };
        let request = self
            .bucket
            .storage
            .write_object(self.bucket.resource(), self.path(name), content)
            .set_if_generation_match(condition)
            .set_content_type(content_type(name))
            .set_metadata([(MARK, &mark)])
            .with_known_crc32c(checksum.crc32c)
            .with_resumable_upload_threshold(usize::try_from(RESUMABLE_BYTES).unwrap_or(usize::MAX))
            .with_retry_policy(attempts);
        // The future of an upload has 60 KB.
        let sending = Box::pin(request.send_unbuffered());
        let answer = answered(self.time_for(checksum.size_bytes), action, name, sending).await;
        let written = answer.and_then(|object| found(action, name, &object)).map(|found| found.meta);
        let write = Write { action, name, mark: &mark, replaces };
        let written = settled(&write, written, self.look(name)).await?;
        if written.checksum() == Some(checksum) {
            Ok(written)
        } else {
            Err(StorageError::new(
                ErrorKind::Damaged,
                action,
                name,
                "the storage holds other bytes than were sent",
                "make sure that nobody writes to the source of an upload",
            ))
        }
    }

    /// How long an upload of so many bytes may take. A small one is done with, its look included, within a minute.
    fn time_for(&self, size_bytes: u64) -> Duration {
        self.bucket.patience + Duration::from_secs(size_bytes / SLOWEST_BYTES_PER_SECOND)
    }
}
