//! The bucket as anybody sees it who speaks its REST interface: nothing here uses Penstock's own client.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The one bucket.
pub(crate) const BUCKET: &str = "bucket";

/// Sends one request; the status and the body of its answer.
async fn ask(url: &str, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
    assert!(!head.contains("transfer-encoding: chunked"), "{head}");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        write!(encoded, "%{byte:02X}").unwrap();
    }
    encoded
}

/// Asks for a change until the bucket takes it: it takes one of a name in a second.
async fn change(url: &str, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
    loop {
        let answer = ask(url, method, path, body).await;
        if answer.0 != 429 {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

/// Writes an object.
pub(crate) async fn put(url: &str, name: &str, content: &[u8]) {
    let path = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={}", encoded(name));
    let (status, answer) = change(url, "POST", &path, content).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
}

/// Deletes an object.
pub(crate) async fn delete(url: &str, name: &str) {
    let (status, answer) =
        change(url, "DELETE", &format!("/storage/v1/b/{BUCKET}/o/{}", encoded(name)), b"").await;
    assert_eq!(status, 204, "{}", String::from_utf8_lossy(&answer));
}

/// The objects whose names begin with `prefix`, and the generation of each.
pub(crate) async fn list(url: &str, prefix: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut page: Option<String> = None;
    loop {
        let from = page.map(|page| format!("&pageToken={}", encoded(&page))).unwrap_or_default();
        let path = format!("/storage/v1/b/{BUCKET}/o?prefix={}{from}", encoded(prefix));
        let (status, answer) = ask(url, "GET", &path, b"").await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        for object in answer["items"].as_array().into_iter().flatten() {
            let text = |field: &str| object[field].as_str().unwrap().to_owned();
            found.insert(text("name"), text("generation"));
        }
        match answer["nextPageToken"].as_str() {
            Some(next) => page = Some(next.to_owned()),
            None => return found,
        }
    }
}
