//! Uploading and composing: which bytes an object has, and that spoiled ones go no further.

use std::{fs, os::unix::fs::MetadataExt};

use penstock_storage::{Checksum, ErrorKind, FileStore, ObjectName, Store};

use crate::{LIMIT_BYTES, content, name};

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
