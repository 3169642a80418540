//! Writes whose answers are lost, late or wrong: the store says what became of them.

use std::io::Write as _;

use penstock_gcs_double::{Calls, Fault, FaultRule, Operation};
use penstock_storage::{Checksum, ErrorKind, Store, conformance::ambiguity};

use crate::bucket::{Bucket, name, pattern};

const LOST: Fault = Fault::ErrorAfter { status: 503 };
const REFUSED: Fault = Fault::ErrorBefore { status: 503 };

#[tokio::test]
async fn a_write_that_was_applied_is_one_whatever_its_answer() {
    for fault in [LOST, Fault::StallAfter, Fault::BreakResponse { after_bytes: 0 }] {
        let bucket = Bucket::without_pace().await;
        let store = bucket.store("out").await;
        let at = name("state.json");
        bucket.fail(Operation::Write, fault, Calls::All);
        let created = store.create(&at, "1".into()).await.unwrap();
        assert_eq!(store.head(&at).await.unwrap().as_ref(), Some(&created), "{fault:?}");
        let replaced = store.replace(&at, "22".into(), &created.generation).await.unwrap();
        assert_eq!(store.get(&at, 9).await.unwrap(), Some((replaced.clone(), "22".into())), "{fault:?}");

        bucket.fail(Operation::Compose, fault, Calls::All);
        let target = name("results_final.jsonl");
        let sources = vec![(at.clone(), replaced.generation.clone()); 2];
        let composed = store.compose(&target, &sources).await.unwrap();
        assert_eq!(composed.checksum(), Some(Checksum::of(b"2222")), "{fault:?}");
        assert_eq!(bucket.asked(Operation::Write).len(), 2, "each was sent once");
        assert_eq!(bucket.asked(Operation::Compose).len(), 1, "it was sent once");
    }
}

#[tokio::test]
async fn a_write_that_was_not_applied_is_none_and_is_not_sent_again() {
    for fault in [REFUSED, Fault::StallBefore] {
        let bucket = Bucket::without_pace().await;
        let store = bucket.store("out").await;
        let at = name("state.json");
        let old = store.create(&at, "1".into()).await.unwrap();
        bucket.fail(Operation::Write, fault, Calls::All);
        let created = store.create(&name("other"), "1".into()).await.unwrap_err();
        let replaced = store.replace(&at, "2".into(), &old.generation).await.unwrap_err();
        for error in [created, replaced] {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        assert_eq!(store.head(&name("other")).await.unwrap(), None);
        assert_eq!(store.head(&at).await.unwrap(), Some(old));
        assert_eq!(bucket.asked(Operation::Write).len(), 3, "each was sent once");
    }
}

#[tokio::test]
async fn a_write_that_failed_says_so_when_another_was_first() {
    let bucket = Bucket::without_pace().await;
    let store = bucket.store("out").await;
    let at = name("state.json");
    // The same bytes: only their mark tells them apart.
    let theirs = store.create(&at, "same".into()).await.unwrap();
    bucket.fail(Operation::Write, REFUSED, Calls::All);
    let created = store.create(&at, "same".into()).await.unwrap_err();
    assert_eq!(created.kind(), ErrorKind::Exists, "{created}");
    let stale = penstock_storage::Generation::new("1");
    let replaced = store.replace(&at, "same".into(), &stale).await.unwrap_err();
    assert_eq!(replaced.kind(), ErrorKind::Changed, "{replaced}");
    assert_eq!(store.head(&at).await.unwrap(), Some(theirs));
}

#[tokio::test]
async fn a_deletion_whose_answer_was_lost_is_made_again() {
    let bucket = Bucket::without_pace().await;
    let store = bucket.store("out").await;
    let at = name("parts/1");
    let written = store.create(&at, "1".into()).await.unwrap();
    bucket.fail(Operation::Delete, LOST, Calls::First(1));
    let lost = store.delete(&at, &written.generation).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unavailable, "{lost}");
    store.delete(&at, &written.generation).await.unwrap();
    assert_eq!(store.head(&at).await.unwrap(), None);
}

#[tokio::test]
async fn an_upload_goes_on_where_it_broke_off_and_is_one_object() {
    let bytes = pattern(20 << 20);
    let checksum = Checksum::of(&bytes);
    let mut source = tempfile::NamedTempFile::new().unwrap();
    source.write_all(&bytes).unwrap();
    let faults = [
        LOST,
        REFUSED,
        Fault::BreakRequest { after_bytes: 9 << 20 },
        Fault::BreakResponse { after_bytes: 0 },
    ];
    for fault in faults {
        let bucket = Bucket::without_pace().await;
        let store = bucket.store("out").await;
        bucket.fail(Operation::UploadChunk, fault, Calls::First(1));
        let written = store.upload(&name("large"), source.path(), checksum).await.unwrap();
        assert_eq!(written.checksum(), Some(checksum), "{fault:?}");
        assert_eq!(bucket.asked(Operation::StartUpload).len(), 1, "{fault:?}: it was begun anew");
        let read = store.read_range(&written.name, &written.generation, 0..bytes.len() as u64).await.unwrap();
        assert!(read == bytes, "{fault:?}: other bytes");
    }
}

#[tokio::test]
async fn writes_that_fail_leave_what_they_should() {
    for seed in 0..3 {
        let bucket = Bucket::without_pace().await;
        let store = bucket.store(&format!("out/{seed}")).await;
        let faults =
            [REFUSED, LOST, Fault::BreakRequest { after_bytes: 0 }, Fault::BreakResponse { after_bytes: 3 }];
        let share = |fault| FaultRule { calls: Calls::Share(0.15), ..FaultRule::always(fault) };
        bucket.server.set_faults(faults.map(share).to_vec()).unwrap();
        ambiguity::a_failed_write_is_whole_or_absent(&store).await;
        ambiguity::a_failed_replace_leaves_one_of_two(&store).await;
    }
}
