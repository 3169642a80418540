//! Laws of calls that overlap.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;

use super::{LIMIT_BYTES, content, create, name, pace};
use crate::error::ErrorKind;
use crate::generation::Checksum;
use crate::store::Store;

/// Of many creates of one name exactly one wins, and its content is the object's.
pub async fn of_many_creates_one_wins(store: &dyn Store) {
    let at = name("race/create");
    let attempts = (0..24).map(|number| store.create(&at, format!("by {number}").into()));
    let outcomes = join_all(attempts).await;
    let mut winners = Vec::new();
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(_) => winners.push(format!("by {number}")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Exists, "{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?} all won");
    assert_eq!(content(store, &at).await.expect("it is there"), winners[0]);
}

/// A counter that many writers raise by compare-and-swap misses no increment.
pub async fn no_increment_by_replace_is_lost(store: &dyn Store) {
    const WRITERS: u64 = 6;
    const INCREMENTS: u64 = 5;
    let at = name("race/counter");
    create(store, &at, "0").await;
    join_all((0..WRITERS).map(|_| async {
        for _ in 0..INCREMENTS {
            increment(store, &at).await;
        }
    }))
    .await;
    assert_eq!(content(store, &at).await.expect("it is there"), (WRITERS * INCREMENTS).to_string());
}

/// Raises the number in an object by one, however often others come first.
pub async fn increment(store: &dyn Store, at: &crate::ObjectName) {
    loop {
        pace(store).await;
        let (meta, content) = store.get(at, LIMIT_BYTES).await.expect("it is read").expect("it is there");
        let count: u64 =
            std::str::from_utf8(&content).ok().and_then(|text| text.parse().ok()).expect("a number");
        match store.replace(at, (count + 1).to_string().into(), &meta.generation).await {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Changed, "{error}"),
        }
    }
}

/// A reader beside a writer sees one content or the other, with the checksum and generation of that one.
pub async fn readers_see_only_whole_objects(store: &dyn Store) {
    let at = name("race/whole");
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    let mut last = create(store, &at, contents[0].clone()).await;
    let done = AtomicBool::new(false);
    let write = async {
        for round in 1..10 {
            pace(store).await;
            let next = contents[round % 2].clone();
            last = store.replace(&at, next.into(), &last.generation).await.expect("it is replaced");
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let read = join_all((0..3).map(|_| async {
        loop {
            let last_round = done.load(Ordering::Relaxed);
            let (meta, read) = store.get(&at, LIMIT_BYTES).await.expect("it is read").expect("it is there");
            assert!(contents.iter().any(|content| read == content), "half an object of {} bytes", read.len());
            assert_eq!(meta.checksum(), Some(Checksum::of(&read)));
            if last_round {
                return;
            }
            tokio::task::yield_now().await;
        }
    }));
    tokio::join!(write, read);
}
