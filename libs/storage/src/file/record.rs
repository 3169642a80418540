//! What the store keeps of an object beside its content: in `.penstock/<name>.meta`, or as an [attribute] of an uploaded
//! file.
//!
//! Content and record are two files, so a crash can come between them. A record therefore says which file it
//! describes (inode, size, modification time): a reader that has the content open knows without a lock, and without
//! reading it, whether the record belongs to it.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::attribute;
use super::folder::{Folder, is_absence};
use super::temporary::Temporary;
use crate::Result;
use crate::durable::{create_durably, sync_entry};
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::name::ObjectName;
use crate::version::FileVersion;

/// The record of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) generation: u64,
    pub(super) crc32c: u32,
    pub(super) file: FileVersion,
}

impl Record {
    /// The record that makes the file with `metadata` that generation.
    pub(super) fn new(generation: u64, crc32c: u32, metadata: &Metadata) -> Self {
        Self { generation, crc32c, file: FileVersion::from(metadata) }
    }

    /// Whether this is the record of the file with `metadata`.
    pub(super) fn describes(&self, metadata: &Metadata) -> bool {
        self.file == FileVersion::from(metadata)
    }

    pub(super) fn checksum(&self) -> Checksum {
        Checksum { size_bytes: self.file.size_bytes, crc32c: self.crc32c }
    }

    pub(super) fn meta(&self, name: &ObjectName) -> ObjectMeta {
        ObjectMeta {
            name: name.clone(),
            generation: generation(self.generation),
            size_bytes: self.file.size_bytes,
            crc32c: Some(self.crc32c),
        }
    }

    /// The record that describes `file`, which is the content of `name`. A record file goes before the attribute, which is
    /// as old as the file.
    pub(super) fn describing(folder: &Folder, name: &ObjectName, file: &File) -> Result<Option<Self>> {
        let failed = |answer: io::Error| StorageError::io(Action::Read, name, &answer);
        let metadata = file.metadata().map_err(failed)?;
        if let Some(kept) = Self::load(folder, name)?.filter(|kept| kept.describes(&metadata)) {
            return Ok(Some(kept));
        }
        Ok(attribute::get(file, &metadata).map_err(failed)?.filter(|kept| kept.describes(&metadata)))
    }

    /// The newest record of `name`, whether or not it describes `file`, which is the content now. Either can be the older
    /// one: a deletion that was cut off leaves a record file behind, and the attribute stays when one is made anew.
    pub(super) fn newest(
        folder: &Folder,
        name: &ObjectName,
        file: &File,
        metadata: &Metadata,
    ) -> Result<Option<Self>> {
        let attribute =
            attribute::get(file, metadata).map_err(|answer| StorageError::io(Action::Read, name, &answer))?;
        let kept = [Self::load(folder, name)?, attribute];
        Ok(kept.into_iter().flatten().max_by_key(|kept| kept.generation))
    }

    /// The record file of `name`, whatever it describes.
    pub(super) fn load(folder: &Folder, name: &ObjectName) -> Result<Option<Self>> {
        let path = folder.record_path(name);
        match read_if_present(&path).map_err(|answer| StorageError::io(Action::Read, name, &answer))? {
            None => Ok(None),
            Some(text) => serde_json::from_slice(&text).map(Some).map_err(|_| unreadable(&path)),
        }
    }

    /// Writes the record durably. Only under the lock.
    pub(super) fn save(&self, folder: &Folder, name: &ObjectName) -> io::Result<()> {
        save_durably(folder, &folder.record_path(name), &serde_json::to_vec(self)?)
    }
}

/// The generation that callers see for a number.
pub(super) fn generation(number: u64) -> Generation {
    Generation::new(number.to_string())
}

/// The highest generation of any object that was deleted; 0 before the first deletion. A new object starts above it,
/// so that no name ever has a generation twice.
pub(super) fn retired(folder: &Folder) -> Result<u64> {
    let path = folder.retired_path();
    match read_if_present(&path).map_err(|answer| StorageError::io(Action::Read, path.display(), &answer))? {
        None => Ok(0),
        Some(text) => serde_json::from_slice(&text).map_err(|_| unreadable(&path)),
    }
}

/// Makes sure that no object created from now on has `generation` or a lower one. Only under the lock.
pub(super) fn retire(folder: &Folder, generation: u64) -> Result<()> {
    if retired(folder)? >= generation {
        return Ok(());
    }
    let path = folder.retired_path();
    save_durably(folder, &path, generation.to_string().as_bytes())
        .map_err(|answer| StorageError::io(Action::Replace, path.display(), &answer))
}

fn save_durably(folder: &Folder, path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        create_durably(parent)?;
    }
    let staged = Temporary::create(folder)?;
    staged.file().write_all(text)?;
    staged.finish()?;
    staged.rename_to(path)?;
    sync_entry(path)
}

fn read_if_present(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(answer) if is_absence(&answer) => Ok(None),
        Err(answer) => Err(answer),
    }
}

fn unreadable(path: &Path) -> StorageError {
    StorageError::new(
        ErrorKind::Damaged,
        Action::Read,
        path.display(),
        "it is not a record of this store",
        "restore the folder from a copy, or start anew with another output folder",
    )
}
