//! A double of the operator: a server with TLS that keeps every report and answers as it is told, or lies.

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use penstock_job::{Directives, Report, document, report::LONGEST_REPORT};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// No report takes longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// How the double answers a report.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Directives(Directives),
    Status(StatusCode),
    Bytes(Bytes),
    Never,
}

/// One report as it came.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) report: Report,
    pub(crate) authorization: Option<String>,
}

pub(crate) struct Operator {
    address: SocketAddr,
    certificate: String,
    state: Arc<Mutex<Doing>>,
    count: watch::Sender<usize>,
    _serving: AbortOnDropHandle<()>,
}

struct Doing {
    answer: Answer,
    heard: Vec<Heard>,
}

impl Operator {
    pub(crate) async fn start(answer: Answer) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Doing { answer, heard: Vec::new() }));
        let count = watch::Sender::new(0);
        let serving = tokio::spawn(listen(listener, acceptor, Arc::clone(&state), count.clone()));
        Self { address, certificate: cert.pem(), state, count, _serving: AbortOnDropHandle::new(serving) }
    }

    /// The section of a job file that names this operator.
    pub(crate) fn section(&self, token_file: &Path) -> Value {
        json!({
            "url": format!("https://localhost:{}/v1/report", self.address.port()),
            "ca": self.certificate,
            "token_file": token_file,
            "every_seconds": 1,
        })
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.doing().answer = answer;
    }

    pub(crate) fn direct(&self, directives: Directives) {
        self.answer(Answer::Directives(directives));
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.doing().heard.clone()
    }

    /// Waits for a report, from now on, that is such.
    pub(crate) async fn hears(&self, such: impl Fn(&Report) -> bool) -> Report {
        let mut seen = self.heard().len();
        let mut counts = self.count.subscribe();
        let found = timeout(PATIENCE, async {
            loop {
                counts.wait_for(|count| *count > seen).await.unwrap();
                let heard = self.heard();
                if let Some(heard) = heard[seen..].iter().find(|heard| such(&heard.report)) {
                    return heard.report.clone();
                }
                seen = heard.len();
            }
        });
        found.await.unwrap_or_else(|_| panic!("no such report, the last is {:#?}", self.heard().last()))
    }

    fn doing(&self) -> std::sync::MutexGuard<'_, Doing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    state: Arc<Mutex<Doing>>,
    count: watch::Sender<usize>,
) {
    let mut serving = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        serving.spawn(serve(acceptor.clone(), stream, Arc::clone(&state), count.clone()));
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    state: Arc<Mutex<Doing>>,
    count: watch::Sender<usize>,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let (state, count) = (Arc::clone(&state), count.clone());
        async move {
            let authorization =
                request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert!(body.len() <= LONGEST_REPORT);
            let report = document::read(&body).unwrap();
            let answer = {
                let mut doing = state.lock().unwrap_or_else(PoisonError::into_inner);
                doing.heard.push(Heard { report, authorization });
                doing.answer.clone()
            };
            count.send_modify(|count| *count += 1);
            let (status, bytes) = match answer {
                Answer::Directives(directives) => (StatusCode::OK, Bytes::from(document::write(&directives))),
                Answer::Status(status) => (status, Bytes::from_static(b"no")),
                Answer::Bytes(bytes) => (StatusCode::OK, bytes),
                Answer::Never => std::future::pending().await,
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(Full::new(bytes)).unwrap())
        }
    });
    // A client that goes away in the middle of an answer is a part of these tests.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
