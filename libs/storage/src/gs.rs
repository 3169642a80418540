//! Google Cloud Storage: a bucket and a prefix as a [`Store`], and an object as an [`Input`](crate::Input).
//!
//! | module | what it owns |
//! |---|---|
//! | `bucket` | [`GsBucket`]: the clients of one bucket, with their endpoints, credentials and patience |
//! | `answer` | what each answer of the service means, as one table |
//! | `object` | what the service tells of an object, and what a written one is given |
//! | `read`, `write`, `compose`, `list`, `delete` | the operations |
//! | `input` | [`GsInput`]: an object that is read by one long request |
//! | `signed` | [`GsSigner`]: URLs for others |
//!
//! Bytes go over REST, everything else over gRPC: so does the client library. A write is attempted once and then
//! settled (`settle`), since its caller repeats and paces writes; what changes nothing is repeated here a few
//! times. Every call ends within a minute, uploads within the time that their size needs.

mod answer;
mod bucket;
mod compose;
mod delete;
mod input;
mod list;
mod object;
mod read;
mod signed;
mod write;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::bucket::{GsBucket, GsSettings};
pub use self::input::GsInput;
pub use self::signed::GsSigner;
use crate::Result;
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::store::{Page, Store};

/// The service takes one write of a name per second.
const MUTATION_INTERVAL: Duration = Duration::from_secs(1);

/// How many sources the service takes in one compose.
const COMPOSE_LIMIT: usize = 32;

/// The objects of a bucket whose names start with a prefix. Clones share their connections.
#[derive(Clone, Debug)]
pub struct GsStore {
    bucket: GsBucket,
    /// Empty, or ends with `/`.
    prefix: String,
}

impl GsStore {
    /// The store below `prefix`, a path without a slash at either end; empty for the whole bucket. One object is listed,
    /// so that a missing bucket or right, or a wrong endpoint, is told now.
    pub async fn open(bucket: GsBucket, prefix: &str) -> Result<Self> {
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let store = Self { bucket, prefix };
        store.probe().await?;
        Ok(store)
    }

    /// The name of an object in the bucket.
    fn path(&self, name: &ObjectName) -> String {
        format!("{}{name}", self.prefix)
    }
}

#[async_trait]
impl Store for GsStore {
    fn mutation_interval(&self) -> Duration {
        MUTATION_INTERVAL
    }

    fn compose_limit(&self) -> Option<usize> {
        Some(COMPOSE_LIMIT)
    }

    fn is_remote(&self) -> bool {
        true
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        Ok(self.look(name).await?.map(|found| found.meta))
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        self.read_whole(name, limit_bytes).await
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        self.read_pinned(name, generation, range).await
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        self.write_bytes(name, content, None).await
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        self.write_bytes(name, content, Some(generation)).await
    }

    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        self.write_file(name, source, checksum).await
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        self.list_page(prefix, start_after).await
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        self.compose_objects(target, sources).await
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        self.delete_generation(name, generation).await
    }

    async fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        self.delete_generations(objects).await
    }
}
