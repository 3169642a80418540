//! Files and folders of the cluster, with the path in every error.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A file or folder that cannot be used.
#[derive(Debug, Error)]
#[error("{doing} {path}: {source}")]
pub struct FileError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn told<T>(doing: &'static str, path: &Path, result: io::Result<T>) -> Result<T, FileError> {
    result.map_err(|source| FileError { doing, path: path.to_owned(), source })
}

/// Makes a folder, with those above it.
pub fn folder(path: &Path) -> Result<(), FileError> {
    told("make the folder", path, fs::create_dir_all(path))
}

/// Writes a file, with the folders above it, unless it has this content: kube-proxy ends when its settings are touched.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    if fs::read(path).is_ok_and(|there| there == content.as_ref()) {
        return Ok(());
    }
    path.parent().map(folder).transpose()?;
    told("write", path, fs::write(path, content))
}

/// Reads a file.
pub fn read(path: &Path) -> Result<String, FileError> {
    told("read", path, fs::read_to_string(path))
}

/// Copies a file, with the folders above the copy.
pub fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    to.parent().map(folder).transpose()?;
    told("copy", from, fs::copy(from, to)).map(drop)
}

/// Removes a file or a folder with all that is in it, if it is there.
pub fn remove(path: &Path) -> Result<(), FileError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => told("remove", path, other),
    }
}

/// Removes an empty folder, if it is there.
pub fn remove_empty(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => told("remove the folder", path, other),
    }
}

/// The entries of a folder; none where it is not there.
pub fn entries(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => {
            let entries = told("list", path, listed)?.map(|entry| Ok(entry?.path())).collect();
            told("list", path, entries)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_file_that_has_this_content_is_not_touched() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/settings");
        write(&path, "one").unwrap();
        let before = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        let touched = || fs::metadata(&path).unwrap().modified().unwrap() != before;
        write(&path, "one").unwrap();
        assert!(!touched());
        write(&path, "two").unwrap();
        assert!(touched() && read(&path).unwrap() == "two");
    }
}
