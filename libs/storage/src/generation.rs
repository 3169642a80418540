//! What a store says about an object: its generation, its checksum, its size.
//!
//! It does not say how a backend makes generations; to everybody else they are opaque.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::ObjectName;

/// One state of one named object. Opaque: only equality means something, and no value comes twice for a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(String);

impl Generation {
    /// Takes over what a backend, or a record written earlier, calls this generation.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The backend's own text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Length and CRC32C of some bytes: what tells apart two objects of one name without reading them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checksum {
    /// Length in bytes.
    pub size_bytes: u64,
    /// CRC32C (Castagnoli) of the bytes.
    pub crc32c: u32,
}

impl Checksum {
    /// The checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().extended(bytes)
    }

    /// The checksum of what this one covers, followed by `bytes`.
    pub fn extended(self, bytes: &[u8]) -> Self {
        Self {
            size_bytes: self.size_bytes + bytes.len() as u64,
            crc32c: crc32c::crc32c_append(self.crc32c, bytes),
        }
    }

    /// The checksum of what this one covers, followed by what `next` covers.
    ///
    /// # Panics
    /// If `next` covers more bytes than this machine can address.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        let length = usize::try_from(next.size_bytes).expect("an object is addressable");
        Self {
            size_bytes: self.size_bytes + next.size_bytes,
            crc32c: crc32c::crc32c_combine(self.crc32c, next.crc32c, length),
        }
    }
}

/// What a store knows of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Its name below the output.
    pub name: ObjectName,
    /// The generation that the other fields belong to.
    pub generation: Generation,
    /// Length in bytes.
    pub size_bytes: u64,
    /// CRC32C of the content; `None` only in listings.
    pub crc32c: Option<u32>,
}

impl ObjectMeta {
    /// Size and CRC32C together, where both are known.
    pub fn checksum(&self) -> Option<Checksum> {
        self.crc32c.map(|crc32c| Checksum { size_bytes: self.size_bytes, crc32c })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_crc32c_and_not_another_crc() {
        assert_eq!(Checksum::of(b"123456789"), Checksum { size_bytes: 9, crc32c: 0xe306_9283 });
    }

    proptest! {
        #[test]
        fn a_checksum_taken_in_pieces_is_that_of_the_whole(bytes: Vec<u8>, cut: prop::sample::Index) {
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(Checksum::of(head).extended(tail), Checksum::of(&bytes));
            prop_assert_eq!(Checksum::of(head).followed_by(Checksum::of(tail)), Checksum::of(&bytes));
        }
    }
}
