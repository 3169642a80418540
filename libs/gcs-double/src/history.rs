//! The history: every change of an object's content, in the order in which they were made. A witness that misses
//! nothing; it keeps every version, so it is for tests, whose buckets are small.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{bucket::Object, name::BucketName};

/// What became of a name.
#[derive(Debug, Clone)]
pub struct Change {
    bucket: BucketName,
    name: String,
    /// The version that is there since; `None` if it was deleted.
    version: Option<Arc<Object>>,
}

/// The changes of one server so far. Clones see the same ones, also when the server has ended.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Mutex<Vec<Change>>>);

impl History {
    /// Every change from the `from`th on, oldest first.
    pub fn since(&self, from: usize) -> Vec<Change> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(from..).unwrap_or_default().to_vec()
    }

    pub(crate) fn add(&self, change: Change) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    }
}

impl Change {
    pub(crate) fn new(bucket: BucketName, name: String, version: Option<Arc<Object>>) -> Self {
        Self { bucket, name, version }
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        self.bucket.as_str()
    }

    /// The name of the object.
    pub fn object(&self) -> &str {
        &self.name
    }

    /// The generation that is there since; `None` if the object was deleted.
    pub fn generation(&self) -> Option<String> {
        self.version.as_ref().map(|object| object.generation.to_string())
    }

    /// What the object holds since; `None` if it was deleted. Blocks where it is too large for memory.
    pub fn content(&self) -> io::Result<Option<Vec<u8>>> {
        self.version.as_ref().map(|object| object.content.whole()).transpose()
    }
}
