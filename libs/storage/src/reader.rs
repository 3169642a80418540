//! Sequential reading of an input, for passes over all of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::Result;
use crate::blocking::value_of;
use crate::input::Input;

/// Bytes a chunk: large enough that the hop to another thread does not show, small beside a memory limit.
pub const CHUNK_BYTES: u64 = 2 << 20;

/// The chunks of a range of an input, in order. While one is being used the next is being read, so at most two are in
/// memory beside those that the caller keeps.
#[derive(Debug)]
pub struct InputReader {
    input: Arc<dyn Input>,
    /// What no read was started for yet.
    rest: Range<u64>,
    /// The read ahead: one, or none at the end. Dropping the reader ends it.
    ahead: JoinSet<Result<Bytes>>,
}

impl InputReader {
    /// Reads `range` of `input` in chunks of [`CHUNK_BYTES`].
    pub fn new(input: Arc<dyn Input>, range: Range<u64>) -> Self {
        Self { input, rest: range, ahead: JoinSet::new() }
    }

    /// Reads the whole input.
    pub fn whole(input: Arc<dyn Input>) -> Self {
        let range = 0..input.size_bytes();
        Self::new(input, range)
    }

    /// The next chunk, never empty; `None` at the end, and after an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.ahead.is_empty() {
            self.read_ahead();
        }
        let Some(joined) = self.ahead.join_next().await else {
            return Ok(None);
        };
        let chunk = value_of(joined).await;
        match &chunk {
            Ok(_) => self.read_ahead(),
            Err(_) => self.rest.start = self.rest.end,
        }
        chunk.map(Some)
    }

    fn read_ahead(&mut self) {
        let end = self.rest.end.min(self.rest.start.saturating_add(CHUNK_BYTES));
        if self.rest.start < end {
            let (input, range) = (Arc::clone(&self.input), self.rest.start..end);
            self.ahead.spawn(async move { input.read(range).await });
            self.rest.start = end;
        }
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
        let bytes: Vec<u8> = (0..CHUNK_BYTES * 2 + 7).map(|index| (index % 251) as u8).collect();
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
    async fn after_an_error_the_reader_ends() {
        let (mut file, input) = input_of(b"before").await;
        file.write_all(b"and after").unwrap();
        let mut reader = InputReader::whole(input);
        assert_eq!(reader.next().await.unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(reader.next().await.unwrap(), None);
    }
}
