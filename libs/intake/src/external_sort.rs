//! Sorts more records than memory holds: sorted runs in one unnamed file on scratch disk, merged at the end.
//!
//! What fits into the buffer never touches the disk. The file has no name, so nothing is left behind, however the
//! process ends.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    vec,
};

use crate::IntakeError;

/// Memory for reading runs back, divided among them.
const MERGE_BYTES: usize = 4 << 20;

/// Something that can be sorted on disk.
pub(crate) trait Record: Ord + Sized {
    /// Writes it.
    fn write(&self, out: &mut impl Write) -> io::Result<()>;
    /// Reads back what [`write`](Self::write) wrote.
    fn read(from: &mut impl Read) -> io::Result<Self>;
    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize;
}

impl Record for u64 {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.to_le_bytes())
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; size_of::<Self>()];
        from.read_exact(&mut bytes)?;
        Ok(Self::from_le_bytes(bytes))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Takes records in any order and gives them back in rising order.
#[derive(Debug)]
pub(crate) struct ExternalSort<R> {
    scratch: PathBuf,
    buffer_bytes: usize,
    buffer: Vec<R>,
    buffered_bytes: usize,
    runs: Option<Runs>,
}

/// Sorted runs, one behind the other in a file.
#[derive(Debug)]
struct Runs {
    file: File,
    ranges: Vec<Range<u64>>,
}

impl<R: Record> ExternalSort<R> {
    /// A sort that holds about `buffer_bytes` in memory and the rest in the folder `scratch`.
    pub(crate) fn new(scratch: &Path, buffer_bytes: usize) -> Self {
        Self { scratch: scratch.to_owned(), buffer_bytes, buffer: Vec::new(), buffered_bytes: 0, runs: None }
    }

    /// Takes a record.
    pub(crate) fn push(&mut self, record: R) -> Result<(), IntakeError> {
        self.buffered_bytes += record.memory_bytes();
        self.buffer.push(record);
        if self.buffered_bytes < self.buffer_bytes {
            return Ok(());
        }
        self.spill().map_err(|cause| scratch_error(&self.scratch, cause))
    }

    fn spill(&mut self) -> io::Result<()> {
        self.buffer.sort_unstable();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            absent => absent.insert(Runs { file: tempfile::tempfile_in(&self.scratch)?, ranges: Vec::new() }),
        };
        let mut out = BufWriter::with_capacity(1 << 18, &runs.file);
        for record in self.buffer.drain(..) {
            record.write(&mut out)?;
        }
        out.flush()?;
        drop(out);
        let start = runs.ranges.last().map_or(0, |range| range.end);
        runs.ranges.push(start..runs.file.metadata()?.len());
        self.buffered_bytes = 0;
        Ok(())
    }

    /// The records in rising order.
    pub(crate) fn finish(self) -> Result<Sorted<R>, IntakeError> {
        let scratch = self.scratch.clone();
        match self.merge() {
            Ok(merge) => Ok(Sorted { scratch, merge }),
            Err(cause) => Err(scratch_error(&scratch, cause)),
        }
    }

    fn merge(mut self) -> io::Result<Merge<R>> {
        if self.runs.is_some() {
            self.spill()?;
        }
        let Some(runs) = self.runs else {
            self.buffer.sort_unstable();
            return Ok(Merge::InMemory(self.buffer.into_iter()));
        };
        // Before the runs take memory of their own.
        drop(self.buffer);
        runs.merge()
    }
}

impl Runs {
    fn merge<R: Record>(self) -> io::Result<Merge<R>> {
        let buffer_bytes = (MERGE_BYTES / self.ranges.len()).max(1 << 12);
        let file = Arc::new(self.file);
        let mut runs: Vec<_> = self
            .ranges
            .into_iter()
            .map(|left| BufReader::with_capacity(buffer_bytes, Run { file: Arc::clone(&file), left }))
            .collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (index, run) in runs.iter_mut().enumerate() {
            heads.extend(next_of(run)?.map(|record| Reverse((record, index))));
        }
        Ok(Merge::OnDisk { heads, runs })
    }
}

fn scratch_error(folder: &Path, cause: io::Error) -> IntakeError {
    IntakeError::Scratch { folder: folder.to_owned(), cause }
}

/// Records in rising order.
#[derive(Debug)]
pub(crate) struct Sorted<R> {
    scratch: PathBuf,
    merge: Merge<R>,
}

#[derive(Debug)]
enum Merge<R> {
    InMemory(vec::IntoIter<R>),
    OnDisk {
        /// The first unread record of each run that has one, with the run's index.
        heads: BinaryHeap<Reverse<(R, usize)>>,
        runs: Vec<BufReader<Run>>,
    },
}

impl<R: Record> Iterator for Sorted<R> {
    type Item = Result<R, IntakeError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.merge {
            Merge::InMemory(records) => records.next().map(Ok),
            Merge::OnDisk { heads, runs } => {
                let Reverse((record, index)) = heads.pop()?;
                Some(match next_of(&mut runs[index]) {
                    Ok(head) => {
                        heads.extend(head.map(|record| Reverse((record, index))));
                        Ok(record)
                    }
                    Err(cause) => Err(scratch_error(&self.scratch, cause)),
                })
            }
        }
    }
}

/// The next record of a run; `None` at its end.
fn next_of<R: Record>(run: &mut BufReader<Run>) -> io::Result<Option<R>> {
    if run.buffer().is_empty() && run.get_ref().left.is_empty() { Ok(None) } else { R::read(run).map(Some) }
}

/// What is left of one run, read without moving the file's cursor.
#[derive(Debug)]
struct Run {
    file: Arc<File>,
    left: Range<u64>,
}

impl Read for Run {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.left.start)?;
        self.left.start += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_number_of_runs_comes_back_sorted(records: Vec<u64>, buffered in 1_usize..40) {
            let scratch = tempfile::tempdir().unwrap();
            let mut sort = ExternalSort::new(scratch.path(), buffered * size_of::<u64>());
            for record in &records {
                sort.push(*record).unwrap();
            }
            let sorted: Vec<u64> = sort.finish().unwrap().map(Result::unwrap).collect();
            let mut expected = records;
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
            prop_assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
        }
    }

    #[test]
    fn a_scratch_folder_that_is_not_there_is_named() {
        let mut sort = ExternalSort::new(Path::new("/nowhere/at/all"), 8);
        let error = sort.push(1).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
