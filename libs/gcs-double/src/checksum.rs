//! Checksums of content in the forms in which they travel, and what a client expects of them.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::bucket::Refusal;

/// The CRC32C of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crc32c(pub(crate) u32);

/// The MD5 of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Md5(pub(crate) [u8; 16]);

/// The checksums that the service keeps of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksums {
    /// Of every object.
    pub(crate) crc32c: Crc32c,
    /// Of none that was composed.
    pub(crate) md5: Option<Md5>,
}

/// The checksums that a client says its upload has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExpectedChecksums {
    /// Where it said one.
    pub(crate) crc32c: Option<Crc32c>,
    /// Where it said one.
    pub(crate) md5: Option<Md5>,
}

impl Crc32c {
    /// Reads the base64 of four bytes, most significant first.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        Some(Self(u32::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl Md5 {
    /// Reads the base64 of sixteen bytes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }
}

impl fmt::Display for Crc32c {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&BASE64_STANDARD.encode(self.0.to_be_bytes()))
    }
}

impl fmt::Display for Md5 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&BASE64_STANDARD.encode(self.0))
    }
}

impl ExpectedChecksums {
    /// What both say; what `later` says wins.
    pub(crate) fn and(self, later: Self) -> Self {
        Self { crc32c: later.crc32c.or(self.crc32c), md5: later.md5.or(self.md5) }
    }

    /// Refuses a content that is not the one that was announced.
    pub(crate) fn check(self, calculated: &Checksums) -> Result<(), Refusal> {
        if let Some(provided) = self.crc32c.filter(|provided| *provided != calculated.crc32c) {
            return Err(Refusal::Crc32cMismatch { provided, calculated: calculated.crc32c });
        }
        match (self.md5, calculated.md5) {
            (Some(provided), Some(calculated)) if provided != calculated => {
                Err(Refusal::Md5Mismatch { provided, calculated })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_read_back_as_they_are_written() {
        // From the documentation of the service: an object that holds "hello world".
        let crc32c = Crc32c(crc32c::crc32c(b"hello world"));
        assert_eq!(crc32c.to_string(), "yZRlqg==");
        assert_eq!(Crc32c::parse("yZRlqg=="), Some(crc32c));
        let md5 = Md5(md5::compute(b"hello world").0);
        assert_eq!(md5.to_string(), "XrY7u+Ae7tCTyyK7j1rNww==");
        assert_eq!(Md5::parse("XrY7u+Ae7tCTyyK7j1rNww=="), Some(md5));
        assert_eq!((Crc32c::parse("AAAA"), Md5::parse("%")), (None, None));
    }

    #[test]
    fn only_an_announced_checksum_that_differs_is_refused() {
        let calculated = Checksums { crc32c: Crc32c(1), md5: Some(Md5([1; 16])) };
        let composed = Checksums { md5: None, ..calculated };
        let expected = |crc32c, md5| ExpectedChecksums { crc32c, md5 };
        let wrong = Some(Md5([2; 16]));
        assert!(expected(None, None).check(&calculated).is_ok());
        assert!(expected(Some(Crc32c(1)), Some(Md5([1; 16]))).check(&calculated).is_ok());
        assert!(expected(Some(Crc32c(2)), None).check(&calculated).is_err());
        assert!(expected(None, wrong).check(&calculated).is_err());
        assert!(expected(None, wrong).check(&composed).is_ok());
    }
}
