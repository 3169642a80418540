use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, time::Duration};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::*;

/// Long enough for anything that is going to happen at all.
const PATIENCE: Duration = Duration::from_secs(20);

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

/// The first line and the headers of a request, whose body is left out.
struct Heard {
    line: String,
    headers: BTreeMap<String, String>,
}

async fn hear(stream: impl AsyncRead + Unpin) -> Heard {
    let mut lines = BufReader::new(stream).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let mut headers = BTreeMap::new();
    while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    Heard { line, headers }
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    stream.write_all((head + text).as_bytes()).await.unwrap();
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Asks a provider that nobody but the proxy knows.
async fn ask(address: SocketAddr, target: &str, tls: &Tls) -> Response<String> {
    let proxies = Matcher::builder().all(format!("http://name:word@{address}")).build();
    let pool = Pools::through(proxies, 1).pool(&uri(target), tls).unwrap();
    let mut request = Request::get(target).body(Full::default()).unwrap();
    request
        .headers_mut()
        .extend(pool.proxy_authorization().map(|value| (http::header::PROXY_AUTHORIZATION, value.clone())));
    let asked = async {
        let (head, body) = pool.lease().client().request(request).await.unwrap().into_parts();
        let text = body.collect().await.unwrap().to_bytes();
        Response::from_parts(head, String::from_utf8(text.to_vec()).unwrap())
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap()
}

#[tokio::test]
async fn a_proxy_is_told_the_whole_url_of_a_plain_request_and_who_asks() {
    let (listener, address) = listener().await;
    let proxy: JoinHandle<Heard> = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let heard = hear(&mut stream).await;
        answer(&mut stream, "passed on").await;
        heard
    });
    let response = ask(address, "http://provider.test/v1/models", &Tls::default()).await;
    assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "passed on"));
    let heard = proxy.await.unwrap();
    assert_eq!(heard.line, "GET http://provider.test/v1/models HTTP/1.1");
    assert_eq!(heard.headers["proxy-authorization"], "Basic bmFtZTp3b3Jk");
}

#[tokio::test]
async fn a_proxy_only_passes_on_the_bytes_of_a_tls_connection() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["provider.test".to_owned()]).unwrap();
    let ca_file: PathBuf = folder.path().join("ca.pem");
    fs::write(&ca_file, cert.pem()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::Pkcs8(signing_key.serialize_der().into()))
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, address) = listener().await;
    let proxy: JoinHandle<(Heard, Heard)> = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let outside = hear_unbuffered(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        let mut inside = acceptor.accept(stream).await.unwrap();
        let heard = hear(&mut inside).await;
        answer(&mut inside, "answered").await;
        inside.shutdown().await.unwrap();
        (outside, heard)
    });
    let tls = Tls { ca_file: Some(ca_file), ..Tls::default() };
    let response = ask(address, "https://provider.test/v1/models", &tls).await;
    assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "answered"));
    let (outside, inside) = proxy.await.unwrap();
    assert_eq!(outside.line, "CONNECT provider.test:443 HTTP/1.1");
    assert_eq!(outside.headers["proxy-authorization"], "Basic bmFtZTp3b3Jk");
    assert_eq!(inside.line, "GET /v1/models HTTP/1.1");
    assert!(!inside.headers.contains_key("proxy-authorization"), "the provider does not hear of the proxy");
}

/// A request's head without a byte of what follows it.
async fn hear_unbuffered(stream: &mut TcpStream) -> Heard {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    hear(head.as_slice()).await
}

#[test]
fn a_proxy_that_nobody_here_can_speak_to_is_refused() {
    let proxies = Matcher::builder().all("socks5://localhost:1080").build();
    let refused =
        Pools::through(proxies, 1).pool(&uri("https://a"), &Tls::default()).unwrap_err().to_string();
    assert!(refused.contains("socks5://localhost:1080") && refused.contains("ALL_PROXY"), "{refused}");
}

#[test]
fn routes_with_the_same_setting_share_a_pool() {
    let proxies = Matcher::builder().all("http://localhost:1").no("c").build();
    let mut pools = Pools::through(proxies, 10);
    let mut pool = |text| pools.pool(&uri(text), &Tls::default()).unwrap();
    let plain = pool("http://a/v1");
    let others = ["http://b/v1", "http://localhost/v1", "http://c/v1", "http://127.0.0.1"].map(&mut pool);
    assert_eq!(others.map(|other| Arc::ptr_eq(&plain, &other)), [true, false, false, false]);
}

#[test]
fn loopback_is_known_in_each_of_its_forms() {
    for text in ["http://localhost:1", "http://a.localhost", "http://127.0.0.9", "http://[::1]:8000"] {
        assert!(is_loopback(&uri(text)), "{text}");
    }
    for text in ["http://localhost.example.com", "http://10.0.0.1", "http://[::2]", "https://api.openai.com"]
    {
        assert!(!is_loopback(&uri(text)), "{text}");
    }
}

#[test]
fn a_connection_is_filled_before_the_next_one_is_used() {
    let pool = Pool::new(None, Some(Credentials::default()), 200).unwrap();
    let mut leases: Vec<_> = (0..150).map(|_| pool.lease()).collect();
    let counts =
        || pool.members.iter().map(|member| member.in_flight.load(Ordering::Relaxed)).collect::<Vec<_>>();
    assert_eq!(counts(), [100, 50]);
    leases.truncate(20);
    assert_eq!(counts(), [20, 0]);
}

#[test]
fn a_connection_has_room_for_all_streams_that_wait_unread() {
    for in_flight in [1, 32, 512, 1_000, 100_000] {
        let window = stream_window(in_flight);
        assert!(connection_window(window) as usize > window as usize * STREAMS_PER_CONNECTION);
        assert!((16_384..=262_144).contains(&window));
    }
    assert!(stream_window(512) as usize * 512 <= STREAM_WINDOWS);
}

#[test]
fn files_that_do_not_serve_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "nothing").unwrap();
    let missing = folder.path().join("missing.pem");
    let refused = |tls: Tls| Pools::new(1).pool(&uri("https://a"), &tls).unwrap_err().to_string();
    let missing = refused(Tls { ca_file: Some(missing), ..Tls::default() });
    assert!(missing.contains("missing.pem") && missing.contains("make it readable"), "{missing}");
    let no_certificate = refused(Tls { ca_file: Some(empty.clone()), ..Tls::default() });
    assert!(no_certificate.contains("empty.pem: it holds no certificates"), "{no_certificate}");
    let half = refused(Tls { client_key_file: Some(empty), ..Tls::default() });
    assert!(half.contains("name both or none"), "{half}");
}
