//! What a folder is worth after its writers died, and beside living ones in other processes.
#![expect(clippy::unwrap_used, reason = "what these tests are made of fails only where they do")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use penstock_storage::conformance::races;
use penstock_storage::{Checksum, ErrorKind, FileStore, ObjectName, RunLock, RunLockError, Store};
use rustix::fs::{FlockOperation, flock};

const LIMIT_BYTES: u64 = 1 << 20;

fn name() -> ObjectName {
    ObjectName::from_static("state.json")
}

async fn content(store: &FileStore) -> String {
    let (_, bytes) = store.get(&name(), LIMIT_BYTES).await.unwrap().unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn generation(store: &FileStore) -> String {
    store.head(&name()).await.unwrap().unwrap().generation.to_string()
}

/// This test binary again as another process, which does one thing in `root`.
struct OtherProcess {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(role: &str, root: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_other_process", "--ignored", "--nocapture"])
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

/// What is on disk when a writer dies after the rename and before the record.
fn rename_without_record(root: &Path, content: &str) {
    let staged = root.join(".penstock/tmp/staged");
    fs::write(&staged, content).unwrap();
    fs::rename(staged, root.join("state.json")).unwrap();
}

#[tokio::test]
async fn a_swap_cut_off_before_its_record_has_the_next_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let first = store.create(&name(), "1".into()).await.unwrap();
    let second = store.replace(&name(), "2".into(), &first.generation).await.unwrap();
    rename_without_record(root.path(), "3");

    let stale = store.replace(&name(), "4".into(), &second.generation).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Changed);
    let (third, bytes) = store.get(&name(), LIMIT_BYTES).await.unwrap().unwrap();
    assert_eq!((third.generation.as_str(), bytes.as_ref()), ("3", b"3".as_slice()));
    assert_eq!(third.checksum(), Some(Checksum::of(b"3")));
    let fourth = store.replace(&name(), "4".into(), &third.generation).await.unwrap();
    assert_eq!(fourth.generation.as_str(), "4");
}

#[tokio::test]
async fn a_create_cut_off_before_its_link_has_made_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    store.create(&name(), "1".into()).await.unwrap();
    // The record stays, as if the link had never come.
    fs::remove_file(root.path().join("state.json")).unwrap();
    assert_eq!(store.head(&name()).await.unwrap(), None);
    assert_eq!(store.list("", None).await.unwrap().objects, []);
    store.create(&name(), "other".into()).await.unwrap();
    assert_eq!(content(&store).await, "other");
}

#[tokio::test]
async fn a_deletion_cut_off_before_its_end_still_retires_the_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let first = store.create(&name(), "1".into()).await.unwrap();
    let record = root.path().join(".penstock/state.json.meta");
    let kept = fs::read(&record).unwrap();
    store.delete(&name(), &first.generation).await.unwrap();
    fs::write(&record, kept).unwrap();

    assert_eq!(store.head(&name()).await.unwrap(), None);
    let again = store.create(&name(), "1".into()).await.unwrap();
    assert_eq!(again.generation.as_str(), "2");
}

#[tokio::test]
async fn a_folder_that_was_copied_keeps_its_generations() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path().join("old")).await.unwrap();
    let first = store.create(&name(), "1".into()).await.unwrap();
    let second = store.replace(&name(), "2".into(), &first.generation).await.unwrap();
    let copied = Command::new("cp")
        .arg("-r")
        .args([root.path().join("old"), root.path().join("new")])
        .status()
        .unwrap();
    assert!(copied.success());
    let copy = FileStore::open(root.path().join("new")).await.unwrap();
    assert_eq!(copy.head(&name()).await.unwrap(), Some(second));
}

#[tokio::test]
async fn an_object_changed_by_hand_is_another_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let first = store.create(&name(), "before".into()).await.unwrap();
    fs::write(root.path().join("state.json"), "and after").unwrap();
    let stale = store.read_range(&name(), &first.generation, 0..6).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Changed);
    assert_eq!(generation(&store).await, "2");
}

#[tokio::test]
async fn an_upload_is_a_link_and_not_a_copy() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path().join("out")).await.unwrap();
    let source = root.path().join("scratch.jsonl");
    fs::write(&source, "line\n").unwrap();
    store.upload(&name(), &source, Checksum::of(b"line\n")).await.unwrap();
    let object = root.path().join("out/state.json");
    assert_eq!(object.metadata().unwrap().ino(), source.metadata().unwrap().ino());
}

#[tokio::test]
async fn an_upload_from_another_file_system_is_copied() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let source = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    fs::write(source.path(), "line\n").unwrap();
    let written = store.upload(&name(), source.path(), Checksum::of(b"line\n")).await.unwrap();
    drop(source);
    assert_eq!(content(&store).await, "line\n");
    assert_eq!(store.head(&name()).await.unwrap(), Some(written));
}

#[tokio::test]
async fn content_that_contradicts_its_checksum_is_not_handed_out() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let source = root.path().join("scratch");
    fs::write(&source, "flipped").unwrap();
    store.upload(&name(), &source, Checksum::of(b"written")).await.unwrap();
    assert_eq!(store.get(&name(), LIMIT_BYTES).await.unwrap_err().kind(), ErrorKind::Damaged);
}

#[tokio::test]
async fn a_source_that_contradicts_its_checksum_is_not_composed() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let source = root.path().join("scratch");
    fs::write(&source, "flipped").unwrap();
    let whole = store.create(&ObjectName::from_static("parts/1"), "whole".into()).await.unwrap();
    let second = ObjectName::from_static("parts/2");
    let spoiled = store.upload(&second, &source, Checksum::of(b"written")).await.unwrap();
    let sources = [(whole.name, whole.generation), (spoiled.name, spoiled.generation)];
    let refusal = store.compose(&name(), &sources).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.object()), (ErrorKind::Damaged, "parts/2"));
    assert_eq!(store.head(&name()).await.unwrap(), None);
    assert_eq!(fs::read_dir(root.path().join(".penstock/tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_announced_is_copied_before_it_is_composed_and_gone_with_the_store() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let mut sources = Vec::new();
    for (at, bytes) in [("parts/1", "a"), ("parts/2", "b")] {
        let meta = store.create(&ObjectName::from_static(at), bytes.into()).await.unwrap();
        sources.push((meta.name, meta.generation));
    }
    let first = &sources[0].0;
    store.announce(first, &sources[..1]).await.unwrap();
    let (name_of_first, generation) = &sources[0];
    store.delete(name_of_first, generation).await.unwrap();
    let written = store.compose(&name(), &sources).await.unwrap();
    assert_eq!(content(&store).await, "ab");
    assert_eq!(written.checksum(), Some(Checksum::of(b"ab")));

    let second = std::slice::from_ref(&sources[1]);
    store.announce(&sources[1].0, second).await.unwrap();
    let under_construction = || fs::read_dir(root.path().join(".penstock/tmp")).unwrap().count();
    assert_eq!(under_construction(), 1);
    drop(store);
    assert_eq!(under_construction(), 0);
}

#[tokio::test]
async fn an_announced_source_that_is_spoiled_is_not_composed() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let meta = store.create(&ObjectName::from_static("parts/1"), "abc".into()).await.unwrap();
    let sources = [(meta.name, meta.generation)];
    let path = root.path().join("parts/1");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "abd").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let refusal = store.announce(&sources[0].0, &sources).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.object()), (ErrorKind::Damaged, "parts/1"));
    assert_eq!(store.compose(&name(), &sources).await.unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(store.head(&name()).await.unwrap(), None);
}

#[tokio::test]
async fn a_source_whose_record_is_lost_is_settled_and_composed_in_its_place() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let mut sources = Vec::new();
    for (at, bytes) in [("parts/1", "a"), ("parts/2", "b"), ("parts/3", "c")] {
        let meta = store.create(&ObjectName::from_static(at), bytes.into()).await.unwrap();
        sources.push((meta.name, meta.generation));
    }
    fs::remove_file(root.path().join(".penstock/parts/2.meta")).unwrap();
    let written = store.compose(&name(), &sources).await.unwrap();
    assert_eq!(content(&store).await, "abc");
    assert_eq!(written.checksum(), Some(Checksum::of(b"abc")));
}

#[tokio::test]
async fn looking_at_a_folder_makes_nothing_and_deleting_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let output = root.path().join("out");
    let store = FileStore::open(&output).await.unwrap();
    assert_eq!(store.head(&name()).await.unwrap(), None);
    assert_eq!(store.list("", None).await.unwrap().objects, []);
    assert!(!output.exists(), "made by looking");

    let deep = ObjectName::from_static("parts/a/b");
    let written = store.create(&deep, "1".into()).await.unwrap();
    store.delete(&deep, &written.generation).await.unwrap();
    let left: Vec<_> = fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".penstock"]);
    let own = output.join(".penstock");
    assert!(!own.join("parts").exists(), "an empty folder of records is left");
    assert_eq!(fs::read_dir(own.join("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn data_files_are_readable_by_others_as_the_umask_allows() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    store.create(&name(), "1".into()).await.unwrap();
    let plain = root.path().join("plain");
    fs::write(&plain, "").unwrap();
    let expected = plain.metadata().unwrap().mode() & 0o644;
    assert_eq!(root.path().join("state.json").metadata().unwrap().mode() & 0o777, expected);
}

#[tokio::test]
async fn what_stands_in_the_way_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    assert_eq!(FileStore::open(root.path().join("file")).await.unwrap_err().kind(), ErrorKind::Invalid);

    let store = FileStore::open(root.path()).await.unwrap();
    let below_a_file = ObjectName::from_static("file/a");
    assert_eq!(store.head(&below_a_file).await.unwrap(), None);
    let error = store.create(&below_a_file, "1".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("file/a") && error.to_string().contains("move it away"), "{error}");
    fs::create_dir(root.path().join("folder")).unwrap();
    let error = store.create(&ObjectName::from_static("folder"), "1".into()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_record_that_is_not_one_is_damage_and_not_a_new_object() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    store.create(&name(), "1".into()).await.unwrap();
    fs::write(root.path().join(".penstock/state.json.meta"), "?").unwrap();
    let error = store.head(&name()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("state.json.meta"), "{error}");
}
