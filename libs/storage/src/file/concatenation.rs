//! The content of a composed object under construction: sources, one behind the other.
//!
//! Each byte is read once. It is summed on its way from source to target, and each source's sum is compared with its
//! record, so a source that the disk has spoiled is never published. What was written is not read again: that would
//! come from the same memory that the kernel took it into. Whoever composes compares the sum with what it expects.

use std::io::Write;

use super::folder::Folder;
use super::object::{Object, Sighting};
use super::temporary::Temporary;
use crate::Result;
use crate::error::{Action, StorageError};
use crate::generation::{Checksum, Generation};
use crate::name::ObjectName;

/// How much goes from a source to the target at once: it is summed while it is in the processor's cache.
const CHUNK_BYTES: usize = 256 << 10;

/// What was appended so far.
#[derive(Debug)]
pub(super) struct Concatenation {
    target: ObjectName,
    staged: Temporary,
    checksum: Checksum,
    chunk: Vec<u8>,
}

impl Concatenation {
    /// Nothing yet.
    pub(super) fn start(folder: &Folder, target: &ObjectName) -> Result<Self> {
        let staged =
            Temporary::create(folder).map_err(|answer| StorageError::io(Action::Compose, target, &answer))?;
        let chunk = vec![0; CHUNK_BYTES];
        Ok(Self { target: target.clone(), staged, checksum: Checksum::default(), chunk })
    }

    /// Takes sources and appends them, up to one that has to be settled under the lock, which is returned.
    pub(super) fn append_settled(
        &mut self,
        folder: &Folder,
        sources: &mut impl Iterator<Item = (ObjectName, Generation)>,
    ) -> Result<Option<(ObjectName, Generation)>> {
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
            .map_err(|answer| StorageError::io(Action::Compose, &self.target, &answer))?;
        source.check(read)
    }

    /// The whole, durable.
    pub(super) fn finish(self) -> Result<(Temporary, Checksum)> {
        self.staged.finish().map_err(|answer| StorageError::io(Action::Compose, &self.target, &answer))?;
        Ok((self.staged, self.checksum))
    }
}
