//! Deleting objects under the lock, many at a time.
//!
//! Not synced: a deletion undone by a loss of power brings back an object that nobody misses, and whoever looks after the
//! output deletes it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::folder::is_absence;
use super::record::retire;
use super::write::LockedFolder;
use crate::Result;
use crate::error::{Action, StorageError};
use crate::generation::Generation;
use crate::name::ObjectName;

/// Threads that delete side by side. A file system that tells the disk of blocks that are free, and waits for it, as
/// ext4 does with `discard` and without a journal, takes 0.2 to 3 ms for a removal alone, and a fifteenth of that so.
const DELETING_THREADS: usize = 32;

impl LockedFolder<'_> {
    /// Deletes each object that has the generation expected of it, by whichever thread is free first; the error is the
    /// first one.
    pub(super) fn delete_all(&self, objects: &[(ObjectName, Generation)]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let retired = Mutex::new(0);
        let delete_some = || {
            let mut first_error = None;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((name, expected)) = objects.get(index) else {
                    return first_error;
                };
                if let Err(error) = self.delete(name, expected, &retired) {
                    first_error.get_or_insert((index, error));
                }
            }
        };
        let first_error = thread::scope(|scope| {
            // With fewer threads, where the system gives no more, it takes longer.
            let others: Vec<_> = (1..objects.len().min(DELETING_THREADS))
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, delete_some).ok())
                .collect();
            let own = delete_some();
            let others =
                others.into_iter().map(|other| other.join().expect("invariant: deleting does not panic"));
            others.chain([own]).flatten().min_by_key(|(index, _)| *index)
        });
        // Whether a folder is empty is looked at once, behind the last deletion in it.
        let folders: BTreeSet<_> = objects
            .iter()
            .flat_map(|(name, _)| [self.folder.content_path(name), self.folder.record_path(name)])
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        for folder in &folders {
            self.folder.prune(folder);
        }
        first_error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Deletes one object. `retired` is the highest generation that was retired by this call of all.
    fn delete(&self, name: &ObjectName, expected: &Generation, retired: &Mutex<u64>) -> Result<()> {
        let Some(generation) = self.generation_to_delete(name, expected)? else {
            return Ok(());
        };
        {
            let mut retired = retired.lock().unwrap_or_else(PoisonError::into_inner);
            if *retired < generation {
                retire(self.folder, generation)?;
                *retired = generation;
            }
        }
        remove(&self.folder.content_path(name))
            .and_then(|()| remove(&self.folder.record_path(name)))
            .map_err(|answer| StorageError::io(Action::Delete, name, &answer))
    }

    /// The number of the generation `expected`; `None` if there is no object.
    fn generation_to_delete(&self, name: &ObjectName, expected: &Generation) -> Result<Option<u64>> {
        match self.settled(name)? {
            None => Ok(None),
            Some(object) if object.generation() == *expected => Ok(Some(object.generation_number())),
            Some(_) => Err(StorageError::changed(Action::Delete, name)),
        }
    }
}

/// Removes a file that may be gone, or may never have been: an object can be named twice, and need have no record file.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(answer) if !is_absence(&answer) => Err(answer),
        _ => Ok(()),
    }
}
