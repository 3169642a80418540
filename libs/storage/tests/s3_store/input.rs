//! An object as a job's input.

use std::sync::Arc;

use http::Method;
use penstock_s3_double::{Fault, S3Double};
use penstock_storage::{ErrorKind, Input, InputReader, S3Input, StorageError};

use super::{BUCKET, bucket, double};

const KEY: &str = "in/ä b.jsonl";

async fn open(double: &S3Double) -> Result<S3Input, StorageError> {
    S3Input::open(bucket(double), KEY).await
}

fn lines() -> Vec<u8> {
    (0..=240).cycle().take(2_000_000).collect()
}

#[tokio::test]
async fn an_object_is_read_in_order_by_one_request() {
    let double = double().await;
    let content = lines();
    double.put(BUCKET, KEY, content.clone(), None);
    let input = open(&double).await.unwrap();
    assert_eq!(input.uri(), "s3://bucket/in/ä b.jsonl");
    assert_eq!(input.size_bytes(), 2_000_000);
    assert_eq!(input.read(5..9).await.unwrap(), content[5..9]);
    input.verify_unchanged().await.unwrap();

    let before = double.calls().len();
    let mut reader = InputReader::new(Arc::new(input), 7..1_999_999);
    let mut read = Vec::new();
    while let Some(chunk) = reader.next().await.unwrap() {
        read.extend_from_slice(&chunk);
    }
    assert!(read == content[7..1_999_999]);
    assert_eq!(double.calls().len(), before + 1);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed() {
    let double = double().await;
    let content = lines();
    double.put(BUCKET, KEY, content.clone(), None);
    let input = open(&double).await.unwrap();
    let begun = double.calls().len();
    double.fail(move |call| (call.number == begun).then_some(Fault::Broken(1_000_000)));
    let mut chunks = input.chunks(0..2_000_000);
    let mut read = Vec::new();
    while let Some(chunk) = chunks.next().await.unwrap() {
        read.extend_from_slice(&chunk);
    }
    assert!(read == content);
}

#[tokio::test]
async fn an_input_that_is_replaced_or_deleted_is_not_read_any_more() {
    let double = double().await;
    double.put(BUCKET, KEY, "before", None);
    let input = open(&double).await.unwrap();
    double.put(BUCKET, KEY, "after!", None);
    assert_eq!(input.read(0..6).await.unwrap_err().kind(), ErrorKind::Changed);
    assert_eq!(input.chunks(0..6).next().await.unwrap_err().kind(), ErrorKind::Changed);
    assert_eq!(input.verify_unchanged().await.unwrap_err().kind(), ErrorKind::Changed);

    let elsewhere = S3Input::open(bucket(&double), "in/none.jsonl").await.unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::NotFound);
    assert!(elsewhere.to_string().starts_with("open `s3://bucket/in/none.jsonl`: there is no such object; "));
}

#[tokio::test]
async fn an_object_that_is_stored_compressed_is_refused() {
    let double = double().await;
    double.put(BUCKET, KEY, "compressed", Some("gzip"));
    let refused = open(&double).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("`Content-Encoding: gzip`; store it as plain text"), "{refused}");
}

#[tokio::test]
async fn an_outage_while_reading_may_pass() {
    let double = double().await;
    double.put(BUCKET, KEY, lines(), None);
    let input = open(&double).await.unwrap();
    double.fail(|call| (call.method == Method::GET).then_some(Fault::Refused(503, "SlowDown")));
    let mut chunks = input.chunks(0..2_000_000);
    assert_eq!(chunks.next().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(chunks.next().await.unwrap(), None, "nothing more comes after an error");
}
