//! The folder itself: what a person does to it, what stands in the way, and what the store leaves in it.

use std::{fs, os::unix::fs::MetadataExt, process::Command};

use penstock_storage::{ErrorKind, FileStore, Generation, ObjectName, Store};

use crate::{generation, name};

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
async fn many_objects_are_deleted_at_once_and_the_first_that_cannot_be_is_named() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let mut doomed = Vec::new();
    for at in 0..40 {
        let at = ObjectName::parse(format!("parts/{at}")).unwrap();
        let written = store.create(&at, "1".into()).await.unwrap();
        doomed.push((at, written.generation));
    }
    // Named twice: whoever comes second finds nothing to do.
    doomed.extend_from_within(..);
    for stale in [10, 30] {
        doomed[stale].1 = Generation::new("0");
        doomed[40 + stale].1 = Generation::new("0");
    }
    let error = store.delete_all(&doomed).await.unwrap_err();
    assert_eq!((error.kind(), error.object()), (ErrorKind::Changed, "parts/10"));
    let left: Vec<_> =
        store.list("", None).await.unwrap().objects.into_iter().map(|left| left.name.to_string()).collect();
    assert_eq!(left, ["parts/10", "parts/30"]);
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
