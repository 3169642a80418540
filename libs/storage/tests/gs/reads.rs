//! Reads that break off, stand still or fail: they go on where they were, a few times.

use bytes::Bytes;
use penstock_gcs_double::{Calls, Fault, Operation};
use penstock_storage::{ErrorKind, ObjectMeta, Store};

use crate::bucket::{Bucket, name, pattern};

const SIZE: usize = 3 << 20;

async fn object(bucket: &Bucket) -> (ObjectMeta, Bytes) {
    let bytes = pattern(SIZE);
    let meta = bucket.store("out").await.create(&name("a"), bytes.clone()).await.unwrap();
    (meta, bytes)
}

#[tokio::test]
async fn a_read_goes_on_where_it_broke_off() {
    let bucket = Bucket::without_pace().await;
    let (meta, bytes) = object(&bucket).await;
    let store = bucket.store("out").await;
    bucket.fail(Operation::Read, Fault::BreakResponse { after_bytes: 1 << 20 }, Calls::First(2));
    let read = store.read_range(&meta.name, &meta.generation, 5..SIZE as u64).await.unwrap();
    assert!(read == bytes[5..], "other bytes");
    let asked = bucket.asked(Operation::Read);
    assert_eq!(asked.len(), 3);
    let sent: u64 = asked.iter().map(|entry| entry.sent_bytes).sum();
    assert!(sent < SIZE as u64 + (1 << 20), "{sent} bytes were sent for {SIZE}");

    bucket.fail(Operation::Read, Fault::BreakResponse { after_bytes: 1 << 20 }, Calls::First(2));
    let (found, read) = store.get(&meta.name, SIZE as u64).await.unwrap().unwrap();
    assert!(found == meta && read == bytes, "other bytes");
}

#[tokio::test]
async fn a_read_that_stands_still_is_begun_anew() {
    let bucket = Bucket::without_pace().await;
    let (meta, bytes) = object(&bucket).await;
    bucket.fail(Operation::Read, Fault::StallBefore, Calls::First(1));
    let read = bucket.store("out").await.read_range(&meta.name, &meta.generation, 0..9).await.unwrap();
    assert_eq!(read, bytes[..9]);
}

#[tokio::test]
async fn what_changes_nothing_is_tried_a_few_times_and_then_told() {
    for operation in [Operation::Read, Operation::Get, Operation::List] {
        let bucket = Bucket::without_pace().await;
        let (meta, _) = object(&bucket).await;
        let store = bucket.store("out").await;
        let look = async || match operation {
            Operation::Read => store.read_range(&meta.name, &meta.generation, 0..9).await.map(drop),
            Operation::Get => store.head(&meta.name).await.map(drop),
            _ => store.list("", None).await.map(drop),
        };
        bucket.fail(operation, Fault::ErrorBefore { status: 503 }, Calls::First(2));
        look().await.unwrap();
        bucket.fail(operation, Fault::ErrorBefore { status: 503 }, Calls::All);
        let told = look().await.unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Unavailable, "{told}");
    }
}
