//! An object as a job's input: in order by one request, pinned, and refused where it cannot be read as it is.

use bytes::Bytes;
use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::client::Storage;
use penstock_gcs_double::{Calls, Fault, Operation};
use penstock_storage::{ErrorKind, Input, Result, Store};

use crate::bucket::{Bucket, name, pattern};

const SIZE: usize = 5 << 20;

async fn written(bucket: &Bucket) -> Bytes {
    let bytes = pattern(SIZE);
    bucket.store("in").await.create(&name("a b.jsonl"), bytes.clone()).await.unwrap();
    bytes
}

async fn in_order(input: &dyn Input, range: std::ops::Range<u64>) -> Result<Vec<Bytes>> {
    let mut chunks = input.chunks(range);
    let mut read = Vec::new();
    while let Some(chunk) = chunks.next().await? {
        read.push(chunk);
    }
    assert!(chunks.next().await.unwrap().is_none());
    Ok(read)
}

#[tokio::test]
async fn an_input_is_read_in_order_by_one_request() {
    let bucket = Bucket::without_pace().await;
    let bytes = written(&bucket).await;
    let input = bucket.input("in/a b.jsonl").await.unwrap();
    assert_eq!((input.uri(), input.size_bytes()), ("gs://bucket/in/a b.jsonl", SIZE as u64));
    let chunks = in_order(&input, 0..SIZE as u64).await.unwrap();
    assert!(chunks.concat() == bytes, "other bytes");
    assert!(
        chunks.iter().rev().skip(1).all(|chunk| (256 << 10..1 << 20).contains(&chunk.len())),
        "{chunks:?}"
    );
    assert_eq!(bucket.asked(Operation::Read).len(), 1);

    assert!(in_order(&input, 7..SIZE as u64 - 7).await.unwrap().concat() == bytes[7..SIZE - 7]);
    assert_eq!(in_order(&input, 9..9).await.unwrap(), Vec::<Bytes>::new());
    assert_eq!(input.read(SIZE as u64 - 3..SIZE as u64).await.unwrap(), bytes[SIZE - 3..]);
    assert_eq!(input.read(0..0).await.unwrap(), "");
    assert_eq!(input.read(0..SIZE as u64 + 1).await.unwrap_err().kind(), ErrorKind::Invalid);
    input.verify_unchanged().await.unwrap();
}

#[tokio::test]
async fn an_input_goes_on_where_it_broke_off() {
    let bucket = Bucket::without_pace().await;
    let bytes = written(&bucket).await;
    let input = bucket.input("in/a b.jsonl").await.unwrap();
    bucket.fail(
        Operation::Read,
        Fault::BreakResponse { after_bytes: 1_000_000 },
        Calls::Nth(vec![1, 2, 3, 4]),
    );
    assert!(in_order(&input, 0..SIZE as u64).await.unwrap().concat() == bytes, "other bytes");
    assert_eq!(bucket.asked(Operation::Read).len(), 5);
}

#[tokio::test]
async fn an_input_that_is_replaced_or_deleted_under_way_is_not_read_any_more() {
    for replaced in [true, false] {
        let bucket = Bucket::without_pace().await;
        written(&bucket).await;
        let (store, at) = (bucket.store("in").await, name("a b.jsonl"));
        let input = bucket.input("in/a b.jsonl").await.unwrap();
        bucket.fail(Operation::Read, Fault::BreakResponse { after_bytes: 2_000_000 }, Calls::First(1));
        let mut chunks = input.chunks(0..SIZE as u64);
        chunks.next().await.unwrap().unwrap();
        let expected = if replaced {
            store.replace(&at, vec![b'x'; SIZE].into(), input.generation()).await.unwrap();
            ErrorKind::Changed
        } else {
            store.delete(&at, input.generation()).await.unwrap();
            ErrorKind::NotFound
        };
        let mut read = 0;
        let told = loop {
            match chunks.next().await {
                Ok(chunk) => read += chunk.unwrap().len(),
                Err(error) => break error,
            }
        };
        assert!(read < 2_000_000, "{read} bytes were read of what was gone");
        assert_eq!(told.kind(), expected, "{told}");
        assert_eq!(input.read(0..5).await.unwrap_err().kind(), expected);
        assert_eq!(input.verify_unchanged().await.unwrap_err().kind(), expected);
    }
}

#[tokio::test]
async fn an_empty_input_has_no_chunks() {
    let bucket = Bucket::without_pace().await;
    bucket.store("in").await.create(&name("empty"), Bytes::new()).await.unwrap();
    let input = bucket.input("in/empty").await.unwrap();
    assert_eq!(in_order(&input, 0..0).await.unwrap(), Vec::<Bytes>::new());
}

#[tokio::test]
async fn an_input_that_is_stored_compressed_is_refused() {
    let bucket = Bucket::without_pace().await;
    let client = Storage::builder()
        .with_endpoint(bucket.server.url())
        .with_credentials(anonymous::Builder::new().build())
        .build()
        .await
        .unwrap();
    let write = client
        .write_object("projects/_/buckets/bucket", "in.jsonl", "not lines")
        .set_if_generation_match(0)
        .set_content_encoding("gzip");
    Box::pin(write.send_unbuffered()).await.unwrap();
    let refused = bucket.input("in.jsonl").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let told = refused.to_string();
    assert!(told.contains("`gs://bucket/in.jsonl`") && told.contains("Content-Encoding: gzip"), "{told}");
}
