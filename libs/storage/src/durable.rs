//! Folders whose existence and entries survive a loss of power.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a folder and those above it, so that they survive a loss of power.
pub(crate) fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else {
        return Ok(());
    };
    create_durably(parent)?;
    match fs::create_dir(folder) {
        Err(answer) if answer.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(answer),
        _ => sync_folder(parent),
    }
}

/// Makes the entries of a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes the entry of `path` in its folder durable.
pub(crate) fn sync_entry(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_folder)
}
