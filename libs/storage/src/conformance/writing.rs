//! Laws of `create`, `replace`, `upload` and `delete`.

use std::collections::HashSet;
use std::io::Write;

use futures_util::stream::{self, StreamExt};
use tempfile::NamedTempFile;

use super::{content, create, name, pace};
use crate::error::ErrorKind;
use crate::generation::{Checksum, Generation};
use crate::store::Store;

/// A create on a name that is taken fails and leaves the object as it is.
pub async fn create_changes_nothing_that_exists(store: &dyn Store) {
    let at = name("create/deep/er/a");
    let first = create(store, &at, "first").await;
    pace(store).await;
    let second = store.create(&at, "second".into()).await.expect_err("the name is taken");
    assert_eq!(second.kind(), ErrorKind::Exists);
    assert_eq!(store.head(&at).await.expect("it is there"), Some(first));
}

/// Compare-and-swap: only the current generation can be replaced, and an absent object cannot.
pub async fn replace_needs_the_current_generation(store: &dyn Store) {
    let at = name("replace/a");
    let absent = store.replace(&at, "none".into(), &Generation::new("1")).await;
    assert_eq!(absent.expect_err("nothing to replace").kind(), ErrorKind::Changed);
    assert_eq!(content(store, &at).await, None);

    let first = create(store, &at, "first").await;
    pace(store).await;
    let second = store.replace(&at, "second".into(), &first.generation).await.expect("it is replaced");
    assert_eq!(second.checksum(), Some(Checksum::of(b"second")));
    pace(store).await;
    let stale = store.replace(&at, "third".into(), &first.generation).await;
    assert_eq!(stale.expect_err("that generation is gone").kind(), ErrorKind::Changed);
    assert_eq!(store.head(&at).await.expect("it is there"), Some(second));
}

/// A text that no object here has had as its generation matches none: not one that looks like another backend's, and
/// none that could be read as "no object".
pub async fn a_generation_of_another_kind_fits_nothing(store: &dyn Store) {
    let at = name("foreign/a");
    create(store, &at, "kept").await;
    for foreign in ["none-such", "0", "-1", ""].map(Generation::new) {
        let replaced = store.replace(&at, "other".into(), &foreign).await;
        assert_eq!(replaced.expect_err("not its generation").kind(), ErrorKind::Changed, "{foreign:?}");
        let deleted = store.delete(&at, &foreign).await;
        assert_eq!(deleted.expect_err("not its generation").kind(), ErrorKind::Changed, "{foreign:?}");
        let read = store.read_range(&at, &foreign, 0..1).await;
        assert_eq!(read.expect_err("not its generation").kind(), ErrorKind::Changed, "{foreign:?}");
        let target = name("foreign/target");
        let composed = store.compose(&target, &[(at.clone(), foreign.clone())]).await;
        assert_eq!(composed.expect_err("not its generation").kind(), ErrorKind::Changed, "{foreign:?}");
    }
    assert_eq!(content(store, &at).await.expect("it is still there"), "kept");
}

/// No generation comes twice for a name: not after a deletion, and not with equal bytes unless it is a digest of them.
pub async fn generations_never_repeat(store: &dyn Store) {
    let at = name("generations/a");
    let mut seen = HashSet::new();
    let content = |written: usize| {
        if store.generations_are_digests() { format!("write {written}") } else { "same".to_owned() }
    };
    for _ in 0..3 {
        let mut last = create(store, &at, content(seen.len())).await;
        assert!(seen.insert(last.generation.clone()), "{} came twice", last.generation);
        for _ in 0..2 {
            pace(store).await;
            let next = content(seen.len()).into();
            last = store.replace(&at, next, &last.generation).await.expect("it is replaced");
            assert!(seen.insert(last.generation.clone()), "{} came twice", last.generation);
        }
        pace(store).await;
        store.delete(&at, &last.generation).await.expect("it is deleted");
        pace(store).await;
    }
}

/// Only the current generation can be deleted; deleting what is not there succeeds.
pub async fn delete_needs_the_current_generation(store: &dyn Store) {
    let at = name("delete/a");
    let first = create(store, &at, "first").await;
    pace(store).await;
    let second = store.replace(&at, "second".into(), &first.generation).await.expect("it is replaced");
    pace(store).await;
    let stale = store.delete(&at, &first.generation).await;
    assert_eq!(stale.expect_err("that generation is gone").kind(), ErrorKind::Changed);
    assert_eq!(content(store, &at).await.expect("it is still there"), "second");
    for _ in 0..2 {
        store.delete(&at, &second.generation).await.expect("it is deleted, or was");
        assert_eq!(store.head(&at).await.expect("an absence is seen"), None);
        assert_eq!(store.list("delete/", None).await.expect("nothing is listed").objects, []);
    }
}

/// Many objects are deleted as one is: what is absent is success, and what has another generation stays, tells its
/// error, and keeps no other from being deleted.
pub async fn delete_all_deletes_each_that_it_can(store: &dyn Store) {
    let names = (0..=2 * store.deletes_at_once().get()).map(|number| name(&format!("many/{number:04}")));
    let mut objects: Vec<_> = stream::iter(names)
        .map(|at| async move { create(store, &at, "a").await })
        .buffered(16)
        .map(|meta| (meta.name, meta.generation))
        .collect()
        .await;
    let (changed, seen) = objects[1].clone();
    pace(store).await;
    store.replace(&changed, "b".into(), &seen).await.expect("it is replaced");
    pace(store).await;
    objects.insert(0, (name("many/absent"), Generation::new("1")));
    let stale = store.delete_all(&objects).await.expect_err("that generation is gone");
    assert_eq!(stale.kind(), ErrorKind::Changed);
    assert_eq!(stale.object(), changed.as_str());
    let left = store.list("many/", None).await.expect("they are listed").objects;
    assert_eq!(left.iter().map(|object| &object.name).collect::<Vec<_>>(), [&changed]);

    let rest: Vec<_> = left.into_iter().map(|meta| (meta.name, meta.generation)).collect();
    for _ in 0..2 {
        pace(store).await;
        store.delete_all(&rest).await.expect("they are deleted, or were");
        assert_eq!(store.head(&changed).await.expect("an absence is seen"), None);
    }
    store.delete_all(&[]).await.expect("nothing is to be done");
    let again = create(store, &changed, "c").await;
    assert!(again.generation != seen && again.generation != rest[0].1, "a generation came twice");
}

/// An upload writes what its file holds, under the precondition of a create.
pub async fn upload_is_a_create(store: &dyn Store) {
    let at = name("upload/a");
    let bytes = b"line\n".repeat(100_000);
    let source = file_of(&bytes);
    let written = store.upload(&at, source.path(), Checksum::of(&bytes)).await.expect("the file is uploaded");
    assert_eq!(written.checksum(), Some(Checksum::of(&bytes)));
    pace(store).await;
    let again = store.upload(&at, source.path(), Checksum::of(&bytes)).await;
    assert_eq!(again.expect_err("the name is taken").kind(), ErrorKind::Exists);
    drop(source);
    let (found, read) = store.get(&at, u64::MAX).await.expect("it is read").expect("it outlives its source");
    assert_eq!(found, written);
    assert!(read == bytes, "other bytes than the file's");
}

/// A file that is not what its uploader thinks is not uploaded.
pub async fn upload_refuses_a_source_of_another_size(store: &dyn Store) {
    let at = name("upload/torn");
    let source = file_of(b"tor");
    let torn = store.upload(&at, source.path(), Checksum::of(b"torn")).await;
    assert_eq!(torn.expect_err("a byte is missing").kind(), ErrorKind::Damaged);
    assert_eq!(store.head(&at).await.expect("an absence is seen"), None);
}

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a source file can be made");
    file.write_all(bytes).expect("a source file can be written");
    file
}
