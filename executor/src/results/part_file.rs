//! The part under construction: a file in scratch that the next incarnation on this machine can read.
//!
//! Not synchronised to disk while it grows: what a killed process has written stays in the kernel, and a lost machine
//! loses its scratch folder anyway. The upload makes it durable. Everything here blocks.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use penstock_batchfile::{Ordinal, OutcomeKind};
use penstock_job::{
    OrdinalSet,
    layout::PartName,
    state::{Crc32c, Part, PartOutcomes},
};
use penstock_storage::{Checksum, Generation};
use tokio::time::Instant;

/// A part that still grows.
#[derive(Debug)]
pub(super) struct PartFile {
    name: PartName,
    path: PathBuf,
    file: File,
    checksum: Checksum,
    lines: u32,
    ordinals: OrdinalSet,
    outcomes: PartOutcomes,
    /// When its oldest outcome came.
    pub(super) since: Instant,
}

/// A part that will not change any more.
#[derive(Debug)]
pub(super) struct ClosedPart {
    pub(super) name: PartName,
    pub(super) path: PathBuf,
    pub(super) checksum: Checksum,
    lines: u32,
    pub(super) ordinals: OrdinalSet,
    pub(super) outcomes: PartOutcomes,
}

impl PartFile {
    pub(super) fn create(folder: &Path, name: PartName) -> io::Result<Self> {
        let path = folder.join(name.file_name());
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self {
            name,
            path,
            file,
            checksum: Checksum::default(),
            lines: 0,
            ordinals: OrdinalSet::new(),
            outcomes: PartOutcomes::default(),
            since: Instant::now(),
        })
    }

    /// Appends whole records, or nothing: after a failure the file is as long as before.
    pub(super) fn append(&mut self, records: &[u8], lines: &[(Ordinal, OutcomeKind)]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(records) {
            self.file.set_len(self.checksum.size_bytes)?;
            io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.checksum.size_bytes))?;
            return Err(error);
        }
        self.checksum = self.checksum.extended(records);
        for (ordinal, outcome) in lines {
            self.lines += 1;
            self.ordinals.insert(*ordinal);
            self.outcomes.count(*outcome);
        }
        Ok(())
    }

    pub(super) fn name(&self) -> PartName {
        self.name
    }

    pub(super) fn lines(&self) -> usize {
        self.lines as usize
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.checksum.size_bytes
    }

    pub(super) fn close(self) -> ClosedPart {
        let Self { name, path, checksum, lines, ordinals, outcomes, .. } = self;
        ClosedPart { name, path, checksum, lines, ordinals, outcomes }
    }
}

impl ClosedPart {
    pub(super) fn lines(&self) -> u64 {
        u64::from(self.lines)
    }

    /// The row of the manifest once the part is durable at `generation`.
    pub(super) fn row(&self, generation: &Generation) -> Part {
        Part {
            name: self.name,
            generation: generation.as_str().into(),
            lines: self.lines,
            size_bytes: self.checksum.size_bytes,
            crc32c: Crc32c(self.checksum.crc32c),
        }
    }
}
