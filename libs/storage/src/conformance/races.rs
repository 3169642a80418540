//! Laws of calls that overlap.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::join_all;

use super::{LIMIT_BYTES, content, create, name, pace};
use crate::Result;
use crate::error::ErrorKind;
use crate::generation::{Checksum, ObjectMeta};
use crate::store::Store;

/// Of many creates of one name exactly one wins, and its content is the object's.
pub async fn of_many_creates_one_wins(store: &dyn Store) {
    let at = &name("race/create");
    let create = |writer| decided(store, move || store.create(at, text_of(writer)));
    let winner = only_winner(join_all((0..24).map(create)).await, ErrorKind::Exists);
    assert_eq!(content(store, at).await.expect("it is there"), text_of(winner));
}

/// Of many replaces of one generation exactly one wins, and its content is the object's.
pub async fn of_many_replaces_one_wins(store: &dyn Store) {
    let at = &name("race/replace");
    let old = &create(store, at, "old").await.generation;
    pace(store).await;
    let replace = |writer| decided(store, move || store.replace(at, text_of(writer), old));
    let winner = only_winner(join_all((0..24).map(replace)).await, ErrorKind::Changed);
    assert_eq!(content(store, at).await.expect("it is there"), text_of(winner));
}

fn text_of(writer: usize) -> Bytes {
    format!("by {writer}").into()
}

/// The outcome of a write that the backend decides: one that it has no time for is made again.
async fn decided<F>(store: &dyn Store, mut write: impl FnMut() -> F) -> Result<ObjectMeta>
where
    F: Future<Output = Result<ObjectMeta>>,
{
    loop {
        match write().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => pace(store).await,
            outcome => return outcome,
        }
    }
}

/// Which of the writers has won; all others must have met `loss`.
fn only_winner(outcomes: Vec<Result<ObjectMeta>>, loss: ErrorKind) -> usize {
    let mut winners = Vec::new();
    for (writer, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(_) => winners.push(writer),
            Err(error) => assert_eq!(error.kind(), loss, "{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?} have all won");
    winners[0]
}

/// A counter that many writers raise by compare-and-swap misses no increment.
pub async fn no_increment_by_replace_is_lost(store: &dyn Store) {
    const WRITERS: u64 = 6;
    let increments = if store.mutation_interval().is_zero() { 5 } else { 1 };
    let at = name("race/counter");
    create(store, &at, "0").await;
    join_all((0..WRITERS).map(|_| async {
        for _ in 0..increments {
            increment(store, &at).await;
        }
    }))
    .await;
    assert_eq!(content(store, &at).await.expect("it is there"), (WRITERS * increments).to_string());
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
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Changed, "{error}"),
        }
    }
}

/// A read of a generation that is being replaced gives exactly its bytes, or says that it is gone.
pub async fn a_pinned_read_beside_a_replace_is_of_its_generation(store: &dyn Store) {
    let at = name("race/pinned");
    let contents = [vec![b'a'; 300_000], vec![b'b'; 300_000]];
    let mut last = create(store, &at, contents[0].clone()).await;
    for round in 1..rounds(store) {
        pace(store).await;
        let old = last.generation.clone();
        let (was, next) = (&contents[(round + 1) % 2], contents[round % 2].clone());
        let read = join_all((0..4).map(|_| async {
            tokio::task::yield_now().await;
            store.read_range(&at, &old, 0..300_000).await
        }));
        let (replaced, read) = tokio::join!(store.replace(&at, next.into(), &old), read);
        last = replaced.expect("it is replaced");
        for outcome in read {
            match outcome {
                Ok(bytes) => assert!(bytes == *was, "bytes of another generation"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Changed, "{error}"),
            }
        }
    }
}

/// How often a race is run: fewer times where each write waits.
fn rounds(store: &dyn Store) -> usize {
    if store.mutation_interval().is_zero() { 10 } else { 4 }
}

/// A reader beside a writer sees one content or the other, with the checksum and generation of that one.
pub async fn readers_see_only_whole_objects(store: &dyn Store) {
    let at = name("race/whole");
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    let mut last = create(store, &at, contents[0].clone()).await;
    let done = AtomicBool::new(false);
    let write = async {
        for round in 1..rounds(store) {
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
