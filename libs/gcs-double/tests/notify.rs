//! Events of finalized objects, as a receiver sees them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use penstock_gcs_double::{BucketName, NotificationSettings, StorageServer, StorageSettings};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

/// Accepts one event and answers with a status line; returns headers and body.
async fn receive(listener: &TcpListener, status: &str) -> (BTreeMap<String, String>, Value) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_owned(), value.to_owned())),
            None if line.trim_end().is_empty() => break,
            None => assert_eq!(line.trim_end(), "POST /events?key=1 HTTP/1.1"),
        }
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    (headers, serde_json::from_slice(&body).unwrap())
}

async fn start(listener: &TcpListener, duplicated: f64, disordered: f64) -> StorageServer {
    let url = format!("http://{}/events?key=1", listener.local_addr().unwrap()).parse().unwrap();
    let settings = StorageSettings {
        buckets: vec![BucketName::parse("bucket").unwrap()],
        notifications: Some(NotificationSettings { url, duplicated, disordered }),
        ..StorageSettings::default()
    };
    StorageServer::start(settings, ([127, 0, 0, 1], 0).into()).await.unwrap()
}

async fn write(server: &StorageServer, name: &str) {
    let url = format!("{}/upload/storage/v1/b/bucket/o?uploadType=media&name={name}", server.url());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    assert_eq!(client.post(url).body("x").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_object_is_told_until_it_is_accepted_and_again_on_demand() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start(&listener, 1.0, 0.0).await;
    write(&server, "a%20b").await;
    let (headers, body) = receive(&listener, "503 Service Unavailable").await;
    for (name, value) in [
        ("ce-type", "google.cloud.storage.object.v1.finalized"),
        ("ce-source", "//storage.googleapis.com/projects/_/buckets/bucket"),
        ("ce-subject", "objects/a%20b"),
        ("ce-bucket", "bucket"),
        ("ce-specversion", "1.0"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert_eq!((&body["name"], &body["size"]), (&"a b".into(), &"1".into()));
    for _ in 0..2 {
        let again = receive(&listener, "204 No Content").await;
        assert_eq!((&again.0["ce-id"], &again.1), (&headers["ce-id"], &body));
    }
    server.shutdown().await;
}

#[tokio::test]
async fn events_come_out_of_order_on_demand() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start(&listener, 0.0, 1.0).await;
    write(&server, "first").await;
    // The first event is on its way and not accepted while the others are written.
    let (stream, _) = listener.accept().await.unwrap();
    write(&server, "second").await;
    write(&server, "third").await;
    drop(stream);
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(receive(&listener, "200 OK").await.1["name"].as_str().unwrap().to_owned());
    }
    assert_ne!(names, ["first", "second", "third"]);
    names.sort();
    assert_eq!(names, ["first", "second", "third"]);
    server.shutdown().await;
}
