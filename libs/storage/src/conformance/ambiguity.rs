//! Laws of writes that fail: what is there afterwards is the write or what was there before, whole. They hold, and only
//! then say something, for a store whose calls fail now and then.

use bytes::Bytes;

use super::{LIMIT_BYTES, name, pace};
use crate::Result;
use crate::error::ErrorKind;
use crate::generation::{Checksum, ObjectMeta};
use crate::name::ObjectName;
use crate::store::Store;

/// After a create whose answer leaves it open, the object is there with its bytes or not there, and a second create comes
/// to the same end.
pub async fn a_failed_write_is_whole_or_absent(store: &dyn Store) {
    for number in 0..20 {
        let at = name(&format!("open/{number:02}"));
        let content = Bytes::from(format!("content {number}"));
        match store.create(&at, content.clone()).await {
            Ok(meta) => assert_eq!(present(store, &at).await, Some((meta, content))),
            Err(error) => {
                assert!(error.ambiguous(), "{error}");
                if let Some((_, found)) = present(store, &at).await {
                    assert_eq!(found, content, "after {error}");
                }
                pace(store).await;
                create_somehow(store, &at, &content).await;
            }
        }
    }
}

/// After a replace whose answer leaves it open, the object is the old one or the new one, with the generation of that
/// one.
pub async fn a_failed_replace_leaves_one_of_two(store: &dyn Store) {
    let rounds = if store.mutation_interval().is_zero() { 20 } else { 4 };
    let at = name("open/replaced");
    let mut last = create_somehow(store, &at, &Bytes::from_static(b"round 0")).await;
    for round in 1..=rounds {
        pace(store).await;
        let (old, new) = (format!("round {}", round - 1), format!("round {round}"));
        let replaced = store.replace(&at, new.clone().into(), &last.generation).await;
        let (meta, found) = present(store, &at).await.expect("it is there in either case");
        assert_eq!(meta.checksum(), Some(Checksum::of(&found)));
        match replaced {
            Ok(told) => assert_eq!((meta.clone(), found.as_ref()), (told, new.as_bytes())),
            Err(error) => {
                assert!(error.ambiguous(), "{error}");
                assert!(
                    found == new || (found == old && meta.generation == last.generation),
                    "{found:?} after {error}"
                );
            }
        }
        last = if found == new {
            meta
        } else {
            pace(store).await;
            replace_somehow(store, &at, &new.into(), meta).await
        };
    }
}

/// Creates until the object is there; it must be the one that was sent.
async fn create_somehow(store: &dyn Store, at: &ObjectName, content: &Bytes) -> ObjectMeta {
    loop {
        match store.create(at, content.clone()).await {
            Ok(meta) => return meta,
            Err(error) => assert!(error.ambiguous(), "{error}"),
        }
        if let Some((meta, found)) = present(store, at).await {
            assert_eq!(found, content);
            return meta;
        }
        pace(store).await;
    }
}

/// Replaces until the object has `content`.
async fn replace_somehow(
    store: &dyn Store,
    at: &ObjectName,
    content: &Bytes,
    mut last: ObjectMeta,
) -> ObjectMeta {
    loop {
        match store.replace(at, content.clone(), &last.generation).await {
            Ok(meta) => return meta,
            Err(error) => assert!(error.ambiguous(), "{error}"),
        }
        let (meta, found) = present(store, at).await.expect("it is there in either case");
        if found == content {
            return meta;
        }
        last = meta;
        pace(store).await;
    }
}

/// What is there, read until the read works.
async fn present(store: &dyn Store, at: &ObjectName) -> Option<(ObjectMeta, Bytes)> {
    let until_read: Result<_> = loop {
        match store.get(at, LIMIT_BYTES).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            read => break read,
        }
    };
    until_read.expect("an object or its absence is read")
}
