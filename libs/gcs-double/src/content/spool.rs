//! Temporary files for bytes that are too many for memory.
//!
//! Segments have no name, so that nothing is left behind however the process ends; the room of one is free
//! again once no object needs it.

use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// When the next segment is begun.
const SEGMENT: u64 = 64 << 20;

/// Where bytes are put away.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    /// The folder of the segments; that of the system if none is named.
    folder: Option<PathBuf>,
    current: Mutex<Option<Segment>>,
}

/// The segment that is written to.
#[derive(Debug, Clone)]
struct Segment {
    file: Arc<File>,
    length: u64,
}

/// Bytes in a segment.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    file: Arc<File>,
    range: Range<u64>,
}

impl Spool {
    pub(crate) fn in_folder(folder: Option<PathBuf>) -> Self {
        Self { folder, current: Mutex::default() }
    }

    /// Puts bytes away.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<Stored> {
        let length = bytes.len() as u64;
        let (file, start) = self.reserve(length)?;
        file.write_all_at(bytes, start)?;
        Ok(Stored { file, range: start..start + length })
    }

    /// Room in a segment, which is then written without the lock.
    fn reserve(&self, length: u64) -> io::Result<(Arc<File>, u64)> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = match current.take().filter(|segment| segment.length < SEGMENT) {
            Some(segment) => segment,
            None => Segment { file: Arc::new(self.open()?), length: 0 },
        };
        let start = segment.length;
        let file = Arc::clone(&segment.file);
        *current = Some(Segment { length: start + length, ..segment });
        Ok((file, start))
    }

    fn open(&self) -> io::Result<File> {
        match &self.folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        }
    }
}

impl Stored {
    pub(super) fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub(super) fn slice(&self, range: Range<u64>) -> Self {
        let start = self.range.start;
        Self { file: Arc::clone(&self.file), range: start + range.start..start + range.end }
    }

    /// Reads all of it.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; super::in_memory(self.length())];
        self.file.read_exact_at(&mut bytes, self.range.start)?;
        Ok(bytes)
    }
}
