//! What is done under the lock: settle, publish, swap, and [delete](super::delete). Each is short; contents are staged
//! before.
//!
//! The order of the steps is what makes a crash between any two of them harmless:
//! * publish: record, then link. A record without content describes nothing and the next one takes its place. An
//!   uploaded file has its record in itself before.
//! * swap: the old record if it is no file, rename, then record. Content that its record does not describe gets the next
//!   generation from whoever holds the lock next, whether the swap's caller ever learned of it or not.
//! * delete: the retired generation, then the content, then the record.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::attribute;
use super::folder::{Folder, check_writable};
use super::lock::LockGuard;
use super::object::{Object, Sighting, checksum, open_content};
use super::record::{Record, retired};
use super::temporary::{Temporary, can_link};
use crate::Result;
use crate::durable::{create_durably, sync_entry};
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;

/// A folder while its lock is held.
#[derive(Debug)]
pub(super) struct LockedFolder<'a> {
    pub(super) folder: &'a Folder,
    _guard: &'a LockGuard,
}

impl<'a> LockedFolder<'a> {
    pub(super) fn new(folder: &'a Folder, guard: &'a LockGuard) -> Self {
        Self { folder, _guard: guard }
    }

    /// The object with a record that describes it. Where a crash or a foreign hand left none, one is made: the same
    /// generation if the content is what the record says, the next one otherwise.
    pub(super) fn settled(&self, name: &ObjectName) -> Result<Option<Object>> {
        match Object::sight(self.folder, name)? {
            Sighting::Absent => return Ok(None),
            Sighting::Settled(object) => return Ok(Some(object)),
            Sighting::Unsettled => {}
        }
        let Some(file) = open_content(self.folder, name)? else {
            return Ok(None);
        };
        let failed = |answer: io::Error| StorageError::io(Action::Read, name, &answer);
        let metadata = file.metadata().map_err(failed)?;
        let found = checksum(&file).map_err(failed)?;
        let generation = match Record::newest(self.folder, name, &file, &metadata)? {
            Some(record) if record.checksum() == found => record.generation,
            Some(record) => record.generation + 1,
            None => retired(self.folder)? + 1,
        };
        let record = Record::new(generation, found.crc32c, &metadata);
        record.save(self.folder, name).map_err(failed)?;
        Ok(Some(Object::new(name.clone(), file, record)))
    }

    /// Makes the finished file `from` the object, by `link()`, if there is none.
    pub(super) fn publish(&self, name: &ObjectName, from: &Path, checksum: Checksum) -> Result<ObjectMeta> {
        check_writable(Action::Create, name)?;
        let failed = |answer: io::Error| StorageError::io(Action::Create, name, &answer);
        let target = self.folder.content_path(name);
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Ok(_) => return Err(StorageError::exists(Action::Create, name)),
            Err(answer) if answer.kind() == io::ErrorKind::NotFound => {}
            Err(answer) => return Err(failed(answer)),
        }
        if let Some(parent) = target.parent() {
            create_durably(parent).map_err(failed)?;
        }
        let file = File::open(from).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let record = Record::new(retired(self.folder)? + 1, checksum.crc32c, &metadata);
        if attribute::get(&file, &metadata).map_err(failed)?.as_ref() != Some(&record) {
            record.save(self.folder, name).map_err(failed)?;
        }
        fs::hard_link(from, &target).and_then(|()| sync_entry(&target)).map_err(failed)?;
        Ok(record.meta(name))
    }

    /// Puts `content` in the place of the object, if that has the generation `expected`.
    pub(super) fn swap(
        &self,
        name: &ObjectName,
        content: Temporary,
        checksum: Checksum,
        expected: &Generation,
    ) -> Result<ObjectMeta> {
        let failed = |answer: io::Error| StorageError::io(Action::Replace, name, &answer);
        let current = self
            .settled(name)?
            .filter(|object| object.generation() == *expected)
            .ok_or_else(|| StorageError::changed(Action::Replace, name))?;
        self.file_record(&current)?;
        let target = self.folder.content_path(name);
        let metadata = content.file().metadata().map_err(failed)?;
        let record = Record::new(current.generation_number() + 1, checksum.crc32c, &metadata);
        content.rename_to(&target).and_then(|()| sync_entry(&target)).map_err(failed)?;
        record.save(self.folder, name).map_err(failed)?;
        Ok(record.meta(name))
    }

    /// Gives an object that is its own record a record file: for what takes its place, should that be cut off.
    fn file_record(&self, object: &Object) -> Result<()> {
        if Record::load(self.folder, object.name())?.as_ref() == Some(object.record()) {
            return Ok(());
        }
        let saved = object.record().save(self.folder, object.name());
        saved.map_err(|answer| StorageError::io(Action::Replace, object.name(), &answer))
    }
}

/// Makes the file at `source` durable, with its record. Returns a copy of it where it cannot be linked into the folder,
/// because it is on another file system or belongs to somebody else.
pub(super) fn prepare_upload(
    folder: &Folder,
    source: &Path,
    expected: Checksum,
) -> Result<Option<Temporary>> {
    let failed = |answer: io::Error| StorageError::io(Action::Read, source.display(), &answer);
    let mut file = File::open(source).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let size_bytes = metadata.size();
    if size_bytes != expected.size_bytes {
        return Err(StorageError::new(
            ErrorKind::Damaged,
            Action::Read,
            source.display(),
            format!("it has {size_bytes} bytes instead of {}", expected.size_bytes),
            "make sure that nobody else writes to it",
        ));
    }
    let generation = retired(folder)? + 1;
    let finish = |file: &File| {
        attribute::set(file, &Record::new(generation, expected.crc32c, &file.metadata()?));
        file.sync_all()
    };
    let refused = |answer: io::Error| StorageError::io(Action::Create, folder.root().display(), &answer);
    if can_link(folder, source).map_err(refused)? {
        finish(&file).map_err(failed)?;
        return Ok(None);
    }
    let copy = Temporary::create(folder).map_err(refused)?;
    let mut target: &File = copy.file();
    io::copy(&mut file, &mut target).and_then(|_| finish(copy.file())).map_err(refused)?;
    Ok(Some(copy))
}

#[cfg(test)]
mod tests {
    use super::super::lock::FolderLock;
    use super::*;

    #[tokio::test]
    async fn what_replaces_an_uploaded_file_has_another_generation_even_if_it_is_cut_off() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        let guard = FolderLock::new(&folder).acquire().await.unwrap();
        let locked = LockedFolder::new(&folder, &guard);
        let name = ObjectName::from_static("part");
        let source = root.path().join("source");
        fs::write(&source, "1").unwrap();
        prepare_upload(&folder, &source, Checksum::of(b"1")).unwrap();
        locked.publish(&name, &source, Checksum::of(b"1")).unwrap();
        let uploaded = locked.settled(&name).unwrap().unwrap();
        assert_eq!(Record::load(&folder, &name).unwrap(), None);

        locked.file_record(&uploaded).unwrap();
        Temporary::holding(&folder, b"2").unwrap().rename_to(&folder.content_path(&name)).unwrap();
        let replacing = locked.settled(&name).unwrap().unwrap();
        assert_eq!(replacing.generation_number(), uploaded.generation_number() + 1);
    }
}
