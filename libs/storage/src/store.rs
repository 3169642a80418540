//! The trait that every backend implements: what the job protocol asks of object storage, and no more.
//!
//! There is no plain overwrite: each write is create-only or replaces a generation that the caller has seen.
//! The laws behind the signatures are executable: see [`conformance`](crate::conformance).

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::Result;
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Objects in the lexicographic order of their names' bytes; `crc32c` may be unknown.
    pub objects: Vec<ObjectMeta>,
    /// What to pass as `start_after` for the next page; `None` after the last one.
    pub next: Option<String>,
}

/// Storage of one job's output: linearizable per object, read-after-write, objects appear whole.
///
/// A write whose error is [`ambiguous`](crate::StorageError::ambiguous) may have been applied or may land later; the
/// caller reads back before it decides. A future that is dropped leaves its write in the same state.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// The least time between two mutations of one name, retries included.
    fn mutation_interval(&self) -> Duration;

    /// How many sources one [`compose`](Self::compose) takes; `None`: any number.
    fn compose_limit(&self) -> Option<usize>;

    /// Whether a generation is a digest of the content, so that equal bytes written again have the generation that they
    /// had. Whoever must tell two writes apart then writes something of his own into each.
    fn generations_are_digests(&self) -> bool {
        false
    }

    /// Whether calls go over connections, each of which lives on the runtime that has made it.
    fn is_remote(&self) -> bool {
        false
    }

    /// How many objects [`delete_all`](Self::delete_all) deletes in one call to the backend; one where the backend has
    /// no such call.
    fn deletes_at_once(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// What is known of an object, `crc32c` always; `None` when there is none.
    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>>;

    /// A small object whole, with the generation that the bytes belong to; `None` when there is none. An object of
    /// more than `limit_bytes` is [`Invalid`](crate::ErrorKind::Invalid).
    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>>;

    /// Bytes of one generation. Absent: [`NotFound`](crate::ErrorKind::NotFound); another generation:
    /// [`Changed`](crate::ErrorKind::Changed); a range past the end: [`Invalid`](crate::ErrorKind::Invalid).
    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes>;

    /// Writes an object that must not exist yet; otherwise [`Exists`](crate::ErrorKind::Exists).
    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta>;

    /// Compare-and-swap: replaces the object if it still has `generation`; otherwise
    /// [`Changed`](crate::ErrorKind::Changed), also when it is gone.
    async fn replace(&self, name: &ObjectName, content: Bytes, generation: &Generation)
    -> Result<ObjectMeta>;

    /// Like [`create`](Self::create) for a large content, streamed from a local file that has `checksum` and is never
    /// written again. A source of another size is [`Damaged`](crate::ErrorKind::Damaged) and nothing is written.
    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta>;

    /// Objects whose names start with `prefix` and come after `start_after`, page by page. Contains every such object
    /// that existed when the listing began.
    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page>;

    /// Says that `sources` will follow those announced so far in a [`compose`](Self::compose) that begins with `first`; the
    /// first announcement begins with `first` itself. A hint: a backend that copies may copy now. A compose whose sources
    /// begin with the announced ones may then succeed although one of these has gone since, and an error here only means
    /// that the compose will have to copy everything.
    async fn announce(&self, first: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<()> {
        let _ = (first, sources);
        Ok(())
    }

    /// Writes, create-only, the concatenation of `sources` at these generations. No source, more sources than
    /// [`compose_limit`](Self::compose_limit): [`Invalid`](crate::ErrorKind::Invalid); a source that is absent or has
    /// another generation: as in [`read_range`](Self::read_range).
    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta>;

    /// Deletes one generation. An absent object is success; another generation is
    /// [`Changed`](crate::ErrorKind::Changed).
    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()>;

    /// Deletes objects, each as [`delete`](Self::delete) does. One that cannot be deleted keeps no other from it; the
    /// error is that of the first such one.
    async fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        let mut result = Ok(());
        for (name, generation) in objects {
            result = result.and(self.delete(name, generation).await);
        }
        result
    }
}

/// A store that is shared is one, whichever backend it is.
#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn mutation_interval(&self) -> Duration {
        (**self).mutation_interval()
    }

    fn compose_limit(&self) -> Option<usize> {
        (**self).compose_limit()
    }

    fn generations_are_digests(&self) -> bool {
        (**self).generations_are_digests()
    }

    fn is_remote(&self) -> bool {
        (**self).is_remote()
    }

    fn deletes_at_once(&self) -> NonZeroUsize {
        (**self).deletes_at_once()
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        (**self).head(name).await
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        (**self).get(name, limit_bytes).await
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        (**self).read_range(name, generation, range).await
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        (**self).create(name, content).await
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        (**self).replace(name, content, generation).await
    }

    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        (**self).upload(name, source, checksum).await
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        (**self).list(prefix, start_after).await
    }

    async fn announce(&self, first: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<()> {
        (**self).announce(first, sources).await
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        (**self).compose(target, sources).await
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        (**self).delete(name, generation).await
    }

    async fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        (**self).delete_all(objects).await
    }
}
