//! The bytes of an object: a rope of pieces, each in memory or in a temporary file.
//!
//! Owns cutting and joining, which copy nothing: composing 20,000 parts joins their pieces.

mod builder;
mod reader;
mod spool;

use std::{io, ops::Range, sync::Arc};

use bytes::Bytes;

use self::spool::Stored;
pub(crate) use self::{builder::ContentBuilder, reader::ContentReader, spool::Spool};

/// The bytes of one object, which never change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pieces: Arc<[Piece]>,
    length: u64,
}

/// A stretch of bytes.
#[derive(Debug, Clone)]
enum Piece {
    Memory(Bytes),
    Spooled(Stored),
}

impl Content {
    fn of(pieces: Vec<Piece>) -> Self {
        let length = pieces.iter().map(Piece::length).sum();
        Self { pieces: pieces.into(), length }
    }

    /// How many bytes it has.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// One after another.
    pub(crate) fn concatenation<'a>(contents: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::of(contents.into_iter().flat_map(|content| content.pieces.iter().cloned()).collect())
    }

    /// A part of it; `range` lies within.
    pub(crate) fn slice(&self, range: Range<u64>) -> Self {
        let mut pieces = Vec::new();
        let mut start = 0;
        for piece in self.pieces.iter() {
            let end = start + piece.length();
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                pieces.push(piece.slice(from - start..to - start));
            }
            start = end;
        }
        Self::of(pieces)
    }

    /// All of it, read at once. Blocks where it is in files.
    pub(crate) fn whole(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(in_memory(self.length));
        for piece in self.pieces.iter() {
            match piece {
                Piece::Memory(piece) => bytes.extend_from_slice(piece),
                Piece::Spooled(stored) => bytes.extend(stored.read()?),
            }
        }
        Ok(bytes)
    }

    /// Reads it in order.
    pub(crate) fn reader(&self) -> ContentReader {
        ContentReader::new(self.pieces.iter().cloned().collect())
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self::of(vec![Piece::Memory(bytes)])
    }
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Spooled(stored) => stored.length(),
        }
    }

    fn slice(&self, range: Range<u64>) -> Self {
        match self {
            Self::Memory(bytes) => Self::Memory(bytes.slice(in_memory(range.start)..in_memory(range.end))),
            Self::Spooled(stored) => Self::Spooled(stored.slice(range)),
        }
    }
}

/// A position within bytes that are in memory.
fn in_memory(position: u64) -> usize {
    usize::try_from(position).expect("bytes in memory have positions that fit a usize")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(content: &Content) -> Vec<u8> {
        let mut reader = content.reader();
        let mut bytes = Vec::new();
        while let Some(chunk) = reader.next().await.unwrap() {
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }

    #[tokio::test]
    async fn every_cut_of_a_rope_is_the_same_cut_of_its_bytes() {
        let spool = Spool::default();
        let pieces = [&b"abc"[..], b"", b"defgh", b"i"];
        let pieces = pieces.map(|bytes| match bytes.len() {
            5 => Content::of(vec![Piece::Spooled(spool.append(bytes).unwrap())]),
            _ => Content::from(Bytes::from_static(bytes)),
        });
        let content = Content::concatenation(&pieces);
        let whole = b"abcdefghi";
        for start in 0..=whole.len() {
            for end in start..=whole.len() {
                let slice = content.slice(start as u64..end as u64);
                assert_eq!(slice.length(), (end - start) as u64);
                assert_eq!(read(&slice).await, whole[start..end], "{start}..{end}");
                assert_eq!(slice.whole().unwrap(), whole[start..end], "{start}..{end}");
            }
        }
    }
}
