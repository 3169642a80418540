//! The header that says which part of an upload a chunk is.

use crate::bucket::Refusal;

/// What a request of an upload in chunks brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentRange {
    /// Nothing; it asks how much has arrived. With a total that has arrived, it ends the upload.
    Status { total: Option<u64> },
    /// Bytes from the first to the last, both included.
    Chunk { first: u64, last: u64, total: Option<u64> },
    /// All the bytes from here.
    Rest { first: u64 },
}

impl ContentRange {
    /// Reads the header; without one, the body is the whole content.
    pub(super) fn read(header: Option<&str>) -> Result<Self, Refusal> {
        let Some(header) = header else { return Ok(Self::Rest { first: 0 }) };
        let read = || {
            let (range, total) = header.strip_prefix("bytes ")?.split_once('/')?;
            let total = if total == "*" { None } else { Some(total.parse().ok()?) };
            if range == "*" {
                return Some(Self::Status { total });
            }
            let (first, last) = range.split_once('-')?;
            let first = first.parse().ok()?;
            if last == "*" {
                return Some(Self::Rest { first });
            }
            let last = last.parse().ok()?;
            let fits = first <= last && total.is_none_or(|total| last < total);
            fits.then_some(Self::Chunk { first, last, total })
        };
        read().ok_or_else(|| Refusal::invalid(format!("Content-Range {header:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_header_is_read() {
        let chunk = |first, last, total| Some(ContentRange::Chunk { first, last, total });
        for (header, expected) in [
            (None, Some(ContentRange::Rest { first: 0 })),
            (Some("bytes */*"), Some(ContentRange::Status { total: None })),
            (Some("bytes */0"), Some(ContentRange::Status { total: Some(0) })),
            (Some("bytes 0-9/10"), chunk(0, 9, Some(10))),
            (Some("bytes 5-9/*"), chunk(5, 9, None)),
            (Some("bytes 5-*/*"), Some(ContentRange::Rest { first: 5 })),
            (Some("bytes 0-10/10"), None),
            (Some("bytes 3-2/10"), None),
            (Some("bytes=0-9/10"), None),
            (Some("bytes 0-9"), None),
            (Some(""), None),
        ] {
            assert_eq!(ContentRange::read(header).ok(), expected, "{header:?}");
        }
    }
}
