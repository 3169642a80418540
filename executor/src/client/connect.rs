//! Connections: TCP, perhaps through a proxy, and TLS over it.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Intercept,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

use super::credentials::{ClientError, Credentials, plain};

/// How long a connection may take to come about, TLS and proxy included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is silent before the system asks whether the other side is there, and between two such
/// questions. Answers take minutes, in which nothing else would tell a dead connection from a slow model.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Questions without an answer that end a connection.
const KEEPALIVE_RETRIES: u32 = 3;

/// How long what was sent may stay unacknowledged before the connection is given up. Keepalive says nothing of that.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
/// TCP, or TLS over it where a proxy is spoken to in TLS.
type Socket = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A proxy between here and the provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    pub(crate) fn of(intercept: &Intercept) -> Self {
        Self { uri: intercept.uri().clone(), authorization: intercept.basic_auth().cloned() }
    }

    /// Name and password, as the proxy wants to hear them.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

/// Makes connections to providers of one TLS setting.
#[derive(Debug, Clone)]
pub(crate) struct Connector(HttpsConnector<Way>);

/// The way of a connection to where TLS begins.
#[derive(Debug, Clone)]
enum Way {
    Direct(HttpConnector),
    /// The proxy passes requests on.
    Forwarded(Uri, HttpsConnector<HttpConnector>),
    /// The proxy passes bytes on.
    Tunnelled(Tunnel<HttpsConnector<HttpConnector>>),
}

/// A connection that knows whether its requests are passed on by a proxy, which wants their whole URL.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    is_forwarded: bool,
}

impl Connector {
    /// A connector for `https` with `credentials`, else for `http`.
    pub(crate) fn new(credentials: Option<Credentials>, proxy: Option<&Proxy>) -> Result<Self, ClientError> {
        let way = match proxy {
            None => Way::Direct(tcp()),
            Some(proxy) => {
                let trusted = match proxy.uri.scheme_str() {
                    Some("http") => plain()?,
                    Some("https") => Credentials::default().config(&[b"http/1.1"])?,
                    _ => return Err(ClientError::Proxy(proxy.uri.clone())),
                };
                let hop = HttpsConnector::from((tcp(), trusted));
                match (&credentials, proxy.authorization()) {
                    (None, _) => Way::Forwarded(proxy.uri.clone(), hop),
                    (Some(_), None) => Way::Tunnelled(Tunnel::new(proxy.uri.clone(), hop)),
                    (Some(_), Some(value)) => {
                        Way::Tunnelled(Tunnel::new(proxy.uri.clone(), hop).with_auth(value.clone()))
                    }
                }
            }
        };
        let config = match credentials {
            Some(credentials) => credentials.config(&[b"h2", b"http/1.1"])?,
            None => plain()?,
        };
        Ok(Self(HttpsConnector::from((way, config))))
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move {
            tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| {
                let text = format!("no connection within {CONNECT_TIMEOUT:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
            })
        })
    }
}

impl Service<Uri> for Way {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting<Stream>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(context).map_err(Into::into),
            Self::Forwarded(_, proxy) => proxy.poll_ready(context),
            Self::Tunnelled(tunnel) => tunnel.poll_ready(context).map_err(Into::into),
        }
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(target);
                Box::pin(async move {
                    Ok(Stream { socket: MaybeHttpsStream::Http(connecting.await?), is_forwarded: false })
                })
            }
            Self::Forwarded(uri, proxy) => {
                let connecting = proxy.call(uri.clone());
                Box::pin(async move { Ok(Stream { socket: connecting.await?, is_forwarded: true }) })
            }
            Self::Tunnelled(tunnel) => {
                let connecting = tunnel.call(target);
                Box::pin(async move { Ok(Stream { socket: connecting.await?, is_forwarded: false }) })
            }
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.socket.connected().proxy(self.is_forwarded)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }
}
