//! Where the record of an uploaded file is: in the file itself, or beside it where it cannot be.

use std::{fs, path::PathBuf};

use penstock_storage::{Checksum, FileStore, ObjectMeta, Store};
use rustix::fs::{XattrFlags, removexattr, setxattr};

use crate::{generation, name};

/// Uploads `content` as the object, from a file whose path is returned.
async fn upload(store: &FileStore, content: &str) -> (PathBuf, ObjectMeta) {
    let source = store.root().join("scratch");
    fs::write(&source, content).unwrap();
    let meta = store.upload(&name(), &source, Checksum::of(content.as_bytes())).await.unwrap();
    (source, meta)
}

fn has_record_file(store: &FileStore) -> bool {
    store.root().join(".penstock/state.json.meta").exists()
}

#[tokio::test]
async fn an_uploaded_file_is_its_own_record() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let (source, written) = upload(&store, "line\n").await;
    assert!(!has_record_file(&store));
    let seen = FileStore::open(root.path()).await.unwrap().head(&name()).await.unwrap().unwrap();
    assert_eq!(seen, written);
    assert_eq!(seen.checksum(), Some(Checksum::of(b"line\n")));

    store.delete(&name(), &written.generation).await.unwrap();
    fs::remove_file(source).unwrap();
    assert!(!root.path().join("state.json").exists());
}

#[tokio::test]
async fn a_file_that_is_uploaded_again_has_another_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let (source, first) = upload(&store, "line\n").await;
    store.delete(&name(), &first.generation).await.unwrap();
    let second = store.upload(&name(), &source, Checksum::of(b"line\n")).await.unwrap();
    assert_ne!(second.generation, first.generation);
    assert_eq!(store.head(&name()).await.unwrap(), Some(second.clone()));

    store.delete(&name(), &second.generation).await.unwrap();
    assert!(!has_record_file(&store), "left behind");
}

#[tokio::test]
async fn an_uploaded_file_that_cannot_be_its_own_record_gets_a_record_file() {
    for of_somebody_else in ["short".to_owned(), "long".repeat(99)] {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::open(root.path()).await.unwrap();
        let source = root.path().join("scratch");
        fs::write(&source, "line\n").unwrap();
        setxattr(&source, "user.penstock", of_somebody_else.as_bytes(), XattrFlags::CREATE).unwrap();
        let written = store.upload(&name(), &source, Checksum::of(b"line\n")).await.unwrap();
        assert!(has_record_file(&store));
        assert_eq!(store.head(&name()).await.unwrap(), Some(written));
    }
}

#[tokio::test]
async fn an_uploaded_file_that_was_replaced_has_the_next_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let (_, first) = upload(&store, "1").await;
    let second = store.replace(&name(), "2".into(), &first.generation).await.unwrap();
    assert_eq!((first.generation.as_str(), second.generation.as_str()), ("1", "2"));
    assert_eq!(store.head(&name()).await.unwrap(), Some(second));
}

#[tokio::test]
async fn an_uploaded_file_without_its_attribute_is_the_same_generation() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    let (_, written) = upload(&store, "line\n").await;
    // As after `cp -r`, which copies no attributes.
    removexattr(root.path().join("state.json"), "user.penstock").unwrap();
    assert_eq!(store.head(&name()).await.unwrap(), Some(written));
}

#[tokio::test]
async fn an_uploaded_file_changed_by_hand_has_a_generation_above_all_that_were() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::open(root.path()).await.unwrap();
    // What a deletion leaves that was cut off before its end: a record of an older generation.
    let old = store.create(&name(), "before".into()).await.unwrap();
    let record = root.path().join(".penstock/state.json.meta");
    let kept = fs::read(&record).unwrap();
    store.delete(&name(), &old.generation).await.unwrap();
    fs::write(&record, kept).unwrap();

    let (_, written) = upload(&store, "line\n").await;
    assert_eq!(written.generation.as_str(), "2");
    assert_eq!(store.head(&name()).await.unwrap(), Some(written));
    fs::write(root.path().join("state.json"), "and after").unwrap();
    assert_eq!(generation(&store).await, "3");
    fs::write(root.path().join("state.json"), "and after that").unwrap();
    assert_eq!(generation(&store).await, "4");
}
