//! Building a content from what arrives, with its checksums.

use std::{fmt, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::task::spawn_blocking;

use super::{Content, Piece, Spool};
use crate::checksum::{Checksums, Crc32c, Md5};

/// Contents up to this size stay in memory.
const IN_MEMORY: usize = 64 << 10;

/// How many bytes are put away at once.
const BLOCK: usize = 1 << 20;

/// A content that grows.
pub(crate) struct ContentBuilder {
    spool: Arc<Spool>,
    pieces: Vec<Piece>,
    /// What arrived since the last piece.
    pending: BytesMut,
    length: u64,
    crc32c: u32,
    md5: md5::Context,
}

impl fmt::Debug for ContentBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ContentBuilder").field("length", &self.length).finish_non_exhaustive()
    }
}

impl ContentBuilder {
    pub(crate) fn new(spool: Arc<Spool>) -> Self {
        let (pieces, pending) = (Vec::new(), BytesMut::new());
        Self { spool, pieces, pending, length: 0, crc32c: 0, md5: md5::Context::new() }
    }

    /// How many bytes it has.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Takes the next bytes.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        while self.pending.len() >= BLOCK {
            let block = self.pending.split_to(BLOCK).freeze();
            self.add(block).await?;
        }
        Ok(())
    }

    /// The whole content, and its checksums.
    pub(crate) async fn finish(mut self) -> io::Result<(Content, Checksums)> {
        let rest = self.pending.split().freeze();
        self.add(rest).await?;
        let checksums = Checksums { crc32c: Crc32c(self.crc32c), md5: Some(Md5(self.md5.finalize().0)) };
        Ok((Content::of(self.pieces), checksums))
    }

    /// Adds bytes up and puts them away, on a thread that may wait for the disk where they are many.
    async fn add(&mut self, bytes: Bytes) -> io::Result<()> {
        if bytes.len() <= IN_MEMORY {
            self.crc32c = crc32c::crc32c_append(self.crc32c, &bytes);
            self.md5.consume(&bytes);
            // A copy has no spare room, unlike the buffer that the bytes arrived in.
            self.pieces.push(Piece::Memory(Bytes::copy_from_slice(&bytes)));
            return Ok(());
        }
        let (spool, crc32c, mut md5) = (Arc::clone(&self.spool), self.crc32c, self.md5.clone());
        let added = spawn_blocking(move || {
            md5.consume(&bytes);
            Ok::<_, io::Error>((spool.append(&bytes)?, crc32c::crc32c_append(crc32c, &bytes), md5))
        });
        let (stored, crc32c, md5) = added.await??;
        (self.crc32c, self.md5) = (crc32c, md5);
        self.pieces.push(Piece::Spooled(stored));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn contents_of_every_size_read_back_with_their_checksums() {
        for length in [0, 1, IN_MEMORY, IN_MEMORY + 1, BLOCK, 2 * BLOCK + 3] {
            let bytes: Vec<u8> = (0..=250).cycle().take(length).collect();
            let mut builder = ContentBuilder::new(Arc::default());
            for chunk in bytes.chunks(100_000) {
                builder.push(chunk).await.unwrap();
            }
            assert_eq!(builder.length(), length as u64);
            let (content, checksums) = builder.finish().await.unwrap();
            let mut reader = content.reader();
            let mut read = Vec::new();
            while let Some(chunk) = reader.next().await.unwrap() {
                read.extend_from_slice(&chunk);
            }
            assert!(read == bytes, "{length}");
            assert_eq!(checksums.crc32c, Crc32c(crc32c::crc32c(&bytes)));
            assert_eq!(checksums.md5, Some(Md5(md5::compute(&bytes).0)));
        }
    }
}
