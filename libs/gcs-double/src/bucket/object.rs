//! One object: its content, its metadata and its versions.

use std::{collections::BTreeMap, fmt};

use super::{Moment, Refusal};
use crate::{
    checksum::{Checksums, ExpectedChecksums},
    content::Content,
    name::ObjectName,
};

/// The most bytes of an object: 5 TiB.
const LARGEST: u64 = 5 << 40;

/// Which version of an object's content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Generation(pub(crate) i64);

/// What a writer says of an object beside its content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The media type.
    pub(crate) content_type: Option<String>,
    /// How the content is encoded, such as `gzip`.
    pub(crate) content_encoding: Option<String>,
    /// How it is to be shown.
    pub(crate) content_disposition: Option<String>,
    /// Its language.
    pub(crate) content_language: Option<String>,
    /// How long it may be kept by caches.
    pub(crate) cache_control: Option<String>,
    /// The storage class, if not `STANDARD`.
    pub(crate) storage_class: Option<String>,
    /// The time that the writer gave it, as RFC 3339 writes it.
    pub(crate) custom_time: Option<String>,
    /// The writer's own keys.
    pub(crate) custom: BTreeMap<String, String>,
}

/// An object before it has a version.
#[derive(Debug, Clone)]
pub(crate) struct NewObject {
    /// The bytes.
    pub(crate) content: Content,
    /// What was calculated of them.
    pub(crate) checksums: Checksums,
    /// What the client says that they are.
    pub(crate) expected: ExpectedChecksums,
    /// The rest.
    pub(crate) metadata: Metadata,
    /// Of how many uploads it is composed; `None` if it is one.
    pub(crate) component_count: Option<u32>,
}

/// One version of an object.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its name.
    pub(crate) name: ObjectName,
    /// The version of its content.
    pub(crate) generation: Generation,
    /// The version of its metadata, from 1 in each generation.
    pub(crate) metageneration: i64,
    /// The bytes.
    pub(crate) content: Content,
    /// What was calculated of them.
    pub(crate) checksums: Checksums,
    /// What was said of it.
    pub(crate) metadata: Metadata,
    /// Of how many uploads it is composed; `None` if it is one.
    pub(crate) component_count: Option<u32>,
    /// When this generation began.
    pub(crate) created: Moment,
    /// When its metadata was written last.
    pub(crate) updated: Moment,
}

/// A change of metadata.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) content_type: Edit<String>,
    pub(crate) content_encoding: Edit<String>,
    pub(crate) content_disposition: Edit<String>,
    pub(crate) content_language: Edit<String>,
    pub(crate) cache_control: Edit<String>,
    pub(crate) custom_time: Edit<String>,
    pub(crate) custom: CustomChange,
}

/// What becomes of one field.
#[derive(Debug, Clone, Default)]
pub(crate) enum Edit<T> {
    #[default]
    Keep,
    Set(T),
    Remove,
}

/// A change of the writer's own keys.
#[derive(Debug, Clone, Default)]
pub(crate) enum CustomChange {
    #[default]
    Keep,
    /// What becomes of each key.
    Merge(BTreeMap<String, Edit<String>>),
    /// These are all there are.
    Replace(BTreeMap<String, String>),
}

impl<T> From<Option<T>> for Edit<T> {
    /// What a field becomes that is written anew.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Remove, Self::Set)
    }
}

impl NewObject {
    /// Refuses what is not as announced or too large.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.expected.check(&self.checksums)?;
        if self.content.length() > LARGEST {
            return Err(Refusal::TooLarge);
        }
        Ok(())
    }
}

impl Object {
    pub(super) fn new(name: ObjectName, generation: Generation, new: NewObject, now: Moment) -> Self {
        let NewObject { content, checksums, expected: _, metadata, component_count } = new;
        Self {
            name,
            generation,
            metageneration: 1,
            content,
            checksums,
            metadata,
            component_count,
            created: now,
            updated: now,
        }
    }

    /// The same content with other metadata.
    pub(super) fn changed(&self, change: Change, now: Moment) -> Self {
        let mut object = self.clone();
        let metadata = &mut object.metadata;
        let fields = [
            (&mut metadata.content_type, change.content_type),
            (&mut metadata.content_encoding, change.content_encoding),
            (&mut metadata.content_disposition, change.content_disposition),
            (&mut metadata.content_language, change.content_language),
            (&mut metadata.cache_control, change.cache_control),
            (&mut metadata.custom_time, change.custom_time),
        ];
        for (field, change) in fields {
            match change {
                Edit::Keep => {}
                Edit::Set(value) => *field = Some(value),
                Edit::Remove => *field = None,
            }
        }
        match change.custom {
            CustomChange::Keep => {}
            CustomChange::Replace(custom) => metadata.custom = custom,
            CustomChange::Merge(changes) => {
                for (key, value) in changes {
                    match value {
                        Edit::Keep => {}
                        Edit::Set(value) => drop(metadata.custom.insert(key, value)),
                        Edit::Remove => drop(metadata.custom.remove(&key)),
                    }
                }
            }
        }
        object.metageneration += 1;
        object.updated = now;
        object
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
