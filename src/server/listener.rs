//! Accepts connections and serves them.

use super::activity::{CountedRequests, idle};
use super::timed_stream::TimedStream;
use super::tls::Tls;
use crate::slots::{Slot, Slots};
use crate::telemetry::names;
use axum::Router;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Maximum number of bytes of the head of a request.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// Requests of one connection at once, in HTTP/2.
const MOST_STREAMS: u32 = 128;
/// Interval at which a client of HTTP/2 is asked whether it is there.
const PING: Duration = Duration::from_secs(20);
/// Pause in accepting when the process has no room for a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Response to a client if there are too many connections.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Address of the peer of the connection that a request came on, as an extension of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Accepts connections on one address.
pub struct Listener {
    socket: TcpListener,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    /// Slots by address, as [`network`] has it.
    connections: Slots<IpAddr>,
}

impl Listener {
    /// Listens on an address: a name or a number, and a port.
    pub async fn bind(address: (&str, u16), limits: ConnectionLimits, tls: Option<Tls>) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let connections = Slots::new(limits.connections, limits.per_address);
        Ok(Self { socket, limits, tls, connections })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// Where the operating system does not know.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves connections until `closing` is over; then accepts no more, closes those that are idle, and returns when all are
    /// closed.
    pub async fn serve(self, router: Router, closing: impl Future<Output = ()>) {
        let (ending, connections) = (CancellationToken::new(), TaskTracker::new());
        let mut closing = pin!(closing);
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                () = &mut closing => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted now");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(slot) = self.connections.try_take(Some(network(peer.ip()))) else {
                metrics::counter!(names::HTTP_CONNECTIONS_REFUSED).increment(1);
                self.refuse(stream);
                continue;
            };
            let connection = Connection {
                limits: self.limits,
                router: router.clone(),
                peer: PeerAddress(peer.ip()),
                _open: OpenConnection::new(slot),
            };
            let (ending, tls) = (ending.clone(), self.tls.clone());
            connections.spawn(async move {
                // A failure on a connection concerns its client alone.
                if let Err(error) = connection.serve(stream, tls, ending).await {
                    tracing::debug!(%error, %peer, "connection ended");
                }
            });
        }
        drop(self.socket);
        ending.cancel();
        connections.close();
        connections.wait().await;
    }

    /// Tells a client that there are too many connections, where that takes no time.
    fn refuse(&self, mut stream: TcpStream) {
        if self.tls.is_none() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(PAUSE, stream.write_all(FULL)).await;
            });
        }
    }
}

/// Returns true if an error of accepting is one of the client that came, not of the process.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A connection that is counted as long as it is open.
struct OpenConnection(#[expect(dead_code, reason = "it is given back when the connection is closed")] Slot<IpAddr>);

impl OpenConnection {
    fn new(slot: Slot<IpAddr>) -> Self {
        metrics::gauge!(names::HTTP_CONNECTIONS).increment(1.0);
        Self(slot)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::gauge!(names::HTTP_CONNECTIONS).decrement(1.0);
    }
}

struct Connection {
    limits: ConnectionLimits,
    router: Router,
    peer: PeerAddress,
    _open: OpenConnection,
}

/// Why a connection ended before its time.
type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    async fn serve(
        self,
        stream: TcpStream,
        tls: Option<Tls>,
        ending: CancellationToken,
    ) -> Result<(), ConnectionError> {
        // Answers are written at once, so that nothing is gained by waiting for more.
        stream.set_nodelay(true)?;
        let Some(tls) = tls else { return self.serve_http(stream, ending).await };
        let handshake = tls.acceptor().accept(stream);
        let stream = tokio::time::timeout(self.limits.header_timeout, handshake).await??;
        self.serve_http(stream, ending).await
    }

    async fn serve_http<S>(self, stream: S, ending: CancellationToken) -> Result<(), ConnectionError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(MOST_HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .max_header_list_size(MOST_HEAD_BYTES as u32)
            .max_concurrent_streams(MOST_STREAMS);
        let stream = TokioIo::new(TimedStream::new(stream, self.limits.header_timeout, self.limits.write_timeout));
        let (service, mut requests) = CountedRequests::new(self.router, self.limits.write_timeout);
        let service = service.map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(self.peer);
            request
        });
        let mut connection = pin!(builder.serve_connection(stream, TowerToHyperService::new(service)));
        // The second time it is closed, whatever the client does: one that answers no ping would keep it open.
        for is_told in [false, true] {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = idle(&mut requests, self.limits.header_timeout) => {}
                () = ending.cancelled(), if !is_told => {}
            }
            connection.as_mut().graceful_shutdown();
        }
        Ok(())
    }
}

/// The part of the files that the process may open that connections may take, in percent.
const FILES_PERCENT: u64 = 80;
/// Where the settings say `auto`: more would take more memory than a service has to spare: one takes some 50 KB.
const MOST_CONNECTIONS: usize = 10_000;
/// Files that are assumed where the operating system does not say how many there may be.
const UNKNOWN_FILES: u64 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum time for the head of a request, and for an idle connection.
    pub header_timeout: Duration,
    /// Maximum time in which a client takes nothing of an answer.
    pub write_timeout: Duration,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of them from one IPv4 address or one /64 of IPv6.
    pub per_address: usize,
}

/// Returns the maximum number of connections from one address: as many as `wanted`, or half of all, rounded up.
#[must_use]
pub fn address_limit(wanted: Option<usize>, connections: usize) -> usize {
    wanted.unwrap_or_else(|| connections.div_ceil(2))
}

/// Returns the address by which connections are counted: that of the peer in IPv4, its /64 in IPv6, since a client of IPv6
/// commonly has all addresses of one.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Raises the number of files that the process may open to the most that it is allowed, and gives how many connections there are to
/// be: as many as `wanted`, or as suit a service, but never more than these files are enough for.
#[must_use]
pub fn connection_limit(wanted: Option<usize>) -> usize {
    let files = raised_limit().unwrap_or(UNKNOWN_FILES);
    let possible = usize::try_from(files.saturating_mul(FILES_PERCENT) / 100).unwrap_or(usize::MAX);
    wanted.unwrap_or(MOST_CONNECTIONS).min(possible).max(1)
}

#[cfg(unix)]
fn raised_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // A limit that cannot be raised stays as it is.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if raised.is_ok() { maximum.or(current) } else { current }
}

#[cfg(not(unix))]
fn raised_limit() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_by_their_network() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!((network("192.0.2.7"), network("::ffff:192.0.2.7")), ("192.0.2.7".into(), "192.0.2.7".into()));
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_ne!(network("2001:db8:1:3::1"), network("2001:db8:1:2::1"));
    }

    #[test]
    fn one_address_gets_half_unless_another_number_is_set() {
        assert_eq!([address_limit(None, 1), address_limit(None, 5), address_limit(Some(9), 5)], [1, 3, 9]);
    }
}
