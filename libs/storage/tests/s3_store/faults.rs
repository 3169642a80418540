//! Answers that are lost, and requests that fail once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use penstock_s3_double::{Call, Fault};
use penstock_storage::{ErrorKind, S3Bucket, S3Settings, S3Store, Store};

use super::{BUCKET, double, name, settings, store};

/// Lets the first request that `wanted` picks go wrong.
fn once(
    wanted: impl Fn(&Call) -> bool + Send + Sync + 'static,
    fault: Fault,
) -> impl Fn(&Call) -> Option<Fault> + Send + Sync + 'static {
    let met = AtomicUsize::new(0);
    move |call| (wanted(call) && met.fetch_add(1, Ordering::Relaxed) == 0).then_some(fault)
}

fn is_put(call: &Call) -> bool {
    call.method == Method::PUT
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_to_be_applied() {
    let double = double().await;
    let store = store(&double).await;
    double.fail(once(is_put, Fault::Lost(500, "InternalError")));
    let first = store.create(&name("state.json"), "1".into()).await.unwrap();
    double.fail(once(is_put, Fault::Lost(503, "SlowDown")));
    let second = store.replace(&name("state.json"), "2".into(), &first.generation).await.unwrap();
    assert_eq!(store.head(&name("state.json")).await.unwrap(), Some(second));
    let puts = double.calls().into_iter().filter(is_put).count();
    assert_eq!(puts, 2, "a write was sent again before it was looked for");
}

#[tokio::test]
async fn a_write_that_was_not_applied_is_not_taken_for_another_ones_equal_bytes() {
    let double = double().await;
    let store = store(&double).await;
    store.create(&name("parts/a"), "same".into()).await.unwrap();
    double.fail(once(is_put, Fault::Refused(503, "SlowDown")));
    let refused = store.create(&name("parts/a"), "same".into()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    double.fail(once(is_put, Fault::Refused(503, "SlowDown")));
    let refused = store.create(&name("parts/b"), "same".into()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert_eq!(store.head(&name("parts/b")).await.unwrap(), None);
}

#[tokio::test]
async fn a_write_that_meets_another_under_way_may_be_repeated() {
    let double = double().await;
    let store = store(&double).await;
    let first = store.create(&name("state.json"), "1".into()).await.unwrap();
    double.fail(once(is_put, Fault::Refused(409, "ConditionalRequestConflict")));
    let met = store.replace(&name("state.json"), "2".into(), &first.generation).await.unwrap_err();
    assert_eq!(met.kind(), ErrorKind::Unavailable);
    store.replace(&name("state.json"), "2".into(), &first.generation).await.unwrap();
}

#[tokio::test]
async fn a_read_that_breaks_off_goes_on_where_it_was() {
    let double = double().await;
    let store = store(&double).await;
    let content: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
    let written = store.create(&name("a"), content.clone().into()).await.unwrap();
    double.fail(once(|call| call.method == Method::GET, Fault::Broken(100_000)));
    let read = store.read_range(&name("a"), &written.generation, 10..290_000).await.unwrap();
    assert!(read == content[10..290_000], "other bytes than were written");
    double.fail(once(|call| call.method == Method::GET, Fault::Refused(503, "SlowDown")));
    assert!(store.get(&name("a"), 1 << 20).await.unwrap().unwrap().1 == content);
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_deadline() {
    let double = double().await;
    let settings = S3Settings { deadline: Some(Duration::from_millis(200)), ..settings(&double) };
    let bucket = S3Bucket::connect(&settings, BUCKET).unwrap();
    let store = S3Store::open(bucket, "out").await.unwrap();
    double.fail(|_| Some(Fault::Stalled));
    let late = store.create(&name("a"), "a".into()).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable);
    let late = store.head(&name("a")).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable, "{late}");
}
