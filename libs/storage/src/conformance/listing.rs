//! Laws of `list`.

use futures_util::future::join_all;

use super::{create, name};
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
