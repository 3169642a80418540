//! TLS for the progress server: connections whose handshake is done, one after the other.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshakes at once: more wait in the backlog of the socket.
const HANDSHAKES: usize = 256;
/// How long to wait after the system has refused a connection, for want of file descriptors say.
const PAUSE: Duration = Duration::from_secs(1);

/// Accepts connections and shakes hands, so that a slow client holds up nobody.
pub(super) struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    shaking: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl TlsListener {
    /// Speaks TLS as `acceptor` says on every connection to `tcp`.
    pub(super) fn new(tcp: TcpListener, acceptor: TlsAcceptor) -> Self {
        Self { tcp, acceptor, shaking: JoinSet::new() }
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let has_room = self.shaking.len() < HANDSHAKES;
            tokio::select! {
                Some(shaken) = self.shaking.join_next() => {
                    if let Ok(Some(connection)) = shaken {
                        return connection;
                    }
                }
                accepted = self.tcp.accept(), if has_room => match accepted {
                    Ok((stream, address)) => {
                        let handshake = self.acceptor.accept(stream);
                        self.shaking.spawn(async move {
                            let stream = timeout(HANDSHAKE, handshake).await.ok()?.ok()?;
                            Some((stream, address))
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
