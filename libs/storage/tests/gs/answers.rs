//! What cannot work says so at once, with what to do.

use penstock_gcs_double::{Calls, Fault, Operation};
use penstock_storage::{ErrorKind, GsBucket, GsInput, GsSettings, GsStore, Store};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::bucket::{Bucket, name};

#[tokio::test]
async fn a_bucket_that_is_not_there_is_no_absence_of_objects() {
    let double = Bucket::without_pace().await;
    let bucket = double.connect("no-such-bucket").await;
    let output = GsStore::open(bucket.clone(), "out").await.unwrap_err();
    let input = GsInput::open(bucket, "in.jsonl").await.unwrap_err();
    for error in [output, input] {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().ends_with("; create the bucket, or correct its name"), "{error}");
    }
}

#[tokio::test]
async fn an_object_that_is_not_there_is_named() {
    let double = Bucket::without_pace().await;
    let error = double.input("in.jsonl").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().starts_with("open `gs://bucket/in.jsonl`: there is no such object; "),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_right_is_told_with_the_role_that_gives_it() {
    let double = Bucket::without_pace().await;
    let store = double.store("out").await;
    double.fail(Operation::Write, Fault::ErrorBefore { status: 403 }, Calls::All);
    let write = store.create(&name("a"), "1".into()).await.unwrap_err();
    double.fail(Operation::List, Fault::ErrorBefore { status: 403 }, Calls::All);
    let list = GsStore::open(double.connect("bucket").await, "out").await.unwrap_err();
    for error in [write, list] {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("Storage Object User"), "{error}");
    }
    double.fail(Operation::Get, Fault::ErrorBefore { status: 401 }, Calls::All);
    let login = store.head(&name("a")).await.unwrap_err();
    assert_eq!(login.kind(), ErrorKind::Refused, "{login}");
    assert!(login.to_string().contains("gcloud auth application-default login"), "{login}");
}

#[tokio::test]
async fn a_server_that_is_not_there_may_come() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let settings = GsSettings { endpoint: Some(endpoint), anonymous: true, ..GsSettings::default() };
    let bucket = GsBucket::connect(&settings, "bucket").await.unwrap();
    let error = GsStore::open(bucket, "out").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("whether this machine can reach the storage"), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_is_no_url_is_refused() {
    let settings =
        GsSettings { endpoint: Some("not a url".into()), anonymous: true, ..GsSettings::default() };
    let error = GsBucket::connect(&settings, "bucket").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("give the endpoint as a URL"), "{error}");
}

/// A server that knows nothing of buckets says 404 to everything, too.
#[tokio::test]
async fn a_page_that_is_not_found_is_no_absence_of_an_object() {
    let double = Bucket::without_pace().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\nconnection: close\r\n\r\nnot found";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let settings = GsSettings {
        endpoint: Some(endpoint),
        grpc_endpoint: Some(double.server.url()),
        ..double.settings()
    };
    let store = GsStore::open(GsBucket::connect(&settings, "bucket").await.unwrap(), "out").await.unwrap();
    let error = store.get(&name("state.json"), 9).await.unwrap_err();
    serving.await.unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("make sure that the endpoint is Google Cloud Storage"), "{error}");
}

#[tokio::test]
async fn a_compose_names_the_source_that_it_lacks() {
    let double = Bucket::without_pace().await;
    let store = double.store("out").await;
    let there = store.create(&name("there"), "1".into()).await.unwrap();
    let gone = store.create(&name("gone"), "2".into()).await.unwrap();
    store.delete(&gone.name, &gone.generation).await.unwrap();
    let sources = [(there.name, there.generation), (gone.name, gone.generation)];
    let error = store.compose(&name("final"), &sources).await.unwrap_err();
    assert_eq!((error.kind(), error.object()), (ErrorKind::NotFound, "gone"), "{error}");
}
