//! Laws of `compose`.

use bytes::Bytes;

use super::{content, create, name, pace};
use crate::error::ErrorKind;
use crate::generation::{Checksum, Generation};
use crate::name::ObjectName;
use crate::store::Store;

/// The target holds the sources' bytes in the order given, a source given twice twice.
pub async fn compose_concatenates_in_order(store: &dyn Store) {
    let sources = sources(store, "compose/order").await;
    let [first, empty, last] = &sources;
    let target = name("compose/order/target");
    let order = [last.clone(), first.clone(), empty.clone(), last.clone()];
    let written = store.compose(&target, &order).await.expect("they are composed");
    assert_eq!(content(store, &target).await.expect("it is there"), "last\nfirst\nlast\n");
    assert_eq!(written.checksum(), Some(Checksum::of(b"last\nfirst\nlast\n")));
    assert_eq!(store.head(&target).await.expect("it is there"), Some(written));
}

/// A compose on a name that is taken changes nothing.
pub async fn compose_is_a_create(store: &dyn Store) {
    let sources = sources(store, "compose/create").await;
    let target = name("compose/create/target");
    create(store, &target, "taken").await;
    pace(store).await;
    let second = store.compose(&target, &sources).await.expect_err("the name is taken");
    assert_eq!(second.kind(), ErrorKind::Exists);
    assert_eq!(content(store, &target).await.expect("it is there"), "taken");
}

/// What was announced changes nothing about what is composed, whether or not the compose keeps to it.
pub async fn announcements_change_no_content(store: &dyn Store) {
    let [first, empty, last] = sources(store, "compose/announced").await;
    let kept = name("compose/announced/kept");
    store.announce(&first.0, std::slice::from_ref(&first)).await.expect("it is announced");
    store.announce(&first.0, &[empty.clone(), last.clone()]).await.expect("more is announced");
    let order = [first.clone(), empty.clone(), last.clone(), first.clone()];
    let written = store.compose(&kept, &order).await.expect("they are composed");
    assert_eq!(content(store, &kept).await.expect("it is there"), "first\nlast\nfirst\n");
    assert_eq!(written.checksum(), Some(Checksum::of(b"first\nlast\nfirst\n")));

    let other = name("compose/announced/other");
    store.announce(&first.0, &[first.clone(), empty]).await.expect("it is announced");
    store.compose(&other, &[first.clone(), last.clone()]).await.expect("they are composed");
    assert_eq!(content(store, &other).await.expect("it is there"), "first\nlast\n");

    let again = name("compose/announced/again");
    store.announce(&last.0, std::slice::from_ref(&first)).await.expect("nothing was announced before it");
    store.compose(&again, std::slice::from_ref(&last)).await.expect("it is composed");
    assert_eq!(content(store, &again).await.expect("it is there"), "last\n");
}

/// A source that is gone, or has another generation, fails the whole.
pub async fn compose_is_pinned_to_its_sources(store: &dyn Store) {
    let [first, _, last] = sources(store, "compose/pinned").await;
    let target = name("compose/pinned/target");
    let absent = (name("compose/pinned/absent"), Generation::new("1"));
    let gone = store.compose(&target, &[first.clone(), absent]).await.expect_err("a source is absent");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    pace(store).await;
    store.replace(&last.0, "other".into(), &last.1).await.expect("it is replaced");
    let stale = store.compose(&target, &[first, last]).await.expect_err("a source is another");
    assert_eq!(stale.kind(), ErrorKind::Changed);
    assert_eq!(content(store, &target).await, None);
}

/// As many sources as the backend says are composed; none, or one more, are refused.
pub async fn compose_keeps_its_limit(store: &dyn Store) {
    let target = name("compose/limit/target");
    let none = store.compose(&target, &[]).await.expect_err("no source");
    assert_eq!(none.kind(), ErrorKind::Invalid);

    let [first, ..] = sources(store, "compose/limit").await;
    let at_limit = store.compose_limit().unwrap_or(100);
    if store.compose_limit().is_some() {
        let more = store.compose(&target, &vec![first.clone(); at_limit + 1]).await;
        assert_eq!(more.expect_err("one source too many").kind(), ErrorKind::Invalid);
    }
    store.compose(&target, &vec![first; at_limit]).await.expect("they are composed");
    assert_eq!(content(store, &target).await.expect("it is there"), Bytes::from("first\n".repeat(at_limit)));
}

async fn sources(store: &dyn Store, below: &str) -> [(ObjectName, Generation); 3] {
    let mut sources = Vec::new();
    for (at, bytes) in [("1", "first\n"), ("2", ""), ("3", "last\n")] {
        let meta = create(store, &name(&format!("{below}/{at}")), bytes).await;
        sources.push((meta.name, meta.generation));
    }
    sources.try_into().expect("invariant: there are three")
}
