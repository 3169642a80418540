//! The bytes of one window on local disk. The file has no name, so a killed process leaves nothing behind.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

/// A copy of a run of the input's bytes.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    /// Where the run begins in the input.
    base: u64,
    /// Makes room for another window when this one is gone.
    _slot: OwnedSemaphorePermit,
}

impl Spool {
    pub(crate) fn new(file: File, base: u64, slot: OwnedSemaphorePermit) -> Self {
        Self { file, base, _slot: slot }
    }

    /// A file without a name on the disk of `folder`.
    pub(super) fn file(folder: &Path) -> io::Result<File> {
        tempfile::tempfile_in(folder)
    }

    /// The bytes of a line that begins at `input_offset`.
    ///
    /// Reads without leaving the runtime's thread: the file was written a moment ago and is in the page cache, where a
    /// read takes 1 to 2 µs; handing it to another thread costs ten times as much.
    pub(crate) fn read(&self, input_offset: u64, length: u32) -> io::Result<Bytes> {
        let mut line = vec![0; length as usize];
        self.file.read_exact_at(&mut line, input_offset - self.base)?;
        Ok(Bytes::from(line))
    }
}
