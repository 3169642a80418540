//! The part under construction: a file in scratch that the next incarnation on this machine can read.
//!
//! Not synchronised to disk while it grows: what a killed process has written stays in the kernel, and a lost machine
//! loses its scratch folder anyway. The upload makes it durable. Everything here blocks.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use penstock_batchfile::{Ordinal, OutcomeKind};
use penstock_job::{
    OrdinalSet,
    checksum::Crc32c,
    layout::PartName,
    state::{Part, PartOutcomes},
    usage::TokensByModel,
};
use penstock_storage::{Checksum, Generation};
use tokio::time::Instant;

use crate::meter::Paid;

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
    tokens: TokensByModel,
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
    pub(super) tokens: TokensByModel,
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
            tokens: TokensByModel::default(),
            since: Instant::now(),
        })
    }

    /// Appends whole records. After a failure nothing of them counts, and the next attempt writes over what is there.
    pub(super) fn append(&mut self, records: &[u8], lines: &[(Ordinal, OutcomeKind)]) -> io::Result<()> {
        self.file.write_all_at(records, self.checksum.size_bytes)?;
        self.checksum = self.checksum.extended(records);
        for (ordinal, outcome) in lines {
            self.lines += 1;
            self.ordinals.insert(*ordinal);
            self.outcomes.count(*outcome);
        }
        Ok(())
    }

    /// What was paid for a record that was appended.
    pub(super) fn pay(&mut self, paid: &Paid) {
        self.tokens.count(&paid.model, paid.tokens);
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
        let Self { name, path, checksum, lines, ordinals, outcomes, tokens, .. } = self;
        ClosedPart { name, path, checksum, lines, ordinals, outcomes, tokens }
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

#[cfg(test)]
mod tests {
    use penstock_job::{Epoch, layout::Kind};

    use super::*;

    #[test]
    fn an_append_after_a_torn_one_leaves_the_records_whole() {
        let folder = tempfile::tempdir().unwrap();
        let name = PartName { epoch: Epoch(1), sequence: 1, kind: Kind::Results };
        let mut part = PartFile::create(folder.path(), name).unwrap();
        let line = |ordinal| [(Ordinal::new(ordinal), OutcomeKind::Succeeded)];
        part.append(b"first\n", &line(0)).unwrap();
        // What a write leaves that the disk had no room for.
        io::Write::write_all(&mut OpenOptions::new().append(true).open(&part.path).unwrap(), b"sec").unwrap();
        part.append(b"second\n", &line(1)).unwrap();
        let closed = part.close();
        let content = std::fs::read(&closed.path).unwrap();
        assert_eq!(content, b"first\nsecond\n");
        assert_eq!((closed.lines(), closed.checksum), (2, Checksum::of(&content)));
    }
}
