//! TLS with a certificate authority of one's own and a client certificate, and HTTP/2 above it.

use std::{
    convert::Infallible,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use penstock_executor::budget::Budget;
use penstock_job::spec::Tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer, server::WebPkiClientVerifier};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use super::{Setup, prompt, send};

/// A server that wants a client certificate, and the files of a client that has one.
struct Guarded {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
    folder: TempDir,
}

impl Guarded {
    /// A server whose answers have about `answer_bytes`.
    async fn start(answer_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(issue(folder.path())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let text = "x".repeat(answer_bytes);
        let body = Bytes::from(format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#));
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                serving.spawn(serve(acceptor.clone(), stream, body.clone(), Arc::clone(&counter)));
            }
        });
        Self { address, connections, task, folder }
    }

    fn setup(&self) -> Setup {
        let file = |name: &str| -> Option<PathBuf> { Some(self.folder.path().join(name)) };
        let mut setup = Setup::prompts(&format!("https://localhost:{}", self.address.port()));
        setup.provider.tls = Tls {
            ca_file: file("ca.pem"),
            client_certificate_file: file("client.pem"),
            client_key_file: file("client.key"),
        };
        setup
    }

    async fn stop(self) -> usize {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, body: Bytes, connections: Arc<AtomicUsize>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    connections.fetch_add(1, Ordering::Relaxed);
    let service = service_fn(move |request: Request<Incoming>| {
        let body = body.clone();
        async move {
            let status = if request.version() == Version::HTTP_2 { 200 } else { 505 };
            let read = request.into_body().collect().await;
            let response =
                Response::builder().status(if read.is_ok() { status } else { 400 }).body(Full::new(body));
            Ok::<_, Infallible>(response.unwrap())
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(100);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Issues the certificates of both sides, writes the client's into `folder`, and returns the server's settings.
fn issue(folder: &Path) -> ServerConfig {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let sign = || {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &authority).unwrap(), key)
    };
    let (client, client_key) = sign();
    for (name, pem) in [
        ("ca.pem", authority.pem()),
        ("client.pem", client.pem()),
        ("client.key", client_key.serialize_pem()),
    ] {
        fs::write(folder.join(name), pem).unwrap();
    }
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let (server, server_key) = sign();
    let key = PrivateKeyDer::Pkcs8(server_key.serialize_der().into());
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let mut config = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![server.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

#[tokio::test]
async fn both_sides_prove_who_they_are_and_speak_http_2() {
    let server = Guarded::start(10).await;
    let setup = server.setup();
    let provider = setup.connect().unwrap();
    for id in 0..5 {
        assert_eq!(setup.verdict(&provider, &prompt(id)).await, "succeeded");
    }
    assert_eq!(server.stop().await, 1, "one connection serves all");
}

#[tokio::test]
async fn without_the_authority_or_the_client_certificate_there_is_no_answer() {
    let server = Guarded::start(10).await;
    let whole = server.setup().provider.tls;
    let unknown_authority = Tls { ca_file: whole.client_certificate_file.clone(), ..whole.clone() };
    let anonymous = Tls { ca_file: whole.ca_file.clone(), ..Tls::default() };
    for (tls, expected) in [
        (unknown_authority, ["retry connection_failed"].as_slice()),
        // TLS 1.3 tells a client that its certificate is missing only after the client takes itself for connected.
        (anonymous, ["retry connection_failed", "retry connection_lost"].as_slice()),
    ] {
        let mut setup = server.setup();
        setup.provider.tls = tls;
        let verdict = setup.verdict(&setup.connect().unwrap(), &prompt(1)).await;
        assert!(expected.contains(&verdict.as_str()), "{verdict}");
    }
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn a_key_of_another_certificate_is_refused_before_anything_is_sent() {
    let (server, other) = (Guarded::start(10).await, Guarded::start(10).await);
    let mut setup = server.setup();
    setup.provider.tls.client_key_file = other.setup().provider.tls.client_key_file;
    let refused = setup.connect().unwrap_err().to_string();
    assert!(refused.contains("certificate and key belong together"), "{refused}");
    assert_eq!(server.stop().await + other.stop().await, 0);
}

#[tokio::test]
async fn answers_that_wait_for_memory_do_not_hold_up_others_on_their_connection() {
    let server = Guarded::start(200 << 10).await;
    let mut setup = server.setup();
    setup.in_flight = 100;
    let provider = setup.connect().unwrap();
    // Whoever finds no connection opens one, so the first request comes alone.
    assert_eq!(setup.verdict(&provider, &prompt(0)).await, "succeeded");
    // Room for all lines to be sent at once, and for none of their answers.
    let budget = Budget::new(100 * 10 * 1024);
    let outcomes = join_all((0..100).map(|id| {
        let (provider, budget) = (&provider, &budget);
        async move { send(provider, budget, &prompt(id)).await }
    }));
    for outcome in outcomes.await {
        assert_eq!(setup.word(&outcome), "succeeded");
    }
    assert_eq!(server.stop().await, 1, "all answers share a connection");
}
