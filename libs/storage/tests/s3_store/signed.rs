//! Signed URLs, used by a client that has no credentials.

use std::time::Duration;

use penstock_storage::{ErrorKind, SignedRequest, SignedUpload, SignedUrls};
use reqwest::{Client, Method, Response, StatusCode};

use super::{BUCKET, bucket, double};

const HOUR: Duration = Duration::from_hours(1);
const KEY: &str = "in/ä b+c.jsonl";

/// Makes the request as it was signed.
async fn make(request: &SignedRequest, body: &'static str) -> Response {
    let method = Method::from_bytes(request.method.as_bytes()).expect("it is a method");
    let mut builder = Client::new().request(method, &request.url).body(body);
    for (name, value) in &request.headers {
        builder = builder.header(*name, value);
    }
    builder.send().await.expect("there is an answer")
}

#[tokio::test]
async fn whoever_has_the_urls_uploads_and_downloads() {
    let double = double().await;
    let bucket = bucket(&double);
    let upload = bucket.upload(KEY, Some(5), Some("application/x-ndjson"), HOUR).await.unwrap();
    let SignedUpload::Whole(upload) = upload else { panic!("S3 knows no session: {upload:?}") };
    assert_eq!(make(&upload, "line\n").await.status(), StatusCode::OK);
    assert_eq!(double.contents(BUCKET)[KEY], "line\n");

    let download = bucket.download(KEY, HOUR).await.unwrap();
    let answer = make(&download, "").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
    assert_eq!(answer.bytes().await.unwrap(), "line\n");
}

#[tokio::test]
async fn a_url_allows_one_request_and_no_other() {
    let double = double().await;
    double.put(BUCKET, KEY, "old", None);
    double.put(BUCKET, "other", "secret", None);
    let bucket = bucket(&double);
    let download = bucket.download(KEY, HOUR).await.unwrap();
    let replaced = SignedRequest { method: "PUT", ..download.clone() };
    let another =
        SignedRequest { url: download.url.replace("in/%C3%A4%20b%2Bc.jsonl", "other"), ..download.clone() };
    assert_ne!(another.url, download.url);
    let upload = bucket.upload(KEY, None, Some("text/plain"), HOUR).await.unwrap();
    let SignedUpload::Whole(upload) = upload else { panic!("S3 knows no session: {upload:?}") };
    let otherwise = SignedRequest { headers: vec![("content-type", "text/html".to_owned())], ..upload };
    for forged in [replaced, another, otherwise] {
        assert_eq!(make(&forged, "new").await.status(), StatusCode::FORBIDDEN, "{forged:?}");
    }
    assert_eq!(double.contents(BUCKET)[KEY], "old");
}

#[tokio::test]
async fn a_url_expires() {
    let double = double().await;
    double.put(BUCKET, KEY, "content", None);
    let download = bucket(&double).download(KEY, Duration::from_secs(1)).await.unwrap();
    let refused = async {
        while make(&download, "").await.status() != StatusCode::FORBIDDEN {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), refused).await.expect("it is refused after a second");
}

#[tokio::test]
async fn what_cannot_be_signed_says_what_to_do() {
    let double = double().await;
    let bucket = bucket(&double);
    let late = bucket.download(KEY, Duration::from_hours(200)).await.unwrap_err();
    let large = bucket.upload(KEY, Some((5 << 30) + 1), None, HOUR).await.unwrap_err();
    let odd = bucket.upload(KEY, None, Some("text\n"), HOUR).await.unwrap_err();
    for (refused, told) in [(late, "7 days at most"), (large, "`aws s3 cp`"), (odd, "correct it")] {
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains(told), "{refused}");
    }
}
