//! The HTTP clients, for providers and for the operator: timeouts, connections, and one pool for each TLS setting and
//! proxy, shared by the routes that have them.
//!
//! A request costs its client's work tens of thousands of times a second. So hyper's client is used as it is, without
//! what a general client puts around it for each request: redirects, cookies, decompression, a second look at the URL.

mod connect;
mod credentials;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper_util::{
    client::{legacy, proxy::matcher::Matcher},
    rt::{TokioExecutor, TokioTimer},
};
use penstock_job::spec::Tls;

pub use self::credentials::ClientError;
use self::{
    connect::{Connector, Proxy},
    credentials::Credentials,
};

/// Sends one request after another, over connections that it keeps.
pub(crate) type Client = legacy::Client<Connector, Full<Bytes>>;

/// How long a connection is kept that nobody uses. Providers close theirs after a minute or more.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The fewest streams that HTTP/2 asks servers to allow on one connection. A client keeps one such connection to a
/// server, so there is one client for each so many requests in flight.
const STREAMS_PER_CONNECTION: usize = 100;

/// Bytes of unread answers that all HTTP/2 streams together are meant to hold.
const STREAM_WINDOWS: usize = 8 << 20;

/// Makes pools, one for each TLS setting and proxy.
#[derive(Debug)]
pub(crate) struct Pools {
    in_flight: usize,
    proxies: Matcher,
    made: HashMap<Needs, Arc<Pool>>,
}

/// What decides how a client is built.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Needs {
    /// `None`: plain HTTP.
    tls: Option<Tls>,
    /// `None`: straight to the server.
    proxy: Option<Proxy>,
}

/// Clients of one TLS setting and proxy.
#[derive(Debug)]
pub(crate) struct Pool {
    members: Box<[Member]>,
    proxy_authorization: Option<HeaderValue>,
}

#[derive(Debug)]
struct Member {
    client: Client,
    in_flight: AtomicUsize,
}

/// A client for one request.
#[derive(Debug)]
pub(crate) struct Lease<'a>(&'a Member);

impl Pools {
    /// Pools that are made for `in_flight` requests at once. Proxies are those that the environment names
    /// (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), as curl reads it.
    pub(crate) fn new(in_flight: usize) -> Self {
        Self::through(Matcher::from_env(), in_flight)
    }

    fn through(proxies: Matcher, in_flight: usize) -> Self {
        Self { in_flight: in_flight.max(1), proxies, made: HashMap::new() }
    }

    /// The pool for requests to `uri` under certificate authorities that are given as PEM text.
    pub(crate) fn trusting(&self, uri: &Uri, authorities: &str) -> Result<Arc<Pool>, ClientError> {
        let credentials = Credentials::trusting(authorities)?;
        Ok(Arc::new(Pool::new(self.proxy(uri).as_ref(), Some(credentials), self.in_flight)?))
    }

    /// The pool for requests to `uri`.
    pub(crate) fn pool(&mut self, uri: &Uri, tls: &Tls) -> Result<Arc<Pool>, ClientError> {
        let proxy = self.proxy(uri);
        let tls = (uri.scheme_str() == Some("https")).then(|| tls.clone());
        let needs = Needs { tls, proxy };
        if let Some(pool) = self.made.get(&needs) {
            return Ok(Arc::clone(pool));
        }
        let credentials = needs.tls.as_ref().map(Credentials::read).transpose()?;
        let pool = Arc::new(Pool::new(needs.proxy.as_ref(), credentials, self.in_flight)?);
        self.made.insert(needs, Arc::clone(&pool));
        Ok(pool)
    }

    fn proxy(&self, uri: &Uri) -> Option<Proxy> {
        if is_loopback(uri) {
            // A proxy could not reach this machine.
            return None;
        }
        self.proxies.intercept(uri).map(|intercept| Proxy::of(&intercept))
    }
}

impl Pool {
    /// Clients for TLS with `credentials`, else for plain HTTP.
    fn new(
        proxy: Option<&Proxy>,
        credentials: Option<Credentials>,
        in_flight: usize,
    ) -> Result<Self, ClientError> {
        // Through a tunnel the proxy hears it when the connection is made, and the provider never does.
        let told = proxy.filter(|_| credentials.is_none());
        let proxy_authorization = told.and_then(Proxy::authorization).cloned();
        let count = if credentials.is_some() { in_flight.div_ceil(STREAMS_PER_CONNECTION) } else { 1 };
        let connector = Connector::new(credentials, proxy)?;
        let builder = tuned(in_flight);
        let members = (0..count)
            .map(|_| Member { client: builder.build(connector.clone()), in_flight: AtomicUsize::new(0) })
            .collect();
        Ok(Self { members, proxy_authorization })
    }

    /// What each request carries for a proxy that passes it on.
    pub(crate) fn proxy_authorization(&self) -> Option<&HeaderValue> {
        self.proxy_authorization.as_ref()
    }

    /// The first client whose connection has room for one more stream, so that few connections serve few requests.
    pub(crate) fn lease(&self) -> Lease<'_> {
        let has_room = |member: &&Member| member.in_flight.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION;
        let last = || self.members.last().expect("invariant: a pool has a client");
        let member = self.members.iter().find(has_room).unwrap_or_else(last);
        member.in_flight.fetch_add(1, Ordering::Relaxed);
        Lease(member)
    }
}

impl Lease<'_> {
    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A builder with everything set that does not depend on the route.
fn tuned(in_flight: usize) -> legacy::Builder {
    let window = stream_window(in_flight);
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(in_flight)
        .http2_initial_stream_window_size(window)
        .http2_initial_connection_window_size(connection_window(window));
    builder
}

/// How many bytes of one answer may wait unread on an HTTP/2 stream.
fn stream_window(in_flight: usize) -> u32 {
    const SMALLEST: usize = 16 << 10;
    const LARGEST: usize = 256 << 10;
    u32::try_from((STREAM_WINDOWS / in_flight).clamp(SMALLEST, LARGEST)).expect("invariant: clamped")
}

/// Room for every stream of a connection at once: answers that wait for memory must not hold up the one that has it.
/// Leases are counted without a lock, so a few streams more than intended may be open.
fn connection_window(stream_window: u32) -> u32 {
    const MARGIN: usize = 28;
    stream_window * u32::try_from(STREAMS_PER_CONNECTION + MARGIN).expect("invariant: a small number")
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests;
