//! An object opened for reading, together with the record that describes it. Needs no lock and writes nothing.
//!
//! The content is opened before its record is read. As long as it is open its inode belongs to no other file, so a
//! record that describes it was made for exactly these bytes, whatever writers do meanwhile.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use super::folder::{Folder, is_absence};
use super::record::{Record, generation};
use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::generation::{Checksum, Generation, ObjectMeta};
use crate::input::read_exactly;
use crate::name::ObjectName;

/// How much is read at once where a whole file is summed.
const CHUNK_BYTES: usize = 1 << 20;

/// What a look without the lock finds.
#[derive(Debug)]
pub(super) enum Sighting<T> {
    /// No object of this name.
    Absent,
    /// The object, with its record.
    Settled(T),
    /// Content without a record that describes it: a write is under way or was cut off. Look again under the lock.
    Unsettled,
}

impl<T> Sighting<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Sighting<U> {
        match self {
            Self::Absent => Sighting::Absent,
            Self::Settled(value) => Sighting::Settled(change(value)),
            Self::Unsettled => Sighting::Unsettled,
        }
    }
}

/// One generation of one object, open.
#[derive(Debug)]
pub(super) struct Object {
    name: ObjectName,
    file: File,
    record: Record,
}

impl Object {
    pub(super) fn new(name: ObjectName, file: File, record: Record) -> Self {
        Self { name, file, record }
    }

    /// Looks for an object.
    pub(super) fn sight(folder: &Folder, name: &ObjectName) -> Result<Sighting<Self>> {
        let Some(file) = open_content(folder, name)? else {
            return Ok(Sighting::Absent);
        };
        Ok(match Record::describing(folder, name, &file)? {
            Some(record) => Sighting::Settled(Self::new(name.clone(), file, record)),
            None => Sighting::Unsettled,
        })
    }

    pub(super) fn meta(&self) -> ObjectMeta {
        self.record.meta(&self.name)
    }

    pub(super) fn name(&self) -> &ObjectName {
        &self.name
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    pub(super) fn generation(&self) -> Generation {
        generation(self.record.generation)
    }

    pub(super) fn generation_number(&self) -> u64 {
        self.record.generation
    }

    /// The object if it has that generation.
    pub(super) fn pinned(self, generation: &Generation) -> Result<Self> {
        if self.generation() == *generation {
            Ok(self)
        } else {
            Err(StorageError::changed(Action::Read, &self.name))
        }
    }

    /// Shows the whole content, one `chunk` after the other; its checksum, which is not compared yet.
    pub(super) fn read_through(
        &self,
        chunk: &mut [u8],
        show: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Checksum> {
        read_through(&self.file, chunk, show)
    }

    pub(super) fn read(&self, range: &Range<u64>) -> Result<Bytes> {
        read_exactly(&self.file, range, self.record.checksum().size_bytes, self.name.as_str())
    }

    /// The whole content, compared with its checksum.
    pub(super) fn read_whole(&self, limit_bytes: u64) -> Result<(ObjectMeta, Bytes)> {
        let size_bytes = self.record.checksum().size_bytes;
        if size_bytes > limit_bytes {
            return Err(StorageError::too_large(&self.name, size_bytes, limit_bytes));
        }
        let bytes = self.read(&(0..size_bytes))?;
        self.check(Checksum::of(&bytes))?;
        Ok((self.meta(), bytes))
    }

    /// Compares what a read of the whole content found with the record.
    pub(super) fn check(&self, found: Checksum) -> Result<()> {
        if found == self.record.checksum() {
            return Ok(());
        }
        Err(StorageError::new(
            ErrorKind::Damaged,
            Action::Read,
            &self.name,
            "its content contradicts its checksum",
            "restore it from a copy, and look at the health of the disk",
        ))
    }
}

/// The file of an object; `None` where there is none, also where a folder has that name.
pub(super) fn open_content(folder: &Folder, name: &ObjectName) -> Result<Option<File>> {
    let failed = |answer: &io::Error| StorageError::io(Action::Read, name, answer);
    match File::open(folder.content_path(name)) {
        Ok(file) => {
            let is_file = file.metadata().map_err(|answer| failed(&answer))?.is_file();
            Ok(is_file.then_some(file))
        }
        Err(answer) if is_absence(&answer) => Ok(None),
        Err(answer) => Err(failed(&answer)),
    }
}

/// The checksum of a whole file, wherever its cursor is.
pub(super) fn checksum(file: &File) -> io::Result<Checksum> {
    read_through(file, &mut vec![0; CHUNK_BYTES], |_| Ok(()))
}

fn read_through(
    file: &File,
    chunk: &mut [u8],
    mut show: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Checksum> {
    let mut sum = Checksum::default();
    loop {
        match file.read_at(chunk, sum.size_bytes) {
            Ok(0) => return Ok(sum),
            Ok(length) => {
                show(&chunk[..length])?;
                sum = sum.extended(&chunk[..length]);
            }
            Err(answer) if answer.kind() == io::ErrorKind::Interrupted => {}
            Err(answer) => return Err(answer),
        }
    }
}
