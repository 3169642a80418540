//! Against servers that answer with exactly these bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use penstock_executor::provider::FailureKind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{Setup, prompt};

/// Answers each connection's request with the same bytes and closes it.
pub(super) struct Parrot {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    last_request: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl Parrot {
    pub(super) async fn start(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let last_request = Arc::new(Mutex::new(Vec::new()));
        let (counter, kept) = (Arc::clone(&connections), Arc::clone(&last_request));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                reply(stream, &kept, &answer).await;
            }
        });
        Self { address, connections, last_request, task }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The request of the last connection that was answered, head and body.
    pub(super) fn last_request(&self) -> String {
        String::from_utf8(self.last_request.lock().unwrap().clone()).unwrap()
    }

    pub(super) async fn stop(self) -> usize {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads a request to its end, keeps it, and answers.
async fn reply(mut stream: TcpStream, kept: &Mutex<Vec<u8>>, answer: &[u8]) {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    *kept.lock().unwrap() = request;
    let _ = stream.write_all(answer).await;
    let _ = stream.shutdown().await;
}

/// Whether a request has a body as long as its head says.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

pub(super) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn a_redirect_is_not_followed_so_the_key_stays_where_it_was_sent() {
    let elsewhere = Parrot::start(answer("200 OK", "", "{}")).await;
    let location = format!("location: {}/chat/completions\r\n", elsewhere.base_url());
    let server = Parrot::start(answer("307 Temporary Redirect", &location, "")).await;
    let setup = Setup::prompts(&server.base_url());
    assert_eq!(setup.verdict(&setup.connect().unwrap(), &prompt(1)).await, "failed http_307");
    assert_eq!(server.stop().await, 1);
    assert_eq!(elsewhere.stop().await, 0);
}

#[tokio::test]
async fn nobody_at_the_address_is_a_failed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let setup = Setup::prompts(&format!("http://{address}"));
    let failure = setup.ask(&setup.connect().unwrap(), &prompt(1)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Connect);
    assert!(failure.to_string().contains("check the base URL"), "{failure}");
}

#[tokio::test]
async fn an_answer_whose_announced_or_real_length_is_too_large_is_not_read_to_its_end() {
    let announced = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{".to_owned();
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat((8 << 20) + 1));
    for bytes in [announced, endless] {
        let server = Parrot::start(bytes).await;
        let setup = Setup::prompts(&server.base_url());
        assert_eq!(setup.verdict(&setup.connect().unwrap(), &prompt(1)).await, "failed response_too_large");
        server.stop().await;
    }
}

#[tokio::test]
async fn what_is_not_http_is_a_lost_connection() {
    for bytes in ["", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 abc\r\n\r\n"] {
        let server = Parrot::start(bytes).await;
        let setup = Setup::prompts(&server.base_url());
        assert_eq!(
            setup.verdict(&setup.connect().unwrap(), &prompt(1)).await,
            "retry connection_lost",
            "{bytes}"
        );
        server.stop().await;
    }
}

#[tokio::test]
async fn a_body_in_many_pieces_is_put_together() {
    let body = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "word ".repeat(100_000));
    let pieces: String = body
        .as_bytes()
        .chunks(1_000)
        .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), str::from_utf8(piece).unwrap()))
        .chain(["0\r\n\r\n".to_owned()])
        .collect();
    let server =
        Parrot::start(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{pieces}")).await;
    let setup = Setup::prompts(&server.base_url());
    let outcome = setup.ask(&setup.connect().unwrap(), &prompt(1)).await.unwrap();
    assert_eq!(outcome.body, body.as_bytes());
    server.stop().await;
}
