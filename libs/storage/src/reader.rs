//! Sequential reading of an input: [`Chunks`] as a backend brings them, and [`InputReader`] that is one chunk ahead.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Result;
use crate::blocking::value_of;
use crate::input::Input;

/// Bytes of a range that is read by one call. From 1 MiB on the allocator gives a block back as soon as it is free
/// (`.cargo/config.toml`), and each new one costs the kernel its pages: a third of the time of a validation.
const RANGE_BYTES: u64 = 512 << 10;

/// The bytes of a range of an input, in order and as they come.
#[async_trait]
pub trait Chunks: Debug + Send {
    /// The next bytes, never none; `None` after the last byte of the range, and never before. After an error nothing more
    /// comes: who goes on asks the input for the [chunks](Input::chunks) of the rest.
    async fn next(&mut self) -> Result<Option<Bytes>>;
}

/// Chunks where each is a read of its own.
#[derive(Debug)]
pub(crate) struct ByRange<'a, I: ?Sized> {
    input: &'a I,
    rest: Range<u64>,
}

impl<'a, I: Input + ?Sized> ByRange<'a, I> {
    pub(crate) fn new(input: &'a I, range: Range<u64>) -> Self {
        Self { input, rest: range }
    }
}

#[async_trait]
impl<I: Input + ?Sized> Chunks for ByRange<'_, I> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let end = self.rest.end.min(self.rest.start.saturating_add(RANGE_BYTES));
        if self.rest.start >= end {
            return Ok(None);
        }
        let range = self.rest.start..end;
        // Nothing more comes if the read fails, or if nobody waits for it.
        let rest = std::mem::replace(&mut self.rest, end..end);
        let chunk = self.input.read(range).await?;
        self.rest.end = rest.end;
        Ok(Some(chunk))
    }
}

/// The chunks of a range of an input, in order. While one is being used the next is being read.
#[derive(Debug)]
pub struct InputReader {
    chunks: mpsc::Receiver<Result<Bytes>>,
    /// Dropping the reader ends it.
    reading: JoinSet<()>,
}

impl InputReader {
    /// Reads `range` of `input`.
    pub fn new(input: Arc<dyn Input>, range: Range<u64>) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let mut read = input.chunks(range);
            while let Some(chunk) = read.next().await.transpose() {
                let failed = chunk.is_err();
                if sender.send(chunk).await.is_err() || failed {
                    return;
                }
            }
        });
        Self { chunks, reading }
    }

    /// Reads the whole input.
    pub fn whole(input: Arc<dyn Input>) -> Self {
        let range = 0..input.size_bytes();
        Self::new(input, range)
    }

    /// The next chunk, never empty; `None` at the end, and after an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(chunk) = self.chunks.recv().await {
            return chunk.map(Some);
        }
        if let Some(joined) = self.reading.join_next().await {
            value_of(joined).await;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::error::ErrorKind;
    use crate::input::FileInput;

    async fn input_of(bytes: &[u8]) -> (tempfile::NamedTempFile, Arc<dyn Input>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let input = FileInput::open(file.path()).await.unwrap();
        (file, Arc::new(input))
    }

    #[tokio::test]
    async fn the_chunks_joined_are_the_range() {
        let bytes: Vec<u8> = (0..RANGE_BYTES * 2 + 7).map(|index| (index % 251) as u8).collect();
        let (_file, input) = input_of(&bytes).await;
        for (range, chunks) in [(0..bytes.len(), 3), (5..bytes.len() - 5, 2), (9..10, 1), (4..4, 0)] {
            let mut reader = InputReader::new(Arc::clone(&input), range.start as u64..range.end as u64);
            let mut found = Vec::new();
            while let Some(chunk) = reader.next().await.unwrap() {
                found.push(chunk);
            }
            assert_eq!(found.len(), chunks, "{range:?}");
            assert!(found.concat() == bytes[range.clone()], "{range:?} came out otherwise");
        }
    }

    #[tokio::test]
    async fn after_an_error_nothing_more_comes() {
        let (mut file, input) = input_of(b"before").await;
        file.write_all(b"and after").unwrap();
        let mut chunks = input.chunks(0..6);
        assert_eq!(chunks.next().await.unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(chunks.next().await.unwrap(), None);
        let mut reader = InputReader::whole(Arc::clone(&input));
        assert_eq!(reader.next().await.unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(reader.next().await.unwrap(), None);
    }
}
