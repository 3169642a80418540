//! The room that acts: accepts connections, answers requests, shuts down.

mod body;
mod exchange;
mod metrics;
mod places;
mod provider;
mod visit;

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::{exchange::exchange, provider::Provider};
use crate::{
    log::{Log, LogEntry},
    settings::{InvalidSettings, ProviderSettings},
};

/// How long a client may take to send its request head.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);

/// How long a shutdown waits for the requests that are being answered.
const GRACE: Duration = Duration::from_secs(2);

/// The most requests on one HTTP/2 connection.
const STREAMS_PER_CONNECTION: u32 = 2_000;

/// How long to wait after a failed accept, which mostly means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A provider that runs in this process, over HTTP/1.1 and HTTP/2 without TLS.
///
/// Dropping it without [`Server::shutdown`] stops it too, but waits for nothing.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    provider: Arc<Provider>,
    stop: DropGuard,
    accepting: JoinHandle<()>,
}

/// What the server was asked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that arrived in whole.
    pub received: u64,
    /// Answered with 200, whatever became of the body.
    pub succeeded: u64,
    /// Answered with 429.
    pub throttled: u64,
    /// Answered with another status.
    pub failed: u64,
    /// Ended without an answer: dropped, hung, or left by the client.
    pub unanswered: u64,
}

impl Requests {
    /// Requests that have no end yet.
    pub fn in_flight(&self) -> u64 {
        let ended = self.succeeded + self.throttled + self.failed + self.unanswered;
        self.received.saturating_sub(ended)
    }
}

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings describe no provider.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
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

impl Server {
    /// Starts a server; port 0 takes any free port.
    pub async fn start(settings: ProviderSettings, address: SocketAddr) -> Result<Self, StartError> {
        settings.check()?;
        let log = Log::open(&settings.log).map_err(|source| StartError::Log {
            path: settings.log.file.clone().unwrap_or_default(),
            source,
        })?;
        let in_listen = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(in_listen)?;
        let address = listener.local_addr().map_err(in_listen)?;
        let connections = settings.connections;
        let stop = CancellationToken::new();
        let provider = Arc::new(Provider::new(settings, log, stop.clone()));
        let accepting = accept(listener, Arc::clone(&provider), connections);
        Ok(Self { address, provider, stop: stop.drop_guard(), accepting: tokio::spawn(accepting) })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL that a client of OpenAI is given, such as `http://127.0.0.1:8080/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// What the URLs of all dialects begin with, such as `http://127.0.0.1:8080`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The counts so far.
    pub fn requests(&self) -> Requests {
        let counters = &self.provider.counters;
        // The arrivals are read last, so that no request is seen ended that was not seen to arrive.
        let [succeeded, throttled, failed, unanswered, received] = [
            &counters.succeeded,
            &counters.throttled,
            &counters.failed,
            &counters.unanswered,
            &counters.received,
        ]
        .map(|counter| counter.load(Relaxed));
        Requests { received, succeeded, throttled, failed, unanswered }
    }

    /// The entries that are kept in memory, oldest first.
    pub fn log(&self) -> Vec<LogEntry> {
        self.provider.log.entries()
    }

    /// Puts other settings into force for the requests that arrive from now on. The moments of fault rules
    /// count from here; a changed limit remembers what was used.
    pub fn update(&self, settings: ProviderSettings) -> Result<(), InvalidSettings> {
        self.provider.update(settings)
    }

    /// Stops accepting, gives what is being answered two seconds, closes the rest and returns when every task
    /// has ended.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.accepting.await {
            tracing::error!(%error, "the simulator's accept loop ended abnormally");
        }
    }
}

/// Accepts connections until told to stop, then ends them. Owns all tasks of the server.
async fn accept(listener: TcpListener, provider: Arc<Provider>, connections: usize) {
    let places = Arc::new(Semaphore::new(connections));
    let streams = TaskTracker::new();
    let mut tasks = JoinSet::new();
    let next = async || {
        let place = Arc::clone(&places).acquire_owned().await;
        (listener.accept().await, place)
    };
    while let Some((accepted, place)) = provider.stop.run_until_cancelled(next()).await {
        while tasks.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let connection = serve(stream, Arc::clone(&provider), streams.clone());
                tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the simulator could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    streams.close();
    let ended = timeout(GRACE, async {
        while tasks.join_next().await.is_some() {}
        streams.wait().await;
    });
    if ended.await.is_err() {
        provider.abandon.cancel();
        tasks.shutdown().await;
        streams.wait().await;
    }
}

/// Serves one connection. `streams` holds the tasks of its HTTP/2 streams.
async fn serve(stream: TcpStream, provider: Arc<Provider>, streams: TaskTracker) {
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
    let stop = provider.stop.clone();
    let service = service_fn(move |request| exchange(Arc::clone(&provider), request));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
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
