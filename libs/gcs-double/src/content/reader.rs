//! Reading a content in order, by chunks.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::Piece;

/// The most bytes of a chunk.
const CHUNK: u64 = 1 << 20;

/// What is left to read.
#[derive(Debug)]
pub(crate) struct ContentReader {
    pieces: VecDeque<Piece>,
}

impl ContentReader {
    pub(super) fn new(pieces: VecDeque<Piece>) -> Self {
        Self { pieces }
    }

    /// The next chunk, which is never empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        while let Some(piece) = self.pieces.pop_front() {
            let length = piece.length();
            if length == 0 {
                continue;
            }
            if length > CHUNK {
                self.pieces.push_front(piece.slice(CHUNK..length));
            }
            return match piece.slice(0..length.min(CHUNK)) {
                Piece::Memory(bytes) => Ok(Some(bytes)),
                Piece::Spooled(stored) => {
                    let bytes = spawn_blocking(move || stored.read()).await??;
                    Ok(Some(bytes.into()))
                }
            };
        }
        Ok(None)
    }
}
