//! Where a folder store keeps what, and how its folders are made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::error::{Action, ErrorKind, StorageError};
use crate::name::{ObjectName, RESERVED};

/// First segments whose records would fall among files of others in `.penstock/`.
const TAKEN_SEGMENTS: [&str; 5] = ["tmp", "scratch", "lock", "run", "retired"];

/// The ending of a record's file name.
const RECORD_SUFFIX: &str = ".meta";

/// The paths of one folder store.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// A folder that exists, or will be made by the first write.
    pub(super) fn open(root: &Path) -> Result<Self> {
        let failed = |answer: io::Error| StorageError::io(Action::Open, root.display(), &answer);
        let absolute = std::path::absolute(root).map_err(failed)?;
        match fs::metadata(&absolute) {
            Ok(metadata) if !metadata.is_dir() => Err(failed(io::ErrorKind::NotADirectory.into())),
            Err(answer) if answer.kind() != io::ErrorKind::NotFound => Err(failed(answer)),
            _ => Ok(Self { root: absolute }),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The file that is the object.
    pub(super) fn content_path(&self, name: &ObjectName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// The file that describes the object.
    pub(super) fn record_path(&self, name: &ObjectName) -> PathBuf {
        self.own().join(format!("{name}{RECORD_SUFFIX}"))
    }

    /// The store's own folder.
    pub(super) fn own(&self) -> PathBuf {
        self.root.join(RESERVED)
    }

    /// Files under construction: on the same file system as the objects.
    pub(super) fn temporary(&self) -> PathBuf {
        self.own().join("tmp")
    }

    /// The file whose kernel lock guards each compare-and-write.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.own().join("lock")
    }

    /// The file that holds the highest generation of any deleted object.
    pub(super) fn retired_path(&self) -> PathBuf {
        self.own().join("retired")
    }

    /// Removes `folder` and those above it that are empty, up to the root or the store's own folder.
    ///
    /// Only under the lock, so that no writer has just made one of them.
    pub(super) fn prune(&self, folder: &Path) {
        folder
            .ancestors()
            .take_while(|folder| *folder != self.root && *folder != self.own())
            .take_while(|folder| fs::remove_dir(folder).is_ok())
            .for_each(drop);
    }
}

/// Whether the answer says that there is no such file, also because something on its path is not a folder.
pub(super) fn is_absence(answer: &io::Error) -> bool {
    matches!(answer.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses names whose record would have the path of something else.
pub(super) fn check_writable(action: Action, name: &ObjectName) -> Result<()> {
    let mut folders = name.as_str().split('/');
    folders.next_back();
    let first_is_taken = folders.clone().next().is_some_and(|first| TAKEN_SEGMENTS.contains(&first));
    if first_is_taken || folders.any(|segment| segment.ends_with(RECORD_SUFFIX)) {
        return Err(StorageError::new(
            ErrorKind::Invalid,
            action,
            name,
            "the store needs that folder name for itself",
            "choose another name",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_can_have_the_path_of_another_record_or_of_the_stores_own_files() {
        for name in ["tmp/a", "scratch/a", "lock/a", "run/a", "retired/a", "a.meta/b", "a/b.meta/c"] {
            let error = check_writable(Action::Create, &ObjectName::parse(name).unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name}");
        }
        for name in ["tmp", "lock", "a.meta", "a/tmp/b", "parts/1"] {
            check_writable(Action::Create, &ObjectName::parse(name).unwrap()).unwrap();
        }
    }
}
