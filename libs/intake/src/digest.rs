//! The digests of an input, over its exact bytes. Works beside the check of the lines, on a thread of its own.

use penstock_job::{checksum::Crc32c, identity::hex, validation::ValidatedInput};
use penstock_storage::{Checksum, Input};
use sha2::{Digest, Sha256};

use crate::{IntakeError, feed::Chunks};

/// CRC32C and SHA-256 of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digests {
    crc32c: u32,
    sha256: String,
}

impl Digests {
    /// Takes the digests of all chunks.
    pub(crate) fn of(chunks: Chunks) -> Result<Self, IntakeError> {
        let mut checksum = Checksum::default();
        let mut sha256 = Sha256::new();
        chunks.each(|chunk| {
            checksum = checksum.extended(chunk);
            sha256.update(chunk);
            Ok(())
        })?;
        Ok(Self { crc32c: checksum.crc32c, sha256: hex(&sha256.finalize()) })
    }

    /// The description of the input that these are the digests of.
    pub(crate) fn describe(self, input: &dyn Input) -> ValidatedInput {
        ValidatedInput {
            uri: input.uri().to_owned(),
            generation: input.generation().to_string(),
            size_bytes: input.size_bytes(),
            crc32c: Crc32c(self.crc32c),
            sha256: self.sha256,
        }
    }
}
