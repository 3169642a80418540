//! Laws of `list`.

use futures_util::future::join_all;

use super::{create, name, pace};
use crate::store::Store;

/// A listing has every object with the prefix that comes after `start_after`, once, in the order of names' bytes, with
/// its size and generation, whatever the pages.
pub async fn lists_are_in_order_and_complete(store: &dyn Store) {
    // Between a name and what is below it, order is by bytes: `-` and `.` come before `/`, `0` after.
    let close =
        ["list/a-b", "list/a.b", "list/a/b", "list/a/c/d", "list/a0", "list/b", "list.", "list/ä"].map(name);
    let many = (0..120).map(|number| name(&format!("list/many/{number:08}-r.jsonl")));
    let names: Vec<_> = many.chain(close).collect();
    let written = join_all(names.iter().map(|at| create(store, at, at.to_string()))).await;

    let prefixes = [
        "list/",
        "list",
        "list/a",
        "list/a/",
        "list/many/0000001",
        "list/none",
        "list/many/00000119-r.jsonl",
    ];
    let starts = [
        None,
        Some("list/a/"),
        Some("list/a/b"),
        Some("list/many/00000050"),
        Some("list/many/00000050-r.jsonl"),
        Some("a"),
        Some("z"),
    ];
    for prefix in prefixes {
        for start in starts {
            let mut expected: Vec<_> = written
                .iter()
                .filter(|meta| meta.name.as_str().starts_with(prefix))
                .filter(|meta| start.is_none_or(|start| meta.name.as_str() > start))
                .map(|meta| (meta.name.clone(), meta.size_bytes, meta.generation.clone()))
                .collect();
            expected.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            assert_eq!(listed(store, prefix, start).await, expected, "prefix {prefix:?}, after {start:?}");
        }
    }
}

/// A listing of many objects has each that was there from its beginning to its end, once and in order, whatever comes
/// and goes meanwhile. Run it with more than the backend gives in one page.
pub async fn a_listing_of_many_pages_has_what_was_there_when_it_began(store: &dyn Store, objects: usize) {
    let below = format!("pages/{objects}/");
    let at = |number: usize| name(&format!("{below}{number:05}"));
    let mut written = Vec::new();
    for start in (0..objects).step_by(64) {
        let some = (start..objects.min(start + 64)).map(async |number| create(store, &at(number), "a").await);
        written.extend(join_all(some).await);
    }
    let gone = written.pop().expect("there are many");
    pace(store).await;

    let first = store.list(&below, None).await.expect("a page is listed");
    for new in ["00100-new", "x"] {
        create(store, &name(&format!("{below}{new}")), "new").await;
    }
    store.delete(&gone.name, &gone.generation).await.expect("it is deleted");
    let mut seen: Vec<_> = first.objects.into_iter().map(|meta| meta.name).collect();
    if let Some(next) = first.next {
        let rest = listed(store, &below, Some(&next)).await;
        seen.extend(rest.into_iter().map(|(name, ..)| name));
    }
    assert!(seen.is_sorted_by(|one, other| one < other), "out of order, or twice: {seen:?}");
    let missing: Vec<_> = written.iter().filter(|meta| seen.binary_search(&meta.name).is_err()).collect();
    assert!(missing.is_empty(), "{missing:?} were there all the time");
}

type Row = (crate::ObjectName, u64, crate::Generation);

async fn listed(store: &dyn Store, prefix: &str, start_after: Option<&str>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut after = start_after.map(str::to_owned);
    loop {
        let page = store.list(prefix, after.as_deref()).await.expect("a page is listed");
        rows.extend(page.objects.into_iter().map(|meta| (meta.name, meta.size_bytes, meta.generation)));
        match page.next {
            Some(next) => after = Some(next),
            None => return rows,
        }
    }
}
