//! A store in memory, for tests: the laws of a bucket without one.
//!
//! It keeps every law of [`conformance`](crate::conformance), takes at most 32 sources in one compose as `gs://`
//! does, and, like that, never gives a generation twice, whatever the name.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::store::{Page, Store};

/// Sources of one compose, as on `gs://`.
const COMPOSE_LIMIT: usize = 32;

/// Objects a page: few, so that tests turn pages.
const LIST_PAGE: usize = 50;

/// A store in memory. Clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    objects: Arc<Mutex<Objects>>,
}

#[derive(Debug, Default)]
struct Objects {
    last_generation: u64,
    by_name: BTreeMap<String, Object>,
    interval: Duration,
    /// When each name changed last, where there is an interval.
    changed: BTreeMap<String, Instant>,
    /// The names of changes that came too soon.
    too_soon: Vec<String>,
}

#[derive(Clone, Debug)]
struct Object {
    meta: ObjectMeta,
    content: Bytes,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store in which a name changes at most once in an `interval`, as `gs://` has it; what comes too soon is
    /// [`Unavailable`](ErrorKind::Unavailable).
    pub fn changing_once_in(interval: Duration) -> Self {
        let store = Self::new();
        store.objects().interval = interval;
        store
    }

    /// The names whose changes came too soon, in their order.
    pub fn too_soon(&self) -> Vec<String> {
        self.objects().too_soon.clone()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    fn get(&self, name: &ObjectName) -> Option<&Object> {
        self.by_name.get(name.as_str())
    }

    fn pinned(&self, action: Action, name: &ObjectName, generation: &Generation) -> Result<&Object> {
        let object = self.get(name).ok_or_else(|| StorageError::not_found(action, name))?;
        if object.meta.generation == *generation {
            Ok(object)
        } else {
            Err(StorageError::changed(action, name))
        }
    }

    fn create(&mut self, action: Action, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        match self.get(name) {
            Some(_) => Err(StorageError::exists(action, name)),
            None => self.put(action, name, content),
        }
    }

    /// Notes that a name changes now.
    fn change(&mut self, action: Action, name: &ObjectName) -> Result<()> {
        if self.interval.is_zero() {
            return Ok(());
        }
        let now = Instant::now();
        match self.changed.get(name.as_str()) {
            Some(last) if now < *last + self.interval => {
                self.too_soon.push(name.to_string());
                Err(StorageError::new(
                    ErrorKind::Unavailable,
                    action,
                    name,
                    "it changes too often",
                    "wait before it is changed again",
                ))
            }
            _ => {
                self.changed.insert(name.to_string(), now);
                Ok(())
            }
        }
    }

    fn put(&mut self, action: Action, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        self.change(action, name)?;
        self.last_generation += 1;
        let checksum = Checksum::of(&content);
        let meta = ObjectMeta {
            name: name.clone(),
            generation: Generation::new(self.last_generation.to_string()),
            size_bytes: checksum.size_bytes,
            crc32c: Some(checksum.crc32c),
        };
        self.by_name.insert(name.to_string(), Object { meta: meta.clone(), content });
        Ok(meta)
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn mutation_interval(&self) -> Duration {
        self.objects().interval
    }

    fn compose_limit(&self) -> Option<usize> {
        Some(COMPOSE_LIMIT)
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        Ok(self.objects().get(name).map(|object| object.meta.clone()))
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let Some(Object { meta, content }) = self.objects().get(name).cloned() else {
            return Ok(None);
        };
        if meta.size_bytes > limit_bytes {
            return Err(StorageError::too_large(name, meta.size_bytes, limit_bytes));
        }
        Ok(Some((meta, content)))
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        let objects = self.objects();
        let Object { meta, content } = objects.pinned(Action::Read, name, generation)?;
        let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        bounds
            .filter(|(start, end)| start <= end && *end <= content.len())
            .map(|(start, end)| content.slice(start..end))
            .ok_or_else(|| StorageError::past_the_end(name, &range, meta.size_bytes))
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        self.objects().create(Action::Create, name, content)
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        let mut objects = self.objects();
        match objects.get(name) {
            Some(object) if object.meta.generation == *generation => {
                objects.put(Action::Replace, name, content)
            }
            _ => Err(StorageError::changed(Action::Replace, name)),
        }
    }

    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        let content = tokio::fs::read(source)
            .await
            .map_err(|answer| StorageError::io(Action::Read, source.display(), &answer))?;
        if Checksum::of(&content) != checksum {
            return Err(StorageError::new(
                ErrorKind::Damaged,
                Action::Read,
                source.display(),
                "its content contradicts its checksum",
                "make sure that nobody else writes to it",
            ));
        }
        self.create(name, content.into()).await
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        let objects = self.objects();
        let after = match start_after {
            Some(name) if name >= prefix => Bound::Excluded(name),
            _ => Bound::Included(prefix),
        };
        let mut found = objects
            .by_name
            .range::<str, _>((after, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(prefix))
            .map(|(_, object)| ObjectMeta { crc32c: None, ..object.meta.clone() });
        let page: Vec<_> = found.by_ref().take(LIST_PAGE).collect();
        let next = found.next().and_then(|_| page.last()).map(|last| last.name.to_string());
        Ok(Page { objects: page, next })
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        if sources.is_empty() || sources.len() > COMPOSE_LIMIT {
            return Err(StorageError::wrong_source_count(target, sources.len()));
        }
        let mut objects = self.objects();
        let contents = sources
            .iter()
            .map(|(name, generation)| Ok(objects.pinned(Action::Read, name, generation)?.content.clone()))
            .collect::<Result<Vec<_>>>()?;
        objects.create(Action::Compose, target, contents.concat().into())
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        let mut objects = self.objects();
        match objects.get(name) {
            None => Ok(()),
            Some(object) if object.meta.generation != *generation => {
                Err(StorageError::changed(Action::Delete, name))
            }
            Some(_) => {
                objects.change(Action::Delete, name)?;
                objects.by_name.remove(name.as_str());
                Ok(())
            }
        }
    }
}
