//! The official client against the double: what a program that uses it sees.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::large_futures, reason = "those of the client are large, and few")]

use std::time::Duration;

use google_cloud_auth::credentials::anonymous;
use google_cloud_gax::{
    error::rpc::Code,
    paginator::ItemPaginator,
    retry_policy::{NeverRetry, RetryPolicyExt},
};
use google_cloud_storage::{
    client::{Storage, StorageControl},
    model::{Object, compose_object_request::SourceObject},
    model_ext::ReadRange,
    retry_policy::RetryableErrors,
};
use penstock_gcs_double::{
    BucketName, Calls, Change, Fault, FaultRule, LogEntry, Operation, StorageServer, StorageSettings,
    Transport,
};

const BUCKET: &str = "projects/_/buckets/bucket";

/// A server with one bucket, and clients of both kinds.
struct Double {
    server: StorageServer,
    storage: Storage,
    control: StorageControl,
}

impl Double {
    async fn start(settings: StorageSettings) -> Self {
        let buckets = vec![BucketName::parse("bucket").unwrap()];
        let settings = StorageSettings { buckets, ..settings };
        let server = StorageServer::start(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
        let credentials = anonymous::Builder::new().build();
        let storage = Storage::builder()
            .with_endpoint(server.url())
            .with_credentials(credentials.clone())
            .with_retry_policy(NeverRetry)
            .build();
        let control = StorageControl::builder()
            .with_endpoint(server.url())
            .with_credentials(credentials)
            .with_retry_policy(NeverRetry)
            .build();
        let (storage, control) = (storage.await.unwrap(), control.await.unwrap());
        Self { server, storage, control }
    }

    async fn write(&self, name: &str, content: impl Into<String>) -> Object {
        let content = bytes::Bytes::from(content.into());
        let write = self.storage.write_object(BUCKET, name, content).set_if_generation_match(0);
        write.send_unbuffered().await.unwrap()
    }

    async fn read(&self, name: &str, range: ReadRange) -> Vec<u8> {
        let read = self.storage.read_object(BUCKET, name).set_read_range(range);
        let mut response = read.send().await.unwrap();
        let mut content = Vec::new();
        while let Some(chunk) = response.next().await {
            content.extend_from_slice(&chunk.unwrap());
        }
        content
    }
}

#[tokio::test]
async fn what_is_written_reads_back_in_whole_and_in_ranges() {
    let double = Double::start(StorageSettings::default()).await;
    let name = "a folder/ü?#%.jsonl";
    let written = double
        .storage
        .write_object(BUCKET, name, "0123456789")
        .set_if_generation_match(0)
        .set_content_type("application/jsonl")
        .set_metadata([("writer", "me")])
        .send_unbuffered()
        .await
        .unwrap();
    assert_eq!((written.size, written.metageneration), (10, 1));
    assert_eq!(written.checksums.unwrap().crc32c, Some(crc32c::crc32c(b"0123456789")));
    for (range, content) in [
        (ReadRange::all(), "0123456789"),
        (ReadRange::segment(2, 3), "234"),
        (ReadRange::offset(8), "89"),
        (ReadRange::tail(1), "9"),
    ] {
        assert_eq!(double.read(name, range).await, content.as_bytes());
    }
    let read = double.storage.read_object(BUCKET, name).send().await.unwrap();
    let seen = read.object();
    assert_eq!((seen.generation, seen.size), (written.generation, 10));
    assert_eq!(seen.content_type, "application/jsonl");
    assert_eq!(seen.metadata["writer"], "me");
    let object = double.control.get_object().set_bucket(BUCKET).set_object(name).send().await.unwrap();
    assert_eq!((object.generation, object.size), (written.generation, 10));
    assert_eq!(object.metadata["writer"], "me");
    let error = double.storage.write_object(BUCKET, name, "x").set_if_generation_match(0);
    assert_eq!(error.send_unbuffered().await.unwrap_err().http_status_code(), Some(412));
    double.server.shutdown().await;
}

#[tokio::test]
async fn a_listing_has_every_name_once_over_all_pages() {
    let double = Double::start(StorageSettings { largest_page: 3, ..StorageSettings::default() }).await;
    let mut names: Vec<_> = (0..10).map(|index| format!("parts/{index}")).collect();
    for name in &names {
        double.write(name, "").await;
    }
    double.write("other", "").await;
    let mut listed = Vec::new();
    let mut items = double.control.list_objects().set_parent(BUCKET).set_prefix("parts/").by_item();
    while let Some(object) = items.next().await {
        listed.push(object.unwrap().name);
    }
    names.sort();
    assert_eq!(listed, names);
    double.server.shutdown().await;
}

#[tokio::test]
async fn composed_objects_hold_their_sources_and_the_client_sees_codes() {
    let double = Double::start(StorageSettings::default()).await;
    let sources = [("a", "one\n"), ("b", ""), ("c", "two\n")];
    for (name, content) in sources {
        double.write(name, content).await;
    }
    let source = |name: &str| SourceObject::new().set_name(name);
    let compose = |name: &str, sources: Vec<SourceObject>| {
        double
            .control
            .compose_object()
            .set_destination(Object::new().set_bucket(BUCKET).set_name(name))
            .set_source_objects(sources)
            .set_if_generation_match(0)
            .send()
    };
    let object = compose("d", sources.iter().map(|(name, _)| source(name)).collect()).await.unwrap();
    assert_eq!((object.size, object.component_count), (8, 3));
    let checksums = object.checksums.unwrap();
    assert_eq!(checksums.crc32c, Some(crc32c::crc32c(b"one\ntwo\n")));
    assert!(checksums.md5_hash.is_empty());
    assert_eq!(double.read("d", ReadRange::all()).await, b"one\ntwo\n");
    let code = |error: google_cloud_storage::Error| error.status().map(|status| status.code);
    let again = compose("d", vec![source("a")]).await.unwrap_err();
    assert_eq!(code(again), Some(Code::FailedPrecondition));
    let missing = compose("e", vec![source("a"), source("none")]).await.unwrap_err();
    assert_eq!(code(missing), Some(Code::NotFound));
    let many = compose("e", vec![source("a"); 33]).await.unwrap_err();
    assert_eq!(code(many), Some(Code::InvalidArgument));
    double.server.shutdown().await;
}

#[tokio::test]
async fn the_log_tells_what_was_asked_and_what_was_done() {
    let double = Double::start(StorageSettings::default()).await;
    let generation = double.write("a", "abc").await.generation;
    assert_eq!(double.read("a", ReadRange::tail(2)).await, b"bc");
    let delete = |generation: i64| {
        let delete = double.control.delete_object().set_bucket(BUCKET).set_object("a");
        delete.set_if_generation_match(generation).send()
    };
    delete(generation + 1).await.unwrap_err();
    let too_soon = delete(generation).await.unwrap_err();
    assert_eq!(too_soon.status().map(|status| status.code), Some(Code::ResourceExhausted));
    let told = |entry: LogEntry| (entry.transport, entry.operation, entry.status, entry.applied, entry.ended);
    let log: Vec<_> = double.server.log().into_iter().map(told).collect();
    let expected = [
        (Transport::Rest, Operation::Write, Some(200), true, true),
        (Transport::Rest, Operation::Read, Some(206), false, true),
        (Transport::Grpc, Operation::Delete, Some(412), false, true),
        (Transport::Grpc, Operation::Delete, Some(429), false, true),
    ];
    assert_eq!(log, expected);
    let bytes: Vec<_> =
        double.server.log().iter().map(|entry| (entry.received_bytes, entry.sent_bytes)).collect();
    assert_eq!(bytes, [(3, 0), (0, 2), (0, 0), (0, 0)]);
    double.server.shutdown().await;
}

#[tokio::test]
async fn the_history_has_every_version_in_order() {
    let settings = StorageSettings {
        keep_history: true,
        mutation_interval: Duration::ZERO,
        ..StorageSettings::default()
    };
    let double = Double::start(settings).await;
    double.write("a", "one").await;
    let second = double.storage.write_object(BUCKET, "a", "two").send_unbuffered().await.unwrap();
    double
        .storage
        .write_object(BUCKET, "a", "x")
        .set_if_generation_match(0)
        .send_unbuffered()
        .await
        .unwrap_err();
    double.control.delete_object().set_bucket(BUCKET).set_object("a").send().await.unwrap();
    let history = double.server.history();
    double.server.shutdown().await;
    let content = |change: &Change| change.content().unwrap().map(|bytes| String::from_utf8(bytes).unwrap());
    let contents: Vec<_> = history.since(0).iter().map(content).collect();
    assert_eq!(contents, [Some("one".to_owned()), Some("two".to_owned()), None]);
    let last_two = history.since(1);
    assert_eq!(
        last_two.iter().map(|change| (change.bucket(), change.object())).collect::<Vec<_>>(),
        [("bucket", "a"); 2]
    );
    assert_eq!(last_two[0].generation(), Some(second.generation.to_string()));
    assert!(history.since(4).is_empty());
}

#[tokio::test]
async fn the_client_uploads_in_chunks_and_resumes_after_a_break() {
    let double = Double::start(StorageSettings::default()).await;
    let content: Vec<u8> = (0..=250).cycle().take(3_000_000).collect();
    let rule = FaultRule {
        operations: vec![Operation::UploadChunk],
        calls: Calls::First(1),
        ..FaultRule::always(Fault::BreakRequest { after_bytes: 600_000 })
    };
    double.server.set_faults(vec![rule]).unwrap();
    let written = double
        .storage
        .write_object(BUCKET, "big", bytes::Bytes::from(content.clone()))
        .set_if_generation_match(0)
        .with_resumable_upload_threshold(0_usize)
        .with_retry_policy(RetryableErrors.with_attempt_limit(3))
        .send_unbuffered()
        .await
        .unwrap();
    assert_eq!(written.size, 3_000_000);
    assert!(double.read("big", ReadRange::all()).await == content);
    // What had arrived was asked for, and only the rest was sent.
    let received: u64 = double.server.log().iter().map(|entry| entry.received_bytes).sum();
    assert_eq!(received, 3_000_000 + 600_000 - 2 * (256 << 10));
    let unanswered = double.server.log().iter().filter(|entry| entry.status.is_none()).count();
    assert_eq!(unanswered, 1);
    double.server.shutdown().await;
}
