//! The lock around each compare-and-write: a kernel `flock` on `.penstock/lock`.
//!
//! The kernel releases it when its holder dies. The file itself means nothing and stays.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{sleep, timeout};

use super::folder::Folder;
use crate::Result;
use crate::blocking::run_blocking;
use crate::durable::create_durably;
use crate::error::{Action, ErrorKind, StorageError};

/// The longest wait for the lock. It is held for milliseconds, unless its holder is stopped or its disk hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// First and longest pause between two tries. A blocking `flock` could not be given up at the deadline.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// The lock of one folder.
#[derive(Debug)]
pub(super) struct FolderLock {
    path: PathBuf,
    /// Serves the tasks of this process in the order in which they came, so that only one of them tries.
    turn: Arc<Mutex<()>>,
}

/// The lock, held; dropping releases it.
#[derive(Debug)]
pub(super) struct LockGuard {
    _file: File,
    _turn: OwnedMutexGuard<()>,
}

impl FolderLock {
    pub(super) fn new(folder: &Folder) -> Self {
        Self { path: folder.lock_path(), turn: Arc::default() }
    }

    pub(super) async fn acquire(&self) -> Result<LockGuard> {
        timeout(DEADLINE, self.wait()).await.unwrap_or_else(|_| {
            Err(StorageError::new(
                ErrorKind::Unavailable,
                Action::Lock,
                self.path.display(),
                format!("another process has held it for {} s", DEADLINE.as_secs()),
                "look for a stopped `penstock` process and let it go on or end it",
            ))
        })
    }

    async fn wait(&self) -> Result<LockGuard> {
        let failed = |answer: io::Error| StorageError::io(Action::Lock, self.path.display(), &answer);
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let path = self.path.clone();
        let file = run_blocking(move || open(path)).await.map_err(failed)?;
        let (mut pause, longest) = PAUSES;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(LockGuard { _file: file, _turn: turn });
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(answer) => return Err(failed(answer.into())),
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

fn open(path: PathBuf) -> io::Result<File> {
    if let Some(own) = path.parent() {
        create_durably(own)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}
