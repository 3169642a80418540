//! The files of a Secret or a ConfigMap that an executor's pod needs, and where they stand there.

use std::path::{Path, PathBuf};

use crate::provider::{ConfigMapKey, SecretKey};

/// The folder below which they stand.
pub const PROVIDER_FILES: &str = "/var/run/secrets/penstock-provider";

/// One value, as a file of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedFile {
    /// Where the value comes from.
    pub source: FileSource,
    /// Its key there.
    pub key: String,
    /// The file.
    pub path: PathBuf,
}

/// An object that holds values, in the namespace of the job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileSource {
    /// A Secret of this name.
    Secret(String),
    /// A `ConfigMap` of this name.
    ConfigMap(String),
}

impl FileSource {
    /// The folder of its values: below one of its kind, since a Secret and a `ConfigMap` may have one name.
    pub fn folder(&self) -> PathBuf {
        let (kind, name) = match self {
            Self::Secret(name) => ("secret", name),
            Self::ConfigMap(name) => ("config-map", name),
        };
        Path::new(PROVIDER_FILES).join(kind).join(name)
    }
}

impl From<&SecretKey> for MountedFile {
    fn from(SecretKey { name, key }: &SecretKey) -> Self {
        Self::new(FileSource::Secret(name.clone()), key)
    }
}

impl From<&ConfigMapKey> for MountedFile {
    fn from(ConfigMapKey { name, key }: &ConfigMapKey) -> Self {
        Self::new(FileSource::ConfigMap(name.clone()), key)
    }
}

impl MountedFile {
    /// The value of this key.
    pub fn new(source: FileSource, key: &str) -> Self {
        let path = source.folder().join(key);
        Self { source, key: key.to_owned(), path }
    }
}

/// The files that are named so far.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<MountedFile>);

impl Files {
    /// Names a file, and says where it stands.
    pub(super) fn name(&mut self, file: MountedFile) -> PathBuf {
        let path = file.path.clone();
        if !self.0.contains(&file) {
            self.0.push(file);
        }
        path
    }

    /// All that were named, in the order in which they were.
    pub(super) fn all(self) -> Vec<MountedFile> {
        self.0
    }
}
