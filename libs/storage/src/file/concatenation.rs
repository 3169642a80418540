//! The content of a composed object under construction: sources, one behind the other.
//!
//! Each byte is read once. It is summed on its way from source to target, and each source's sum is compared with its
//! record, so a source that the disk has spoiled is never published. What was written is not read again: that would
//! come from the same memory that the kernel took it into. Whoever composes compares the sum with what it expects.
//!
//! Sources that are announced before the compose are appended and forced to disk as they come, so that the compose has
//! little left to do. Until then nobody sees the file; it is gone when this process is.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::folder::Folder;
use super::object::{Object, Sighting};
use super::temporary::Temporary;
use crate::Result;
use crate::error::{Action, StorageError};
use crate::generation::{Checksum, Generation};
use crate::name::ObjectName;

/// How much goes from a source to the target at once: it is summed while it is in the processor's cache.
const CHUNK_BYTES: usize = 256 << 10;

/// How much of what was announced may wait to be forced to disk, which the compose then waits for: a few milliseconds'
/// work.
const UNSYNCED_BYTES: u64 = 4 << 20;

/// One source of a composed object.
pub(super) type Source = (ObjectName, Generation);

/// What was appended so far.
#[derive(Debug)]
pub(super) struct Concatenation {
    sources: Vec<Source>,
    staged: Temporary,
    checksum: Checksum,
    synced_bytes: u64,
    chunk: Vec<u8>,
}

impl Concatenation {
    /// Nothing yet.
    pub(super) fn start(folder: &Folder, target: &ObjectName) -> Result<Self> {
        let staged =
            Temporary::create(folder).map_err(|answer| StorageError::io(Action::Compose, target, &answer))?;
        let chunk = vec![0; CHUNK_BYTES];
        Ok(Self { sources: Vec::new(), staged, checksum: Checksum::default(), synced_bytes: 0, chunk })
    }

    /// How many of `sources` it begins with; `None` if it holds anything else.
    pub(super) fn begins(&self, sources: &[Source]) -> Option<usize> {
        sources.starts_with(&self.sources).then_some(self.sources.len())
    }

    /// Takes sources and appends them, up to one that has to be settled under the lock, which is returned.
    pub(super) fn append_settled(
        &mut self,
        folder: &Folder,
        sources: &mut impl Iterator<Item = Source>,
    ) -> Result<Option<Source>> {
        for (name, generation) in sources {
            match Object::sight(folder, &name)? {
                Sighting::Absent => return Err(StorageError::not_found(Action::Read, &name)),
                Sighting::Settled(object) => self.append(&object.pinned(&generation)?)?,
                Sighting::Unsettled => return Ok(Some((name, generation))),
            }
        }
        Ok(None)
    }

    /// Appends one source.
    pub(super) fn append(&mut self, source: &Object) -> Result<()> {
        let (mut target, whole) = (self.staged.file(), &mut self.checksum);
        let read = source
            .read_through(&mut self.chunk, |bytes| {
                // Once more for the whole: to join it with the source's sum takes 13 us, in which 250 kB are summed,
                // and most parts are smaller.
                *whole = whole.extended(bytes);
                target.write_all(bytes)
            })
            .map_err(|answer| StorageError::io(Action::Compose, source.name(), &answer))?;
        source.check(read)?;
        self.sources.push((source.name().clone(), source.generation()));
        Ok(())
    }

    /// Forces to disk what is much.
    fn sync_much(&mut self) -> Result<()> {
        if self.checksum.size_bytes - self.synced_bytes < UNSYNCED_BYTES {
            return Ok(());
        }
        self.staged
            .file()
            .sync_data()
            .map_err(|answer| StorageError::io(Action::Compose, self.staged.path().display(), &answer))?;
        self.synced_bytes = self.checksum.size_bytes;
        Ok(())
    }

    /// The whole, durable.
    pub(super) fn finish(self) -> Result<(Temporary, Checksum)> {
        self.staged
            .finish()
            .map_err(|answer| StorageError::io(Action::Compose, self.staged.path().display(), &answer))?;
        Ok((self.staged, self.checksum))
    }
}

/// Concatenations whose sources are announced one after the other, by the first of them.
#[derive(Debug, Default)]
pub(super) struct Announced(Mutex<BTreeMap<ObjectName, Concatenation>>);

impl Announced {
    /// The one that begins with `first`, which is the caller's from now on.
    pub(super) fn take(&self, first: &ObjectName) -> Option<Concatenation> {
        self.lock().remove(first)
    }

    /// Appends `sources` to the one that begins with `first`. One that cannot take a source is dropped; what follows it
    /// is then left to the compose.
    pub(super) fn append(&self, folder: &Folder, first: &ObjectName, sources: &[Source]) -> Result<()> {
        let begun = self.take(first);
        let begins = sources.first().is_some_and(|(name, _)| name == first);
        let mut concatenation = match begun {
            _ if begins => Concatenation::start(folder, first)?,
            Some(concatenation) => concatenation,
            None => return Ok(()),
        };
        // A source that is not settled is rare enough to be left to the compose with all that follows.
        if concatenation.append_settled(folder, &mut sources.iter().cloned())?.is_none() {
            concatenation.sync_much()?;
            self.lock().insert(first.clone(), concatenation);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectName, Concatenation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
