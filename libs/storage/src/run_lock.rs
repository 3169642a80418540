//! One `penstock run` at a time over one folder: a kernel lock on `.penstock/run` for as long as the process lives.
//!
//! It guards against mishaps on one machine; the safety of a job rests on its claims, not on this. The file also says
//! who holds the lock: process number and boot id, since a number from before the last boot means nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::durable::create_durably;
use crate::error::{Action, StorageError};
use crate::name::RESERVED;

/// Where Linux says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How long a lock that nobody holds exclusively is tried for: somebody who looks for a holder has it, and lets it go
/// as soon as it is scheduled.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lock on a folder, held until dropped or until the process ends in whatever way.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum RunLockError {
    /// Somebody holds it.
    #[error("lock `{}`: already running{}; wait for it, or stop it first", root.display(), as_pid(*pid))]
    Held {
        /// The folder.
        root: PathBuf,
        /// The holder's process number, where it can be trusted.
        pid: Option<u32>,
    },
    /// The file that carries the lock cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Who holds a folder's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process number, where it can be trusted.
    pub pid: Option<u32>,
}

impl RunLock {
    /// Takes the lock of the folder `root`, making the folder if need be. Does not wait.
    pub fn acquire(root: &Path) -> Result<Self, RunLockError> {
        let path = lock_path(root);
        let failed = |answer: io::Error| StorageError::io(Action::Lock, path.display(), &answer);
        create_durably(&std::path::absolute(root).map_err(failed)?.join(RESERVED)).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
                sign(&mut file).map_err(failed)?;
                return Ok(Self { _file: file });
            }
            if !try_lock(&file, FlockOperation::NonBlockingLockShared).map_err(failed)? {
                break;
            }
            flock(&file, FlockOperation::Unlock).map_err(|errno| failed(errno.into()))?;
            std::thread::yield_now();
        }
        Err(RunLockError::Held { root: root.to_owned(), pid: signed_by(&mut file) })
    }

    /// Who holds the lock of the folder `root` at this moment; `None` when nobody does.
    pub fn holder(root: &Path) -> Result<Option<Holder>, StorageError> {
        let path = lock_path(root);
        let failed = |answer: io::Error| StorageError::io(Action::Open, path.display(), &answer);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(answer) if answer.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(answer) => return Err(failed(answer)),
        };
        let free = try_lock(&file, FlockOperation::NonBlockingLockShared).map_err(failed)?;
        Ok((!free).then(|| Holder { pid: signed_by(&mut file) }))
    }
}

fn lock_path(root: &Path) -> PathBuf {
    root.join(RESERVED).join("run")
}

fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(answer) => Err(answer.into()),
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} {}", std::process::id(), boot_id().unwrap_or_default())
}

/// The process number in the file, if it is of this boot.
fn signed_by(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let (pid, boot) = text.trim_end().split_once(' ')?;
    (boot == boot_id()?).then(|| pid.parse().ok())?
}

fn boot_id() -> Option<String> {
    fs::read_to_string(BOOT_ID).ok().map(|text| text.trim().to_owned())
}

fn as_pid(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" as pid {pid}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_run_is_told_who_is_the_first() {
        let root = tempfile::tempdir().unwrap();
        let _first = RunLock::acquire(root.path()).unwrap();
        let refusal = RunLock::acquire(root.path()).unwrap_err();
        assert!(matches!(refusal, RunLockError::Held { pid: Some(pid), .. } if pid == std::process::id()));
        let told = format!("already running as pid {}; wait", std::process::id());
        assert!(refusal.to_string().contains(&told), "{refusal}");
    }

    #[test]
    fn dropping_the_lock_frees_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let first = RunLock::acquire(root.path()).unwrap();
        assert_eq!(RunLock::holder(root.path()).unwrap(), Some(Holder { pid: Some(std::process::id()) }));
        drop(first);
        assert_eq!(RunLock::holder(root.path()).unwrap(), None);
        RunLock::acquire(root.path()).unwrap();
    }

    #[test]
    fn a_pid_of_another_boot_is_not_named() {
        let root = tempfile::tempdir().unwrap();
        let _first = RunLock::acquire(root.path()).unwrap();
        fs::write(lock_path(root.path()), "1 00000000-0000-0000-0000-000000000000\n").unwrap();
        assert_eq!(RunLock::holder(root.path()).unwrap(), Some(Holder { pid: None }));
    }

    #[test]
    fn looking_for_a_holder_makes_nothing_and_hinders_nobody() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(RunLock::holder(root.path()).unwrap(), None);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);

        drop(RunLock::acquire(root.path()).unwrap());
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| (0..2_000).all(|_| RunLock::holder(root.path()).is_ok()));
            for _ in 0..200 {
                RunLock::acquire(root.path()).unwrap();
            }
            assert!(looks.join().unwrap());
        });
    }
}
