//! Other processes on the same folder: living, stopped and killed ones.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use penstock_storage::conformance::races;
use penstock_storage::{ErrorKind, FileStore, ObjectName, RunLock, RunLockError, Store};
use rustix::fs::{FlockOperation, flock};

use crate::{content, generation, name};

/// This test binary again as another process, which does one thing in `root`.
struct OtherProcess {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(role: &str, root: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::the_other_process", "--ignored", "--nocapture"])
            .env("PENSTOCK_TEST_ROLE", role)
            .env("PENSTOCK_TEST_ROOT", root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Waits until it has what it is to hold. It keeps that until it is killed.
    fn wait_until_ready(&mut self) {
        let mut line = String::new();
        while !line.ends_with("ready\n") {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "the other process ended early");
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
#[ignore = "the other tests start it as a process of its own"]
async fn the_other_process() {
    let root = std::env::var("PENSTOCK_TEST_ROOT").unwrap();
    let root = Path::new(&root);
    match std::env::var("PENSTOCK_TEST_ROLE").unwrap().as_str() {
        "hold the folder's lock" => hold(&File::open(root.join(".penstock/lock")).unwrap()),
        "hold a file under construction" => hold(&File::create(root.join(".penstock/tmp/mine")).unwrap()),
        "run" => {
            let _lock = RunLock::acquire(root).unwrap();
            stay();
        }
        "count" => {
            let store = FileStore::open(root).await.unwrap();
            for _ in 0..25 {
                races::increment(&store, &name()).await;
            }
        }
        role => panic!("no such role: {role}"),
    }
}

fn hold(file: &File) {
    flock(file, FlockOperation::LockExclusive).unwrap();
    stay();
}

/// Until this process is killed: nobody ever writes to its standard input.
fn stay() {
    let mut out = std::io::stdout();
    out.write_all(b"\nready\n").unwrap();
    out.flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_holder_was_killed_is_free() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let first = store.create(&name(), "1".into()).await.unwrap();
    let mut holder = OtherProcess::start("hold the folder's lock", root.path());
    holder.wait_until_ready();

    let name = name();
    let mut replaced = store.replace(&name, "2".into(), &first.generation);
    let waited = tokio::time::timeout(Duration::from_secs(10), &mut replaced).await;
    assert!(waited.is_err(), "written although another process holds the lock");
    assert_eq!(content(&store).await, "1", "readers need no lock");
    holder.kill();
    replaced.await.unwrap();
    assert_eq!(content(&store).await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_stopped_is_not_waited_for_without_end() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    store.create(&name(), "1".into()).await.unwrap();
    let held = File::open(root.path().join(".penstock/lock")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let error = store.create(&ObjectName::from_static("other"), "1".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("stopped `penstock` process"), "{error}");
}

#[tokio::test]
async fn two_processes_that_count_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    store.create(&name(), "0".into()).await.unwrap();
    let mut other = OtherProcess::start("count", root.path());
    for _ in 0..25 {
        races::increment(&store, &name()).await;
    }
    assert!(other.child.wait().unwrap().success());
    assert_eq!(content(&store).await, "50");
    assert_eq!(generation(&store).await, "51");
}

#[tokio::test]
async fn a_run_that_was_killed_does_not_hold_up_the_next() {
    let root = tempfile::tempdir().unwrap();
    let mut run = OtherProcess::start("run", root.path());
    run.wait_until_ready();
    let refusal = RunLock::acquire(root.path()).unwrap_err();
    assert!(
        matches!(refusal, RunLockError::Held { pid: Some(pid), .. } if pid == run.child.id()),
        "{refusal}"
    );
    run.kill();
    assert_eq!(RunLock::holder(root.path()).unwrap(), None);
    RunLock::acquire(root.path()).unwrap();
}

#[tokio::test]
async fn what_a_killed_process_had_under_construction_is_removed_and_that_of_a_living_one_stays() {
    let root = tempfile::tempdir().unwrap();
    FileStore::open(root.path()).await.unwrap().create(&name(), "1".into()).await.unwrap();
    let mut other = OtherProcess::start("hold a file under construction", root.path());
    other.wait_until_ready();
    let file = root.path().join(".penstock/tmp/mine");
    FileStore::open(root.path()).await.unwrap();
    assert!(file.exists(), "taken from a living process");
    other.kill();
    FileStore::open(root.path()).await.unwrap();
    assert!(!file.exists(), "left for ever");
}
