//! The room that acts: accepts connections, tells REST from gRPC, shuts down.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use http::{Request, Response, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    body::Body,
    counters::Requests,
    faults::{FaultRule, InvalidFaultRule},
    grpc,
    history::History,
    log::{Log, LogEntry},
    rest,
    service::Service,
    settings::StorageSettings,
    visit::Dropped,
};

/// How long a client may take to send its request head.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);

/// How long a shutdown waits for the requests that are being answered.
const GRACE: Duration = Duration::from_secs(2);

/// The most requests on one HTTP/2 connection.
const STREAMS_PER_CONNECTION: u32 = 1_000;

/// How long to wait after a failed accept, which mostly means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A storage service that runs in this process, over HTTP/1.1 and HTTP/2 without TLS.
///
/// Dropping it without [`StorageServer::shutdown`] stops it too, but waits for nothing.
#[derive(Debug)]
pub struct StorageServer {
    address: SocketAddr,
    service: Arc<Service>,
    stop: DropGuard,
    accepting: JoinHandle<()>,
}

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The fault rules cannot be followed.
    #[error(transparent)]
    Faults(#[from] InvalidFaultRule),
    /// The address cannot be had.
    #[error("listen on {address}: {source}; choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The log cannot be opened.
    #[error("open the log {path}: {source}; name a file in a folder that can be written")]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StorageServer {
    /// Starts a server; port 0 takes any free port.
    pub async fn start(settings: StorageSettings, address: SocketAddr) -> Result<Self, StartError> {
        let in_listen = |source| StartError::Listen { address, source };
        let log = Log::open(settings.log_entries, settings.log_file.as_deref());
        let log = log.map_err(|source| StartError::Log {
            path: settings.log_file.clone().unwrap_or_default(),
            source,
        })?;
        let stop = CancellationToken::new();
        let listener = TcpListener::bind(address).await.map_err(in_listen)?;
        let address = listener.local_addr().map_err(in_listen)?;
        let service = Arc::new(Service::new(settings, address, log, stop.clone())?);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&service)));
        Ok(Self { address, service, stop: stop.drop_guard(), accepting })
    }

    /// What the URLs of REST begin with, and the endpoint of gRPC, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, oldest first.
    pub fn log(&self) -> Vec<LogEntry> {
        self.service.log.entries()
    }

    /// Every change of an object's content, where the settings keep them.
    pub fn history(&self) -> History {
        self.service.history.clone()
    }

    /// The counts so far.
    pub fn requests(&self) -> Requests {
        self.service.counters.so_far()
    }

    /// Puts other fault rules into force, which count from here.
    pub fn set_faults(&self, rules: Vec<FaultRule>) -> Result<(), InvalidFaultRule> {
        self.service.set_faults(rules)
    }

    /// Stops accepting, gives what is being answered two seconds, closes the rest and returns when every task
    /// has ended.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.accepting.await {
            tracing::error!(%error, "the accept loop of the storage double ended abnormally");
        }
    }
}

/// Accepts connections until told to stop, then ends them. Owns all tasks of the server.
async fn accept(listener: TcpListener, service: Arc<Service>) {
    let streams = TaskTracker::new();
    let mut telling = JoinSet::new();
    if let Some(outbox) = service.outbox.clone() {
        telling.spawn(outbox.tell());
    }
    let mut connections = JoinSet::new();
    while let Some(accepted) = service.stop.run_until_cancelled(listener.accept()).await {
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&service), streams.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "the storage double could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    streams.close();
    let ended = timeout(GRACE, async {
        while connections.join_next().await.is_some() {}
        streams.wait().await;
    });
    if ended.await.is_err() {
        service.abandon.cancel();
        connections.shutdown().await;
        streams.wait().await;
    }
    telling.shutdown().await;
}

/// Serves one connection. `streams` holds the tasks of its HTTP/2 streams.
async fn serve(stream: TcpStream, service: Arc<Service>, streams: TaskTracker) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let mut builder = Builder::new(Tracked(streams));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_DEADLINE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .adaptive_window(true);
    let stop = service.stop.clone();
    let answering = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { answer(&service, request).await }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answering);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(service: &Arc<Service>, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc")) {
        grpc::answer(service, request).await
    } else {
        rest::answer(service, request).await
    }
}

/// Spawns the tasks of HTTP/2 streams where a shutdown can wait for them.
#[derive(Debug, Clone)]
struct Tracked(TaskTracker);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}
