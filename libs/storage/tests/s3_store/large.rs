//! Objects that are sent in parts, and objects that are made of others.

use std::io::Write;

use http::Method;
use penstock_s3_double::{Call, Fault, S3Double};
use penstock_storage::{Checksum, ErrorKind, Store};
use tempfile::NamedTempFile;

use super::{BUCKET, double, name, store};

/// More than two parts.
const LARGE_BYTES: usize = (17 << 20) + 5;

fn large() -> Vec<u8> {
    (0..=252).cycle().take(LARGE_BYTES).collect()
}

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a source file can be made");
    file.write_all(bytes).expect("a source file can be written");
    file
}

fn completes(call: &Call) -> bool {
    call.method == Method::POST && call.query.starts_with("uploadId=")
}

fn parts_sent(double: &S3Double) -> usize {
    double.calls().iter().filter(|call| call.query.contains("partNumber=")).count()
}

#[tokio::test]
async fn a_large_file_goes_up_in_parts_and_keeps_its_checksum() {
    let double = double().await;
    let store = store(&double).await;
    let (bytes, at) = (large(), name("parts/large"));
    let checksum = Checksum::of(&bytes);
    let written = store.upload(&at, file_of(&bytes).path(), checksum).await.unwrap();
    assert_eq!(written.checksum(), Some(checksum));
    assert_eq!(parts_sent(&double), 3);
    assert!(double.contents(BUCKET)["out/parts/large"] == bytes);
    // Somebody else learns the checksum without reading the object.
    let other = super::store(&double).await;
    assert_eq!(other.head(&at).await.unwrap(), Some(written));
    assert!(double.calls().iter().all(|call| call.method != Method::GET || call.path == "/bucket"));
}

#[tokio::test]
async fn an_upload_in_parts_is_create_only_and_leaves_nothing_where_it_fails() {
    let double = double().await;
    let store = store(&double).await;
    let (bytes, at) = (large(), name("parts/large"));
    let (file, checksum) = (file_of(&bytes), Checksum::of(&bytes));
    store.create(&at, "taken".into()).await.unwrap();
    let taken = store.upload(&at, file.path(), checksum).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists);
    let torn = store.upload(&name("parts/torn"), file.path(), Checksum::default()).await.unwrap_err();
    assert_eq!(torn.kind(), ErrorKind::Damaged);
    double.fail(|call| call.query.contains("partNumber=2").then_some(Fault::Refused(403, "AccessDenied")));
    let refused = store.upload(&name("parts/refused"), file.path(), checksum).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(double.contents(BUCKET).into_keys().collect::<Vec<_>>(), ["out/parts/large"]);
    assert_eq!(double.unfinished_uploads(BUCKET), 0);
}

#[tokio::test]
async fn an_upload_in_parts_whose_completion_is_not_answered_is_found_to_be_applied() {
    let double = double().await;
    let store = store(&double).await;
    let bytes = large();
    double.fail(|call| completes(call).then_some(Fault::Lost(500, "InternalError")));
    let written = store.upload(&name("a"), file_of(&bytes).path(), Checksum::of(&bytes)).await.unwrap();
    assert_eq!(written.checksum(), Some(Checksum::of(&bytes)));
    double.fail(|call| completes(call).then_some(Fault::Refused(503, "SlowDown")));
    let failed = store.upload(&name("b"), file_of(&bytes).path(), Checksum::of(&bytes)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert_eq!(double.contents(BUCKET).len(), 1);
    assert_eq!(double.unfinished_uploads(BUCKET), 0);
}

#[tokio::test]
async fn many_sources_become_one_object_whose_checksum_another_process_computes() {
    let double = double().await;
    let store = store(&double).await;
    let bytes = large();
    let mut sources = Vec::new();
    for (number, piece) in bytes.chunks(700_000).enumerate() {
        let at = penstock_storage::ObjectName::parse(format!("parts/{number:04}")).unwrap();
        let meta = store.create(&at, piece.to_vec().into()).await.unwrap();
        sources.push((meta.name, meta.generation));
    }
    let target = name("results_final.jsonl");
    let broken = |call: &Call| call.path.ends_with("0007").then_some(Fault::Broken(1_000));
    double.fail(move |call| if call.number.is_multiple_of(2) { broken(call) } else { None });
    let composed = store.compose(&target, &sources).await.unwrap();
    double.fail(|_| None);
    assert_eq!(composed.checksum(), Some(Checksum::of(&bytes)));
    assert!(double.contents(BUCKET)["out/results_final.jsonl"] == bytes);
    assert_eq!(store.compose(&target, &sources).await.unwrap_err().kind(), ErrorKind::Exists);

    let reads = || double.calls().iter().filter(|call| call.path.ends_with("results_final.jsonl")).count();
    let before = reads();
    assert_eq!(store.head(&target).await.unwrap(), Some(composed.clone()));
    assert_eq!(reads(), before + 1, "the composer knows the checksum");
    let other = super::store(&double).await;
    assert_eq!(other.head(&target).await.unwrap(), Some(composed.clone()));
    let read_for_it = reads();
    assert_eq!(other.head(&target).await.unwrap(), Some(composed));
    assert_eq!(reads(), read_for_it + 1, "the object is read once");
}
