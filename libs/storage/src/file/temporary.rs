//! Files under construction in `.penstock/tmp/`.
//!
//! Each is locked by its maker (`flock`) for as long as it is open, and the kernel releases that when the maker dies.
//! So a temporary file whose lock can be had has no living maker: this holds between containers too, where process
//! numbers tell nothing.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tempfile::NamedTempFile;
use tracing::{debug, warn};

use super::folder::Folder;
use crate::durable::create_durably;

/// Permissions of data files, less the process's umask.
const DATA_FILE_MODE: u32 = 0o644;

/// A file under construction; gone when dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    file: NamedTempFile,
}

impl Temporary {
    /// An empty one.
    pub(super) fn create(folder: &Folder) -> io::Result<Self> {
        let directory = folder.temporary();
        create_durably(&directory)?;
        loop {
            let file = tempfile::Builder::new()
                .prefix("")
                .permissions(Permissions::from_mode(DATA_FILE_MODE))
                .tempfile_in(&directory)?;
            // Between making and locking it, somebody who removes leftovers may have taken it for one.
            match flock(file.as_file(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if file.as_file().metadata()?.nlink() > 0 => return Ok(Self { file }),
                Ok(()) | Err(Errno::WOULDBLOCK) => {}
                Err(answer) => return Err(answer.into()),
            }
        }
    }

    /// One that holds `content`, durably.
    pub(super) fn holding(folder: &Folder, content: &[u8]) -> io::Result<Self> {
        let temporary = Self::create(folder)?;
        temporary.file().write_all(content)?;
        temporary.finish()?;
        Ok(temporary)
    }

    /// Makes what was written durable.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.file().sync_all()
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name, in the place of what had it.
    pub(super) fn rename_to(self, target: &Path) -> io::Result<()> {
        self.file.persist(target).map(drop).map_err(|failure| failure.error)
    }
}

/// Whether `source` can be linked into the folder, found out by doing it.
pub(super) fn can_link(folder: &Folder, source: &Path) -> io::Result<bool> {
    let directory = folder.temporary();
    create_durably(&directory)?;
    let probe = tempfile::Builder::new().prefix("").make_in(&directory, |path| fs::hard_link(source, path));
    match probe.map(drop) {
        Ok(()) => Ok(true),
        Err(answer) => match Errno::from_io_error(&answer) {
            Some(Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK | Errno::OPNOTSUPP) => Ok(false),
            _ => Err(answer),
        },
    }
}

/// Removes what dead processes left. What cannot be removed costs only space, so it is no failure.
pub(super) fn remove_leftovers(folder: &Folder) {
    let Ok(entries) = fs::read_dir(folder.temporary()) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        match remove_if_abandoned(&path) {
            Ok(true) => {
                debug!(path = %path.display(), "removed a file that a dead process left under construction");
            }
            Ok(false) => {}
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot remove a leftover; remove it by hand");
            }
        }
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(answer) if answer.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(answer) => return Err(answer),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => fs::remove_file(path).map(|()| true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(answer) => Err(answer.into()),
    }
}
