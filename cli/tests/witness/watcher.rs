//! Watches an output folder all through a test: what its states say one after another, and that the right objects are
//! there at each time (T3, T4, T9, T10).
//!
//! The kernel tells of each name in the order in which it came or went. What a look finds may be newer than what was
//! told, so a breach may be missed, but none is made up.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use serde_json::Value;

use super::{folder, history};

/// Names that a run replaces or takes back: the state by compare-and-swap, and what validation may withdraw.
const REPLACED: [&str; 2] = ["state.json", "validation.json"];
/// Longest time until the watch notices that it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Outcomes of lines that were not answered.
const UNDONE: [&str; 3] = ["cancelled", "expired", "abandoned"];

/// A watch in a thread of its own.
#[derive(Debug)]
pub(super) struct Watcher {
    over: Arc<AtomicBool>,
    damaged: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Watcher {
    pub(super) fn start(output: &Path) -> Self {
        let (over, damaged) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut watch = Watch {
            output: output.to_owned(),
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap(),
            folders: BTreeMap::new(),
            damaged: Arc::clone(&damaged),
            state: None,
            receipt: false,
            parts: BTreeMap::new(),
            problems: BTreeSet::new(),
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
            watch.look_at_state();
            watch.problems.into_iter().collect()
        });
        Self { over, damaged, thread: Some(thread) }
    }

    pub(super) fn expect_damage(&self, name: &str) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// What the test has damaged.
    pub(super) fn damaged(&self) -> BTreeSet<String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was wrong.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.over.store(true, Relaxed);
        let thread = self.thread.take().expect("a watch ends once");
        thread.join().expect("the watch goes on to its end")
    }
}

impl Drop for Watcher {
    /// A test that fails must not leave its watch running.
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
    }
}

/// What is known so far.
#[derive(Debug)]
struct Watch {
    output: PathBuf,
    inotify: OwnedFd,
    /// The watched folders, relative to the output.
    folders: BTreeMap<i32, String>,
    damaged: Arc<Mutex<BTreeSet<String>>>,
    state: Option<Value>,
    /// Whether the kernel has told of a receipt.
    receipt: bool,
    /// The ordinals of each part that was seen.
    parts: BTreeMap<String, BTreeSet<u64>>,
    problems: BTreeSet<String>,
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
        for name in folder::names(&self.output.join(folder)) {
            // What came before the watch is told by nobody; the state may be newer than it.
            self.look_at_state();
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
            self.gone(&name, told.what.contains(ReadFlags::ISDIR));
        } else if told.what.contains(ReadFlags::MOVED_TO) && !REPLACED.contains(&name.as_str()) {
            self.problem(format!("T10: {name} was put in the place of whatever was there"));
        } else {
            self.appeared(&name);
        }
    }

    fn appeared(&mut self, name: &str) {
        let path = self.output.join(name);
        if name.starts_with(".penstock") {
            // The store's own.
        } else if name == "state.json" {
            self.look_at_state();
        } else if name == "receipt.json" {
            self.receipt = true;
        } else if path.is_dir() {
            self.enter(name);
        } else if name.starts_with("parts/") && !self.parts.contains_key(name) {
            self.part_appeared(name);
        }
    }

    /// T9: a part with undone lines comes only after the ending that they say.
    fn part_appeared(&mut self, name: &str) {
        let Some(bytes) = folder::read(&self.output.join(name)) else { return };
        let records = match folder::records(&bytes) {
            Ok(records) => records,
            Err(_) if self.is_damaged(name) => return,
            Err(problem) => return self.problem(format!("T3: {name}: {problem}")),
        };
        let undone = records.iter().map(|record| record.outcome.as_str()).find(|one| UNDONE.contains(one));
        if let Some(outcome) = undone {
            let ending = self.state.as_ref().map_or(&Value::Null, |state| &state["ending"]["reason"]);
            if ending != outcome {
                let problem =
                    format!("T9: {name} has lines that are {outcome}, while the ending is {ending}");
                self.problem(problem);
            }
        }
        let ordinals: BTreeSet<u64> = records.iter().map(|record| record.ordinal).collect();
        if ordinals.len() != records.len() {
            self.problem(format!("T3: {name} holds a line twice"));
        }
        self.parts.insert(name.to_owned(), ordinals);
    }

    /// T10: nothing is deleted before there is a receipt. What a validation has stored it may take back.
    fn gone(&mut self, name: &str, folder: bool) {
        let own = name.starts_with(".penstock") || name.starts_with("intake") || folder;
        if !own && !self.receipt && !self.is_damaged(name) {
            self.problem(format!("T10: {name} was deleted before there was a receipt"));
        }
    }

    fn look_at_state(&mut self) {
        let Some(state) = folder::document(&self.output, "state.json") else { return };
        let mut problems = match &self.state {
            Some(before) if *before == state => return,
            Some(before) => history::compare(before, &state),
            None => history::alone(&state),
        };
        self.state = Some(state.clone());
        problems.extend(self.check_manifest(&state));
        self.problems.extend(problems);
    }

    /// T3: listed parts are there until there is a receipt; they share no line; `completed` is all of their lines.
    fn check_manifest(&mut self, state: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        let mut united = BTreeSet::new();
        for (name, lines) in folder::listed(state) {
            let damaged = self.is_damaged(&name);
            if !damaged && !self.output.join(&name).exists() && !self.output.join("receipt.json").exists() {
                problems.push(format!("T3: {name} is listed and not there"));
            }
            if !self.parts.contains_key(&name) {
                self.part_appeared(&name);
            }
            // Whoever looks after the receipt may find them deleted.
            let Some(ordinals) = self.parts.get(&name) else { return problems };
            if ordinals.len() as u64 != lines && !damaged {
                problems.push(format!("T3: {name} holds {} lines, listed are {lines}", ordinals.len()));
            }
            let shared = ordinals.intersection(&united).count();
            if shared > 0 && !damaged {
                problems.push(format!("T3: {name} shares {shared} lines with parts before it"));
            }
            united.extend(ordinals);
        }
        let completed = folder::completed(state);
        if completed != united {
            let differing: Vec<_> = completed.symmetric_difference(&united).take(20).collect();
            problems.push(format!("T3: `completed` is not what the parts hold: {differing:?}"));
        }
        problems
    }

    fn is_damaged(&self, name: &str) -> bool {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn problem(&mut self, problem: String) {
        self.problems.insert(problem);
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
