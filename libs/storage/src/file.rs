//! A folder as a store (`file://`), with real generations.
//!
//! | file | what it owns |
//! |---|---|
//! | `file/folder.rs` | which path an object, its record and the store's own files have; durable folders |
//! | `file/record.rs` | what the store keeps of each object: generation, checksum, and which inode they describe |
//! | `file/attribute.rs` | the record of an uploaded file, as an attribute of that file |
//! | `file/object.rs` | an object opened for reading together with its record, without a lock |
//! | `file/concatenation.rs` | the content of a composed object under construction |
//! | `file/temporary.rs` | files under construction, and the removal of those of dead processes |
//! | `file/lock.rs` | the kernel lock around each compare-and-write |
//! | `file/write.rs` | what is done under that lock: publish, swap, settle |
//! | `file/delete.rs` | deleting under that lock, many at a time |
//! | `file/list.rs` | listings in the order of names |
//!
//! This file joins them into [`FileStore`] and decides what runs under the lock and what before it: contents are
//! written and synced before, so that the lock is held for a comparison, a rename or link, and a small record.
//!
//! `.penstock/` in the root belongs to the store: `lock`, `tmp/`, `retired` (the highest generation of any deleted
//! object) and a `<name>.meta` for each object that was not uploaded as a file. Nothing below it appears in a listing.
//! Opening creates nothing.

mod attribute;
mod concatenation;
mod delete;
mod folder;
mod list;
mod lock;
mod object;
mod record;
mod temporary;
mod write;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::Result;
use crate::blocking::run_blocking;
use crate::error::{Action, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::store::{Page, Store};

use self::concatenation::{Announced, Concatenation};
use self::folder::Folder;
use self::list::LIST_PAGE;
use self::lock::FolderLock;
use self::object::{Object, Sighting};
use self::temporary::Temporary;
use self::write::LockedFolder;

/// How many blocking operations one store runs at once.
const MAX_BLOCKING_OPERATIONS: usize = 16;

/// How many objects are deleted under one hold of the lock, which others wait for: a tenth of a second, or a whole one on
/// a disk that is busy with other things. Between two holds the threads that delete come to rest.
const DELETES_AT_ONCE: NonZeroUsize = NonZeroUsize::new(2_048).unwrap();

/// A folder as a store. Any number of processes on one machine may use one folder.
#[derive(Debug)]
pub struct FileStore {
    folder: Arc<Folder>,
    lock: FolderLock,
    permits: Arc<Semaphore>,
    announced: Arc<Announced>,
}

impl FileStore {
    /// Opens the folder `root`, which the first write makes if it is not there, and removes what dead processes have
    /// left under construction.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let folder = run_blocking(move || {
            let folder = Folder::open(&root)?;
            temporary::remove_leftovers(&folder);
            Ok::<_, StorageError>(Arc::new(folder))
        })
        .await?;
        Ok(Self {
            lock: FolderLock::new(&folder),
            folder,
            permits: Arc::new(Semaphore::new(MAX_BLOCKING_OPERATIONS)),
            announced: Arc::default(),
        })
    }

    /// The folder, as an absolute path.
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    async fn run<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Folder) -> Result<T> + Send + 'static,
    {
        let _permit = self.permits.acquire().await.expect("invariant: the semaphore is never closed");
        let folder = Arc::clone(&self.folder);
        run_blocking(move || operation(&folder)).await
    }

    /// The lock travels with the operation: a caller that stops waiting does not release it early.
    async fn run_locked<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&LockedFolder<'_>) -> Result<T> + Send + 'static,
    {
        let guard = self.lock.acquire().await?;
        self.run(move |folder| operation(&LockedFolder::new(folder, &guard))).await
    }

    /// Opens an object without the lock; takes the lock only to settle one whose record does not describe it.
    async fn object(&self, name: &ObjectName) -> Result<Option<Object>> {
        let wanted = name.clone();
        match self.run(move |folder| Object::sight(folder, &wanted)).await? {
            Sighting::Absent => Ok(None),
            Sighting::Settled(object) => Ok(Some(object)),
            Sighting::Unsettled => {
                let wanted = name.clone();
                self.run_locked(move |folder| folder.settled(&wanted)).await
            }
        }
    }

    async fn pinned(&self, name: &ObjectName, generation: &Generation) -> Result<Object> {
        let object = self.object(name).await?.ok_or_else(|| StorageError::not_found(Action::Read, name))?;
        object.pinned(generation)
    }

    async fn stage(
        &self,
        action: Action,
        name: &ObjectName,
        content: Bytes,
    ) -> Result<(Temporary, Checksum)> {
        let name = name.clone();
        self.run(move |folder| {
            let staged = Temporary::holding(folder, &content)
                .map_err(|answer| StorageError::io(action, &name, &answer))?;
            Ok((staged, Checksum::of(&content)))
        })
        .await
    }

    async fn publish(&self, name: &ObjectName, content: Temporary, checksum: Checksum) -> Result<ObjectMeta> {
        let name = name.clone();
        self.run_locked(move |folder| folder.publish(&name, content.path(), checksum)).await
    }
}

#[async_trait]
impl Store for FileStore {
    fn mutation_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn compose_limit(&self) -> Option<usize> {
        None
    }

    fn deletes_at_once(&self) -> NonZeroUsize {
        DELETES_AT_ONCE
    }

    async fn head(&self, name: &ObjectName) -> Result<Option<ObjectMeta>> {
        Ok(self.object(name).await?.map(|object| object.meta()))
    }

    async fn get(&self, name: &ObjectName, limit_bytes: u64) -> Result<Option<(ObjectMeta, Bytes)>> {
        let Some(object) = self.object(name).await? else {
            return Ok(None);
        };
        self.run(move |_| object.read_whole(limit_bytes)).await.map(Some)
    }

    async fn read_range(
        &self,
        name: &ObjectName,
        generation: &Generation,
        range: Range<u64>,
    ) -> Result<Bytes> {
        let object = self.pinned(name, generation).await?;
        self.run(move |_| object.read(&range)).await
    }

    async fn create(&self, name: &ObjectName, content: Bytes) -> Result<ObjectMeta> {
        let (staged, checksum) = self.stage(Action::Create, name, content).await?;
        self.publish(name, staged, checksum).await
    }

    async fn replace(
        &self,
        name: &ObjectName,
        content: Bytes,
        generation: &Generation,
    ) -> Result<ObjectMeta> {
        let (staged, checksum) = self.stage(Action::Replace, name, content).await?;
        let (name, expected) = (name.clone(), generation.clone());
        self.run_locked(move |folder| folder.swap(&name, staged, checksum, &expected)).await
    }

    /// The file becomes the object by `link()`, so nothing is copied unless it is on another file system, and its
    /// permissions stay as they are. It gets an attribute, its record, and is synced. Its checksum is taken on trust; a
    /// read of the whole object compares it.
    async fn upload(&self, name: &ObjectName, source: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        let path = source.to_owned();
        let copied = self.run(move |folder| write::prepare_upload(folder, &path, checksum)).await?;
        if let Some(copy) = copied {
            return self.publish(name, copy, checksum).await;
        }
        let (name, path) = (name.clone(), source.to_owned());
        self.run_locked(move |folder| folder.publish(&name, &path, checksum)).await
    }

    async fn list(&self, prefix: &str, start_after: Option<&str>) -> Result<Page> {
        let (prefix, start_after) = (prefix.to_owned(), start_after.map(str::to_owned));
        let (sighted, next) = self
            .run(move |folder| {
                let mut names = list::names(folder, &prefix, start_after.as_deref(), LIST_PAGE + 1)?;
                let more = names.len() > LIST_PAGE;
                names.truncate(LIST_PAGE);
                let next = names.last().filter(|_| more).map(ToString::to_string);
                let sighted = names
                    .into_iter()
                    .map(|name| Ok((Object::sight(folder, &name)?.map(|object| object.meta()), name)))
                    .collect::<Result<Vec<_>>>()?;
                Ok((sighted, next))
            })
            .await?;
        let mut objects = Vec::with_capacity(sighted.len());
        for (sighting, name) in sighted {
            match sighting {
                Sighting::Absent => {}
                Sighting::Settled(meta) => objects.push(meta),
                Sighting::Unsettled => objects.extend(self.head(&name).await?),
            }
        }
        Ok(Page { objects, next })
    }

    async fn announce(&self, first: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<()> {
        let (announced, first, sources) = (Arc::clone(&self.announced), first.clone(), sources.to_vec());
        self.run(move |folder| announced.append(folder, &first, &sources)).await
    }

    async fn compose(&self, target: &ObjectName, sources: &[(ObjectName, Generation)]) -> Result<ObjectMeta> {
        let Some((first, _)) = sources.first() else {
            return Err(StorageError::wrong_source_count(target, 0));
        };
        let announced = self.announced.take(first);
        let announced = announced.and_then(|begun| begun.begins(sources).map(|count| (begun, count)));
        let (mut concatenation, appended) = if let Some(announced) = announced {
            announced
        } else {
            let target = target.clone();
            (self.run(move |folder| Concatenation::start(folder, &target)).await?, 0)
        };
        let mut rest = Vec::from(&sources[appended..]).into_iter();
        loop {
            // One hop to a blocking thread for all sources, unless one of them has to be settled under the lock.
            let unsettled;
            (concatenation, rest, unsettled) = self
                .run(move |folder| {
                    let unsettled = concatenation.append_settled(folder, &mut rest)?;
                    Ok((concatenation, rest, unsettled))
                })
                .await?;
            let Some((name, generation)) = unsettled else { break };
            let object = self.pinned(&name, &generation).await?;
            concatenation = self
                .run(move |_| {
                    concatenation.append(&object)?;
                    Ok(concatenation)
                })
                .await?;
        }
        let (staged, checksum) = self.run(move |_| concatenation.finish()).await?;
        self.publish(target, staged, checksum).await
    }

    async fn delete(&self, name: &ObjectName, generation: &Generation) -> Result<()> {
        self.delete_all(&[(name.clone(), generation.clone())]).await
    }

    async fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        let mut result = Ok(());
        for some in objects.chunks(DELETES_AT_ONCE.get()) {
            let some = some.to_vec();
            result = result.and(self.run_locked(move |folder| folder.delete_all(&some)).await);
        }
        result
    }
}
