//! The bytes of one window on local disk. The file has no name, so a killed process leaves nothing behind.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Mutex, TryLockError},
};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

/// Bytes that are read at once where lines are asked for one after the other.
const READ_AHEAD: u64 = 64 << 10;
/// A line that begins at most so far behind the bytes read so far continues them.
const LARGEST_GAP: u64 = READ_AHEAD / 4;

/// A copy of a run of the input's bytes.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    /// Where the run begins in the input.
    base: u64,
    ahead: Mutex<Ahead>,
    /// Makes room for another window when this one is gone.
    _slot: OwnedSemaphorePermit,
}

/// What was read ahead.
#[derive(Debug, Default)]
struct Ahead {
    start: u64,
    bytes: Vec<u8>,
}

impl Spool {
    pub(crate) fn new(file: File, base: u64, slot: OwnedSemaphorePermit) -> Self {
        Self { file, base, ahead: Mutex::default(), _slot: slot }
    }

    /// A file without a name on the disk of `folder`.
    pub(super) fn file(folder: &Path) -> io::Result<File> {
        tempfile::tempfile_in(folder)
    }

    /// The bytes of a line that begins at `input_offset`.
    ///
    /// Reads without leaving the runtime's thread: the file was written a moment ago and is in the page cache, where a
    /// read takes 1 to 2 µs; handing it to another thread costs ten times as much. Most lines are asked for in the order
    /// of the file, so one such read serves a hundred of them.
    pub(crate) fn read(&self, input_offset: u64, length: u32) -> io::Result<Bytes> {
        let start = input_offset - self.base;
        let mut ahead = match self.ahead.try_lock() {
            Ok(ahead) => ahead,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread reads ahead; waiting for it would take longer than a read.
            Err(TryLockError::WouldBlock) => return self.read_alone(start, length),
        };
        if let Some(line) = ahead.line(start, length) {
            return Ok(Bytes::copy_from_slice(line));
        }
        if !ahead.is_continued_by(start) {
            let line = self.read_alone(start, length)?;
            // A line sent again stands far back, and those behind it have been sent.
            if start > ahead.start {
                *ahead = Ahead { start: start + u64::from(length), bytes: Vec::new() };
            }
            return Ok(line);
        }
        let rest = self.file.metadata()?.len().saturating_sub(start);
        let wanted = READ_AHEAD.max(length.into()).min(rest.max(length.into()));
        let mut bytes = std::mem::take(&mut ahead.bytes);
        bytes.resize(usize::try_from(wanted).map_err(io::Error::other)?, 0);
        self.file.read_exact_at(&mut bytes, start)?;
        let line = Bytes::copy_from_slice(&bytes[..length as usize]);
        // A line of megabytes is read once, and is not to be kept twice.
        if wanted <= READ_AHEAD {
            *ahead = Ahead { start, bytes };
        } else {
            *ahead = Ahead { start: start + wanted, bytes: Vec::new() };
        }
        Ok(line)
    }

    fn read_alone(&self, start: u64, length: u32) -> io::Result<Bytes> {
        let mut line = vec![0; length as usize];
        self.file.read_exact_at(&mut line, start)?;
        Ok(Bytes::from(line))
    }
}

impl Ahead {
    fn line(&self, start: u64, length: u32) -> Option<&[u8]> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(length as usize)?)
    }

    fn is_continued_by(&self, start: u64) -> bool {
        let end = self.start + self.bytes.len() as u64;
        (self.start..=end + LARGEST_GAP).contains(&start)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tokio::sync::Semaphore;

    use super::*;

    fn spool(content: &[u8]) -> Spool {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        Spool::new(file, 1_000, Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_line_is_what_the_window_holds_in_whatever_order_it_is_asked_for(
            lengths in proptest::collection::vec(0usize..40_000, 1..30),
            order in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let content: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| at.to_le_bytes()[at % 3]).collect();
            let spool = spool(&content);
            let starts: Vec<usize> = lengths
                .iter()
                .scan(0, |next, length| {
                    let start = *next;
                    *next += length;
                    Some(start)
                })
                .collect();
            let in_turn = 0..lengths.len();
            for line in in_turn.chain(order.iter().map(|index| index.index(lengths.len()))) {
                let (start, length) = (starts[line], lengths[line]);
                let read = spool.read(1_000 + start as u64, u32::try_from(length).unwrap()).unwrap();
                prop_assert_eq!(&read[..], &content[start..start + length]);
            }
        }
    }

    #[test]
    fn lines_in_turn_are_read_ahead_and_a_line_from_far_back_does_not_disturb_them() {
        let spool = spool(&vec![7; 1 << 20]);
        spool.read(1_000, 600).unwrap();
        let block = |spool: &Spool| {
            let ahead = spool.ahead.lock().unwrap();
            (ahead.start, ahead.bytes.len() as u64)
        };
        assert_eq!(block(&spool), (0, READ_AHEAD));
        spool.read(1_000 + (1 << 19), 600).unwrap();
        spool.read(1_000 + (1 << 19) + 600, 600).unwrap();
        let moved = ((1 << 19) + 600, READ_AHEAD);
        assert_eq!(block(&spool), moved, "elsewhere, from the second line on");
        spool.read(1_000, 600).unwrap();
        assert_eq!(block(&spool), moved);
    }

    #[test]
    fn a_read_behind_the_end_of_the_window_fails() {
        assert!(spool(b"short").read(1_000, 6).is_err());
    }
}
