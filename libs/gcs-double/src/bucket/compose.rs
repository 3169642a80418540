//! Composing: joining objects of a bucket to one, without their bytes being copied.

use super::{Bucket, Generation, Metadata, NewObject, Preconditions, Refusal};
use crate::{
    checksum::{Checksums, Crc32c, ExpectedChecksums},
    content::Content,
    name::{BucketName, ObjectName},
};

/// The most sources of one request.
const MOST_SOURCES: usize = 32;

/// What is joined, and what is said of the result.
#[derive(Debug, Clone)]
pub(crate) struct Composition {
    pub(crate) sources: Vec<Source>,
    pub(crate) metadata: Metadata,
    pub(crate) expected: ExpectedChecksums,
}

/// An object to be joined.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) name: ObjectName,
    pub(crate) generation: Option<Generation>,
    /// The generation that must be live.
    pub(crate) generation_match: Option<i64>,
}

impl Composition {
    /// The object that it makes of the objects of a bucket.
    pub(super) fn join(self, name: &BucketName, bucket: &Bucket) -> Result<NewObject, Refusal> {
        match self.sources.len() {
            0 => return Err(Refusal::NoSources),
            count if count > MOST_SOURCES => return Err(Refusal::TooManySources { count }),
            _ => {}
        }
        let mut sources = Vec::with_capacity(self.sources.len());
        for Source { name: source, generation, generation_match } in self.sources {
            let object = bucket
                .find(name, &source, generation)
                .map_err(|_| Refusal::NoSuchSource { name: source, generation })?;
            Preconditions { generation_match, ..Preconditions::default() }.check(Some(object))?;
            sources.push(object);
        }
        let crc32c = sources.iter().fold(0, |joined, object| {
            let length = usize::try_from(object.content.length()).unwrap_or(usize::MAX);
            crc32c::crc32c_combine(joined, object.checksums.crc32c.0, length)
        });
        let components = sources.iter().map(|object| object.component_count.unwrap_or(1)).sum();
        Ok(NewObject {
            content: Content::concatenation(sources.iter().map(|object| &object.content)),
            checksums: Checksums { crc32c: Crc32c(crc32c), md5: None },
            expected: self.expected,
            metadata: self.metadata,
            component_count: Some(components),
        })
    }
}
