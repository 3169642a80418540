//! What a writer leaves behind that died in the middle of a step.

use std::{fs, path::Path};

use penstock_storage::{Checksum, ErrorKind, FileStore, Store};

use crate::{LIMIT_BYTES, content, name};

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
