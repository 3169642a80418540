//! The HTTP clients: TLS, timeouts, connections. One pool for each TLS setting, shared by the routes that have it.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use penstock_job::spec::Tls;
use reqwest::{Certificate, Client, ClientBuilder, Identity, redirect};
use thiserror::Error;
use url::{Host, Url};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The fewest streams that HTTP/2 asks servers to allow on one connection. A client keeps one such connection to a
/// server, so there is one client for each so many requests in flight.
const STREAMS_PER_CONNECTION: usize = 100;

/// Bytes of unread answers that all HTTP/2 streams together are meant to hold.
const STREAM_WINDOWS: usize = 8 << 20;

/// TLS files that cannot be used.
#[derive(Debug, Error)]
pub enum ClientError {
    /// A file cannot be read.
    #[error("read the TLS file {path}: {source}; make it readable, or correct its path in `tls`")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file does not hold certificates, or a key, in PEM form.
    #[error("use the TLS file {path}: it holds no {wanted} in PEM form; name the right file in `tls`")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
    },
    /// One half of a client certificate is missing.
    #[error(
        "use a client certificate: `client_certificate_file` and `client_key_file` go together; name both or none"
    )]
    HalfACertificate,
    /// The settings as a whole are refused.
    #[error(
        "set up TLS: {0}; see that certificate and key belong together, and that the system has CA certificates"
    )]
    Build(String),
}

/// Makes pools, one for each TLS setting.
#[derive(Debug)]
pub(super) struct Pools {
    in_flight: usize,
    pools: HashMap<Needs, Arc<Pool>>,
}

/// What decides how a client is built.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Needs {
    /// `None`: plain HTTP.
    tls: Option<Tls>,
    /// A proxy could not reach this machine.
    is_loopback: bool,
}

/// Clients of one TLS setting.
#[derive(Debug)]
pub(super) struct Pool {
    members: Box<[Member]>,
}

#[derive(Debug)]
struct Member {
    client: Client,
    in_flight: AtomicUsize,
}

/// A client for one request.
#[derive(Debug)]
pub(super) struct Lease<'a>(&'a Member);

impl Pools {
    /// Pools that are made for `in_flight` requests at once.
    pub(super) fn new(in_flight: usize) -> Self {
        Self { in_flight: in_flight.max(1), pools: HashMap::new() }
    }

    /// The pool for requests to `url`.
    pub(super) fn pool(&mut self, url: &Url, tls: &Tls) -> Result<Arc<Pool>, ClientError> {
        let needs =
            Needs { tls: (url.scheme() == "https").then(|| tls.clone()), is_loopback: is_loopback(url) };
        if let Some(pool) = self.pools.get(&needs) {
            return Ok(Arc::clone(pool));
        }
        let pool = Arc::new(Pool::new(&needs, self.in_flight)?);
        self.pools.insert(needs, Arc::clone(&pool));
        Ok(pool)
    }
}

impl Pool {
    fn new(needs: &Needs, in_flight: usize) -> Result<Self, ClientError> {
        let tls = needs.tls.as_ref().map(Credentials::read).transpose()?;
        let count = if tls.is_some() { in_flight.div_ceil(STREAMS_PER_CONNECTION) } else { 1 };
        let members = (0..count)
            .map(|_| {
                let builder = tuned(in_flight);
                let builder = if needs.is_loopback { builder.no_proxy() } else { builder };
                let builder = match &tls {
                    Some(credentials) => credentials.apply(builder),
                    // Nothing is verified, so a machine without CA certificates will do.
                    None => builder.tls_certs_only([]),
                };
                let client = builder.build().map_err(|error| ClientError::Build(innermost(&error)))?;
                Ok(Member { client, in_flight: AtomicUsize::new(0) })
            })
            .collect::<Result<_, ClientError>>()?;
        Ok(Self { members })
    }

    /// The first client whose connection has room for one more stream, so that few connections serve few requests.
    pub(super) fn lease(&self) -> Lease<'_> {
        let has_room = |member: &&Member| member.in_flight.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION;
        let last = || self.members.last().expect("invariant: a pool has a client");
        let member = self.members.iter().find(has_room).unwrap_or_else(last);
        member.in_flight.fetch_add(1, Ordering::Relaxed);
        Lease(member)
    }
}

impl Lease<'_> {
    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A builder with everything set that does not depend on the route. Redirects are not followed: they would carry the
/// key elsewhere.
fn tuned(in_flight: usize) -> ClientBuilder {
    let window = stream_window(in_flight);
    Client::builder()
        .user_agent(concat!("penstock/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(in_flight)
        .http2_initial_stream_window_size(window)
        .http2_initial_connection_window_size(connection_window(window))
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

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The contents of the TLS files.
struct Credentials {
    authorities: Option<Vec<Certificate>>,
    identity: Option<Identity>,
}

impl Credentials {
    fn read(tls: &Tls) -> Result<Self, ClientError> {
        let authorities = tls.ca_file.as_deref().map(authorities).transpose()?;
        let identity = match (&tls.client_certificate_file, &tls.client_key_file) {
            (Some(certificate), Some(key)) => Some(identity(certificate, key)?),
            (None, None) => None,
            _ => return Err(ClientError::HalfACertificate),
        };
        Ok(Self { authorities, identity })
    }

    fn apply(&self, builder: ClientBuilder) -> ClientBuilder {
        let builder = match &self.authorities {
            Some(authorities) => builder.tls_certs_only(authorities.iter().cloned()),
            None => builder,
        };
        match &self.identity {
            Some(identity) => builder.identity(identity.clone()),
            None => builder,
        }
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let certificates = Certificate::from_pem_bundle(&content(path)?).unwrap_or_default();
    if certificates.is_empty() {
        return Err(ClientError::Content { path: path.to_owned(), wanted: "certificates" });
    }
    Ok(certificates)
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, ClientError> {
    let refuse = |path: &Path, wanted| ClientError::Content { path: path.to_owned(), wanted };
    let mut pem = content(certificate)?;
    if Certificate::from_pem_bundle(&pem).unwrap_or_default().is_empty() {
        return Err(refuse(certificate, "certificates"));
    }
    pem.push(b'\n');
    pem.extend(content(key)?);
    Identity::from_pem(&pem).map_err(|_| refuse(key, "private key"))
}

fn content(path: &Path) -> Result<Vec<u8>, ClientError> {
    fs::read(path).map_err(|source| ClientError::File { path: path.to_owned(), source })
}

/// The last error of a chain: the others only repeat that something failed.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn routes_with_the_same_setting_share_a_pool() {
        let mut pools = Pools::new(10);
        let plain = pools.pool(&url("http://a/v1"), &Tls::default()).unwrap();
        let other = pools.pool(&url("http://b/v1"), &Tls::default()).unwrap();
        let local = pools.pool(&url("http://localhost/v1"), &Tls::default()).unwrap();
        assert!(Arc::ptr_eq(&plain, &other));
        assert!(!Arc::ptr_eq(&plain, &local), "a proxy is for the others only");
    }

    #[test]
    fn loopback_is_known_in_each_of_its_forms() {
        for text in ["http://localhost:1", "http://a.localhost", "http://127.0.0.9", "http://[::1]:8000"] {
            assert!(is_loopback(&url(text)), "{text}");
        }
        for text in
            ["http://localhost.example.com", "http://10.0.0.1", "http://[::2]", "https://api.openai.com"]
        {
            assert!(!is_loopback(&url(text)), "{text}");
        }
    }

    #[test]
    fn a_connection_is_filled_before_the_next_one_is_used() {
        let member = || Member { client: Client::new(), in_flight: AtomicUsize::new(0) };
        let pool = Pool { members: Box::new([member(), member()]) };
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
        let refused = |tls: Tls| Pools::new(1).pool(&url("https://a"), &tls).unwrap_err().to_string();
        let missing = refused(Tls { ca_file: Some(missing), ..Tls::default() });
        assert!(missing.contains("missing.pem") && missing.contains("make it readable"), "{missing}");
        let no_certificate = refused(Tls { ca_file: Some(empty.clone()), ..Tls::default() });
        assert!(no_certificate.contains("empty.pem: it holds no certificates"), "{no_certificate}");
        let half = refused(Tls { client_key_file: Some(empty), ..Tls::default() });
        assert!(half.contains("name both or none"), "{half}");
    }
}
