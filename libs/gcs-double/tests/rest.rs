//! Plain HTTP against the double: what is strict, what chunks do, and what faults look like from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use penstock_gcs_double::{
    BucketName, Calls, Fault, FaultRule, LogEntry, Operation, StorageServer, StorageSettings,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

const BLOCK: usize = 256 << 10;

/// A server with the bucket `bucket`, and a client.
struct Double {
    server: StorageServer,
    client: Client,
}

impl Double {
    async fn start() -> Self {
        let buckets = vec![BucketName::parse("bucket").unwrap()];
        let settings = StorageSettings { buckets, mutation_interval: Duration::ZERO, ..Default::default() };
        let server = StorageServer::start(settings, ([127, 0, 0, 1], 0).into()).await.unwrap();
        Self { server, client: Client::builder().no_proxy().build().unwrap() }
    }

    fn faults(&self, operation: Operation, calls: Calls, fault: Fault) {
        let rule = FaultRule { operations: vec![operation], calls, ..FaultRule::always(fault) };
        self.server.set_faults(vec![rule]).unwrap();
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.server.url()))
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.server.url()))
    }

    fn write(&self, parameters: &str, content: &str) -> RequestBuilder {
        let path = format!("/upload/storage/v1/b/bucket/o?uploadType=media&{parameters}");
        self.post(&path).body(content.to_owned())
    }

    fn compose(&self, name: &str, body: &Value) -> RequestBuilder {
        self.post(&format!("/storage/v1/b/bucket/o/{name}/compose")).body(body.to_string())
    }

    fn content(&self, name: &str) -> RequestBuilder {
        self.get(&format!("/storage/v1/b/bucket/o/{name}?alt=media"))
    }

    /// Starts an upload in chunks; returns where they go.
    async fn start_upload(&self, parameters: &str) -> String {
        let path = format!("/upload/storage/v1/b/bucket/o?uploadType=resumable&{parameters}");
        let response = self.post(&path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        header(&response, "location").unwrap()
    }

    fn chunk(&self, location: &str, range: &str, content: Vec<u8>) -> RequestBuilder {
        self.client.put(location).header("content-range", range).body(content)
    }

    /// The status of each request of a kind, and whether it was carried out.
    fn log(&self, operation: Operation) -> Vec<(Option<u16>, bool)> {
        let of_kind = |entry: &LogEntry| entry.operation == operation;
        let entries = self.server.log().into_iter().filter(of_kind);
        entries.map(|entry| (entry.status, entry.applied)).collect()
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().unwrap().to_owned())
}

async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
}

#[tokio::test]
async fn what_the_service_refuses_is_refused_with_its_status_and_reason() {
    let double = Double::start().await;
    assert_eq!(send(double.write("name=there", "x")).await.0, 200);
    let long = "n".repeat(1025);
    let upload = |parameters: &str| double.write(parameters, "x");
    let get = |path: &str| double.get(path);
    let sources = |count: usize| json!({ "sourceObjects": vec![json!({ "name": "there" }); count] });
    let missing = json!({ "sourceObjects": [{ "name": "there" }, { "name": "none" }] });
    let stale = json!({ "sourceObjects": [{ "name": "there", "generation": "7" }] });
    let elsewhere = double.post("/upload/storage/v1/b/none/o?uploadType=media&name=a").body("x");
    for (request, status, reason) in [
        (upload("name=there&ifGenerationMatch=0"), 412, "conditionNotMet"),
        (upload("name=there&ifGenerationMatch=7"), 412, "conditionNotMet"),
        (upload("name=there&ifGenerationMatch=seven"), 400, "invalid"),
        (upload(&format!("name={long}")), 400, "invalid"),
        (upload("name=a%0Ab"), 400, "invalid"),
        (upload(""), 400, "required"),
        (upload("name=a").header("x-goog-hash", "crc32c=AAAAAA=="), 400, "invalid"),
        (upload("name=a").header("x-goog-hash", "md5=AAAAAAAAAAAAAAAAAAAAAA=="), 400, "invalid"),
        (upload("name=a").header("x-goog-hash", "crc32c=what"), 400, "invalid"),
        (elsewhere, 404, "notFound"),
        (double.post("/upload/storage/v1/b/bucket/o?name=a").body("x"), 400, "required"),
        (double.post("/upload/storage/v1/b/bucket/o?uploadType=multipart&name=a").body("x"), 400, "invalid"),
        (get("/storage/v1/b/bucket/o/none"), 404, "notFound"),
        (get("/storage/v1/b/bucket/o/there?generation=7"), 404, "notFound"),
        (get("/storage/v1/b/none/o"), 404, "notFound"),
        (get("/storage/v1/b/bucket/o?maxResults=0"), 400, "invalid"),
        (get("/storage/v1/b/bucket/o?pageToken=x"), 400, "invalid"),
        (get("/nothing/here"), 404, "notFound"),
        (double.compose("c", &sources(33)), 400, "invalid"),
        (double.compose("c", &sources(0)), 400, "required"),
        (double.compose("c", &missing), 404, "notFound"),
        (double.compose("c", &stale), 404, "notFound"),
    ] {
        let asked = format!("{request:?}");
        let (got, body) = send(request).await;
        assert_eq!(got, status, "{asked}: {body}");
        assert_eq!(body["error"]["errors"][0]["reason"], reason, "{asked}: {body}");
        assert_eq!(body["error"]["code"], status, "{asked}");
    }
    assert_eq!(send(double.compose("c", &sources(32))).await.1["componentCount"], 32);
    let names = send(get("/storage/v1/b/bucket/o")).await.1["items"].as_array().unwrap().len();
    assert_eq!(names, 2);
    double.server.shutdown().await;
}

#[tokio::test]
async fn content_comes_with_its_headers_and_a_range_beyond_it_is_refused() {
    let double = Double::start().await;
    let written = send(double.write("name=a%2Fb", "0123456789").header("content-type", "text/plain")).await.1;
    let whole = double.content("a%2Fb").send().await.unwrap();
    assert_eq!(whole.status(), 200);
    let generation = written["generation"].as_str().unwrap();
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-length", "10"),
        ("x-goog-generation", generation),
        ("x-goog-metageneration", "1"),
        ("x-goog-stored-content-encoding", "identity"),
        ("x-goog-stored-content-length", "10"),
    ] {
        assert_eq!(header(&whole, name).as_deref(), Some(value), "{name}");
    }
    let hashes: Vec<_> = whole.headers().get_all("x-goog-hash").iter().collect();
    let written = |field: &str| written[field].as_str().unwrap();
    assert_eq!(hashes, [&format!("crc32c={}", written("crc32c")), &format!("md5={}", written("md5Hash"))]);
    let part = double.content("a%2Fb").header("range", "bytes=8-20").send().await.unwrap();
    assert_eq!(
        (part.status().as_u16(), header(&part, "content-range")),
        (206, Some("bytes 8-9/10".to_owned()))
    );
    assert_eq!(part.text().await.unwrap(), "89");
    let beyond = double.content("a%2Fb").header("range", "bytes=10-").send().await.unwrap();
    assert_eq!(
        (beyond.status().as_u16(), header(&beyond, "content-range")),
        (416, Some("bytes */10".to_owned()))
    );
    // An error in place of content is plain text.
    let none = double.content("none").send().await.unwrap();
    assert_eq!(none.status(), 404);
    assert_eq!(none.text().await.unwrap(), "No such object: bucket/none");
    double.server.shutdown().await;
}

#[tokio::test]
async fn an_upload_in_chunks_keeps_whole_blocks_and_goes_on_where_it_was() {
    let double = Double::start().await;
    let content: Vec<u8> = (0..=255).cycle().take(3 * BLOCK + 10).collect();
    let total = content.len();
    let location = double.start_upload("name=big&ifGenerationMatch=0").await;
    let ask = || double.chunk(&location, "bytes */*", Vec::new());
    let asked = ask().send().await.unwrap();
    assert_eq!((asked.status().as_u16(), header(&asked, "range")), (308, None));
    // One and a half blocks: one is kept.
    let range = format!("bytes 0-{}/*", BLOCK * 3 / 2 - 1);
    let first = double.chunk(&location, &range, content[..BLOCK * 3 / 2].to_vec()).send().await.unwrap();
    let kept = format!("bytes=0-{}", BLOCK - 1);
    assert_eq!((first.status().as_u16(), header(&first, "range")), (308, Some(kept.clone())));
    // Too small, with a gap, and not as long as it says.
    for (range, length) in [
        (format!("bytes {BLOCK}-{}/*", BLOCK + 9), 10),
        (format!("bytes {}-{}/{total}", BLOCK * 2, total - 1), total - BLOCK * 2),
        (format!("bytes {BLOCK}-{}/{total}", total - 1), 10),
        (format!("bytes */{}", BLOCK - 1), 0),
    ] {
        let refused = send(double.chunk(&location, &range, vec![0; length])).await;
        assert_eq!(refused.0, 400, "{range}: {}", refused.1);
    }
    // A connection that breaks in the second block of a chunk.
    double.faults(Operation::UploadChunk, Calls::First(1), Fault::BreakRequest { after_bytes: 400_000 });
    let rest = |first: usize| {
        double.chunk(&location, &format!("bytes {first}-{}/{total}", total - 1), content[first..].to_vec())
    };
    rest(BLOCK).send().await.unwrap_err();
    let asked = ask().send().await.unwrap();
    assert_eq!(header(&asked, "range"), Some(format!("bytes=0-{}", 2 * BLOCK - 1)));
    // What had arrived before may be sent again.
    let (status, object) = send(rest(BLOCK)).await;
    assert_eq!((status.as_u16(), &object["size"]), (200, &json!(total.to_string())));
    assert_eq!(send(ask()).await, (StatusCode::OK, object));
    assert!(double.content("big").send().await.unwrap().bytes().await.unwrap() == content);
    // The precondition of the start is that of the end.
    let path = "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=big&ifGenerationMatch=0";
    assert_eq!(double.post(path).send().await.unwrap().status(), 412);
    double.server.shutdown().await;
}

#[tokio::test]
async fn an_upload_ends_empty_is_given_up_or_is_not_what_was_announced() {
    let double = Double::start().await;
    let empty = double.start_upload("name=empty").await;
    let (status, object) = send(double.chunk(&empty, "bytes */0", Vec::new())).await;
    assert_eq!((status.as_u16(), &object["size"]), (200, &json!("0")));
    let given_up = double.start_upload("name=b").await;
    assert_eq!(double.client.delete(&given_up).send().await.unwrap().status(), 499);
    let put = |location: &str| double.chunk(location, "bytes 0-2/3", b"abc".to_vec());
    assert_eq!(send(put(&given_up)).await.0, 410);
    let never = given_up.replace("upload-", "never-");
    assert_eq!(send(put(&never)).await.0, 404);
    let wrong = double.start_upload("name=c").await;
    assert_eq!(send(put(&wrong).header("x-goog-hash", "crc32c=AAAAAA==")).await.0, 400);
    assert_eq!(double.content("c").send().await.unwrap().status(), 404);
    double.server.shutdown().await;
}

#[tokio::test]
async fn a_fault_before_leaves_nothing_and_a_fault_after_leaves_all() {
    let double = Double::start().await;
    let there = async |name: &str| double.content(name).send().await.unwrap().status() == 200;
    double.faults(Operation::Write, Calls::First(1), Fault::ErrorBefore { status: 503 });
    let (status, body) = send(double.write("name=a", "x")).await;
    assert_eq!((status.as_u16(), &body["error"]["errors"][0]["reason"]), (503, &json!("backendError")));
    assert!(!there("a").await);
    double.faults(Operation::Write, Calls::First(1), Fault::ErrorAfter { status: 503 });
    assert_eq!(send(double.write("name=b", "x")).await.0, 503);
    assert!(there("b").await);
    double.faults(Operation::Write, Calls::First(1), Fault::BreakResponse { after_bytes: 0 });
    double.write("name=c", "x").send().await.unwrap_err();
    assert!(there("c").await);
    double.faults(Operation::Write, Calls::First(1), Fault::BreakRequest { after_bytes: 0 });
    double.write("name=d", "x").send().await.unwrap_err();
    assert!(!there("d").await);
    double.faults(Operation::Write, Calls::First(1), Fault::StallAfter);
    let patience = Duration::from_secs(2);
    assert!(double.write("name=e", "x").timeout(patience).send().await.unwrap_err().is_timeout());
    assert!(there("e").await);
    let expected = [(Some(503), false), (Some(503), true), (None, true), (None, false), (None, true)];
    assert_eq!(double.log(Operation::Write), expected);
    double.server.shutdown().await;
}

#[tokio::test]
async fn a_broken_stream_ends_after_so_many_bytes() {
    let double = Double::start().await;
    assert_eq!(send(double.write("name=a", &"x".repeat(1_000_000))).await.0, 200);
    double.faults(Operation::Read, Calls::First(1), Fault::BreakResponse { after_bytes: 300_000 });
    let mut broken = double.content("a").send().await.unwrap();
    let mut read = 0;
    let error = loop {
        match broken.chunk().await {
            Ok(chunk) => read += chunk.expect("the content does not end as if all was well").len(),
            Err(error) => break error,
        }
    };
    assert!(error.is_body() || error.is_decode(), "{error:?}");
    assert!(read <= 300_000, "{read}");
    assert_eq!(double.content("a").send().await.unwrap().bytes().await.unwrap().len(), 1_000_000);
    let sent: Vec<_> = double.server.log().iter().map(|entry| entry.sent_bytes).collect();
    assert_eq!(sent, [0, 300_000, 1_000_000]);
    double.server.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_requests_that_stall() {
    let double = Double::start().await;
    double.faults(Operation::List, Calls::All, Fault::StallBefore);
    let request = tokio::spawn(double.get("/storage/v1/b/bucket/o").send());
    while double.server.log().is_empty() {
        tokio::task::yield_now().await;
    }
    double.server.shutdown().await;
    assert!(request.await.unwrap().is_err());
}
