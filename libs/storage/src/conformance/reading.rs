//! Laws of `head`, `get` and `read_range`.

use futures_util::future::join_all;

use super::{LIMIT_BYTES, content, create, name, pace};
use crate::error::ErrorKind;
use crate::generation::{Checksum, Generation};
use crate::store::Store;

/// A look at nothing finds nothing; only a pinned read, whose caller knows better, fails.
pub async fn absent_is_not_an_error(store: &dyn Store) {
    let at = name("absent/a");
    assert_eq!(store.head(&at).await.expect("an absence is seen"), None);
    assert_eq!(content(store, &at).await, None);
    let pinned = store.read_range(&at, &Generation::new("1"), 0..0).await;
    assert_eq!(pinned.expect_err("nothing to read").kind(), ErrorKind::NotFound);
}

/// Read-after-write: content, size, CRC32C and generation are those that the write answered with.
pub async fn what_was_written_is_read_at_once(store: &dyn Store) {
    for (at, bytes) in [("written/empty", ""), ("written/some", "some\n")] {
        let at = name(at);
        let written = create(store, &at, bytes).await;
        assert_eq!(written.name, at);
        assert_eq!(written.checksum(), Some(Checksum::of(bytes.as_bytes())));
        assert_eq!(store.head(&at).await.expect("it is there"), Some(written.clone()));
        let (found, read) = store.get(&at, LIMIT_BYTES).await.expect("it is read").expect("it is there");
        assert_eq!((found, read.as_ref()), (written, bytes.as_bytes()));
    }
}

/// A range gives exactly its bytes; one past the end gives none.
pub async fn ranges_are_exact(store: &dyn Store) {
    let at = name("ranges/a");
    let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
    let written = create(store, &at, bytes.clone()).await;
    for range in [0..0, 0..1, 0..100_000, 1..2, 65_535..65_537, 99_999..100_000, 100_000..100_000] {
        let read = store.read_range(&at, &written.generation, range.start as u64..range.end as u64).await;
        assert!(read.expect("the range is read") == bytes[range.clone()], "{range:?} gave other bytes");
    }
    for range in [0..100_001, 100_000..100_001, 200_000..200_001] {
        let read = store.read_range(&at, &written.generation, range.clone()).await;
        assert_eq!(read.expect_err("past the end").kind(), ErrorKind::Invalid, "{range:?}");
    }
}

/// Every range of a few bytes gives exactly its bytes, and every one past their end none.
pub async fn ranges_are_exact_at_every_edge(store: &dyn Store) {
    const BYTES: &[u8] = b"012345";
    let at = name("edges/a");
    let written = create(store, &at, BYTES).await;
    let size = BYTES.len();
    for range in (0..=size + 1).flat_map(|end| (0..=end).map(move |start| start..end)) {
        let read = store.read_range(&at, &written.generation, range.start as u64..range.end as u64).await;
        match BYTES.get(range.clone()) {
            Some(expected) => assert_eq!(read.expect("the range is read"), expected, "{range:?}"),
            None => assert_eq!(read.expect_err("past the end").kind(), ErrorKind::Invalid, "{range:?}"),
        }
    }
}

/// An object of no bytes is there like any other: read, listed, replaced and pinned to its generation.
pub async fn an_empty_object_is_an_object(store: &dyn Store) {
    let at = name("empty/a");
    let written = create(store, &at, "").await;
    let nothing = store.read_range(&at, &written.generation, 0..0).await;
    assert_eq!(nothing.expect("no bytes are read"), "");
    let past = store.read_range(&at, &written.generation, 0..1).await;
    assert_eq!(past.expect_err("it has no byte").kind(), ErrorKind::Invalid);
    assert_eq!(
        store.get(&at, 0).await.expect("it is read").expect("it is there"),
        (written.clone(), "".into())
    );
    let listed = store.list("empty/", None).await.expect("it is listed").objects;
    assert_eq!(listed.iter().map(|meta| (&meta.name, meta.size_bytes)).collect::<Vec<_>>(), [(&at, 0)]);
    pace(store).await;
    let full = store.replace(&at, "full".into(), &written.generation).await.expect("it is replaced");
    let stale = store.read_range(&at, &written.generation, 0..0).await;
    assert_eq!(stale.expect_err("that generation is gone").kind(), ErrorKind::Changed);
    pace(store).await;
    let empty = store.replace(&at, "".into(), &full.generation).await.expect("it is replaced");
    assert_eq!(empty.checksum(), Some(Checksum::of(b"")));
    assert_eq!(content(store, &at).await.expect("it is still there"), "");
}

/// A read of an old generation never gives bytes of a new one.
pub async fn reads_are_pinned_to_a_generation(store: &dyn Store) {
    let at = name("pinned/a");
    let old = create(store, &at, "old").await;
    pace(store).await;
    let new = store.replace(&at, "new".into(), &old.generation).await.expect("it is replaced");
    let stale = store.read_range(&at, &old.generation, 0..3).await;
    assert_eq!(stale.expect_err("that generation is gone").kind(), ErrorKind::Changed);
    assert_eq!(store.read_range(&at, &new.generation, 0..3).await.expect("it is read"), "new");
}

/// `get` refuses what its caller has no room for.
pub async fn a_large_object_is_not_taken_for_a_small_one(store: &dyn Store) {
    let at = name("large/a");
    create(store, &at, "12345").await;
    assert_eq!(store.get(&at, 4).await.expect_err("5 bytes where 4 may be").kind(), ErrorKind::Invalid);
    assert!(store.get(&at, 5).await.expect("5 bytes may be").is_some());
}

/// Every name that can be made is a name of its own.
pub async fn odd_names_are_names(store: &dyn Store) {
    let long = format!("odd/{}", "l".repeat(250));
    let deep = format!("odd/{}", ["d".repeat(250), "e".repeat(250), "f".repeat(250)].join("/"));
    let odd = [
        "odd/a b",
        "odd/a%20b",
        "odd/a+b",
        "odd/%2F",
        "odd/#?&=",
        "odd/ä",
        "odd/a\u{308}",
        "odd/\"'`\\",
        "odd/*[x]",
        "odd/~",
        "odd/-",
        "odd/...",
        "odd/.hidden",
        "odd/a.meta",
        "odd/a",
        "odd/A",
        "odd/ a ",
        "odd/a.",
        "odd/a\u{a0}b",
        "odd/\u{1f980}",
        "odd/%00",
        "odd/$(a);{b}|c<d>^",
        "odd/a:b@c!",
        "odd/CON",
        "odd/c:/d",
        &long,
        &deep,
    ];
    join_all(odd.map(|at| async move { create(store, &name(at), at.to_owned()).await })).await;
    for at in odd {
        assert_eq!(content(store, &name(at)).await.expect("it is there"), at);
    }
    let listed = store.list("odd/", None).await.expect("they are listed").objects;
    let mut expected = odd;
    expected.sort_unstable();
    assert!(listed.iter().map(|meta| meta.name.as_str()).eq(expected), "{listed:?}");
}
