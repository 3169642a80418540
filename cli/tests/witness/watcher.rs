//! Watches an output all through a test and tells the [judge](Judge) of each change.
//!
//! Of a folder the kernel tells each name in the order in which it came or went. What a look finds may be newer than what
//! was told, so a breach may be missed, but none is made up. A bucket of the double keeps its history, which is gone
//! through at the end, and misses nothing.

use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use penstock_gcs_double::History;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use super::{
    judge::{Damaged, Judge, REPLACED},
    output::{Objects, Output, names_in},
};

/// Longest time until the watch notices that it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A watch of one output.
#[derive(Debug)]
pub(super) enum Watcher {
    Folder(FolderWatcher),
    Bucket { history: History, below: String, damaged: Damaged },
}

impl Watcher {
    /// Begins to watch. A folder is there already.
    pub(super) fn start(output: &Output, damaged: Damaged) -> Self {
        match output {
            Output::Folder(folder) => Self::Folder(FolderWatcher::start(folder, damaged)),
            Output::Bucket { history, below } => {
                Self::Bucket { history: history.clone(), below: below.clone(), damaged }
            }
        }
    }

    /// What was wrong.
    pub(super) fn finish(self) -> Vec<String> {
        match self {
            Self::Folder(watcher) => watcher.finish(),
            Self::Bucket { history, below, damaged } => replay(&history, &below, damaged),
        }
    }
}

/// Tells everything that has happened in a bucket.
fn replay(history: &History, below: &str, damaged: Damaged) -> Vec<String> {
    let mut judge = Judge::new(damaged);
    let mut objects = Objects::default();
    for change in history.since(0) {
        let Some((name, before)) = objects.take(below, &change) else { continue };
        if change.generation().is_none() {
            judge.gone(&name);
        } else if before.is_some() && !REPLACED.contains(&name.as_str()) {
            judge.overwritten(&name);
        } else {
            judge.appeared(&objects, &name);
        }
    }
    judge.problems()
}

/// A watch of a folder, in a thread of its own.
#[derive(Debug)]
pub(super) struct FolderWatcher {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl FolderWatcher {
    fn start(output: &Path, damaged: Damaged) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let mut watch = Watch {
            output: output.to_owned(),
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap(),
            folders: BTreeMap::new(),
            judge: Judge::new(damaged),
        };
        // Before the first run can write anything.
        watch.enter("");
        let ended = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !ended.load(Relaxed) {
                let mut ready = [PollFd::new(&watch.inotify, PollFlags::IN)];
                match poll(&mut ready, Some(&LOOK)) {
                    Ok(_) | Err(Errno::INTR) => watch.hear(),
                    Err(error) => panic!("{error}"),
                }
            }
            watch.hear();
            watch.judge.look_at_state(&watch.output);
            watch.judge.problems()
        });
        Self { over, thread: Some(thread) }
    }

    fn finish(mut self) -> Vec<String> {
        self.over.store(true, Relaxed);
        let thread = self.thread.take().expect("a watch ends once");
        thread.join().expect("the watch goes on to its end")
    }
}

impl Drop for FolderWatcher {
    /// A test that fails must not leave its watch running.
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

/// What the kernel tells of a folder, on its way to the judge.
#[derive(Debug)]
struct Watch {
    output: PathBuf,
    inotify: OwnedFd,
    /// The watched folders, relative to the output.
    folders: BTreeMap<i32, String>,
    judge: Judge,
}

/// One thing that the kernel tells.
struct Told {
    folder: i32,
    what: ReadFlags,
    name: String,
}

impl Watch {
    /// Watches a folder from now on, and looks at what is in it already.
    fn enter(&mut self, folder: &str) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        match inotify::add_watch(&self.inotify, self.output.join(folder), flags) {
            Ok(watched) => self.folders.insert(watched, folder.to_owned()),
            // It is gone again.
            Err(Errno::NOENT | Errno::NOTDIR) => return,
            Err(error) => panic!("{folder}: {error}"),
        };
        for name in names_in(&self.output.join(folder)) {
            // What came before the watch is told by nobody; the state may be newer than it.
            self.judge.look_at_state(&self.output);
            self.appeared(&join(folder, &name));
        }
    }

    /// Takes in everything that the kernel has to tell.
    fn hear(&mut self) {
        loop {
            let mut buffer = Box::new_uninit_slice(4096);
            let mut told = Vec::new();
            let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => told.push(Told {
                        folder: event.wd(),
                        what: event.events(),
                        name: event
                            .file_name()
                            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
                    }),
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => panic!("{error}"),
                }
                if reader.is_buffer_empty() {
                    break;
                }
            }
            if told.is_empty() {
                return;
            }
            for one in told {
                self.take(&one);
            }
        }
    }

    fn take(&mut self, told: &Told) {
        assert!(!told.what.contains(ReadFlags::QUEUE_OVERFLOW), "the watch has missed something");
        if told.what.contains(ReadFlags::IGNORED) {
            self.folders.remove(&told.folder);
            return;
        }
        let Some(folder) = self.folders.get(&told.folder) else { return };
        let name = join(folder, &told.name);
        if told.what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            if !told.what.contains(ReadFlags::ISDIR) {
                self.judge.gone(&name);
            }
        } else if told.what.contains(ReadFlags::MOVED_TO) && !REPLACED.contains(&name.as_str()) {
            self.judge.overwritten(&name);
        } else {
            self.appeared(&name);
        }
    }

    fn appeared(&mut self, name: &str) {
        if !name.starts_with(".penstock") && self.output.join(name).is_dir() {
            self.enter(name);
        } else {
            self.judge.appeared(&self.output, name);
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
