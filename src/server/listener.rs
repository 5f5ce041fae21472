//! Accepts connections and serves them.

use super::timed_stream::TimedStream;
use super::tls::Tls;
use crate::telemetry::names;
use axum::Router;
use axum::http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    connections: Arc<Semaphore>,
}

impl Listener {
    /// Listens on an address: a name or a number, and a port.
    pub async fn bind(address: (&str, u16), limits: ConnectionLimits, tls: Option<Tls>) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let connections = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
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
        let (graceful, mut closing) = (GracefulShutdown::new(), std::pin::pin!(closing));
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
            let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
                metrics::counter!(names::HTTP_CONNECTIONS_REFUSED).increment(1);
                self.refuse(stream);
                continue;
            };
            let connection = Connection {
                limits: self.limits,
                router: router.clone(),
                peer: PeerAddress(peer.ip()),
                _open: OpenConnection::new(permit),
            };
            let (watcher, tls) = (graceful.watcher(), self.tls.clone());
            tokio::spawn(async move {
                // A failure on a connection concerns its client alone.
                if let Err(error) = connection.serve(stream, tls, watcher).await {
                    tracing::debug!(%error, %peer, "connection ended");
                }
            });
        }
        drop(self.socket);
        graceful.shutdown().await;
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
struct OpenConnection(
    #[expect(dead_code, reason = "it is given back when the connection is closed")] OwnedSemaphorePermit,
);

impl OpenConnection {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        metrics::gauge!(names::HTTP_CONNECTIONS).increment(1.0);
        Self(permit)
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
    async fn serve(self, stream: TcpStream, tls: Option<Tls>, watcher: Watcher) -> Result<(), ConnectionError> {
        // Answers are written at once, so that nothing is gained by waiting for more.
        stream.set_nodelay(true)?;
        let Some(tls) = tls else { return self.serve_http(stream, watcher).await };
        let handshake = tls.acceptor().accept(stream);
        let stream = tokio::time::timeout(self.limits.header_timeout, handshake).await??;
        self.serve_http(stream, watcher).await
    }

    async fn serve_http<S>(self, stream: S, watcher: Watcher) -> Result<(), ConnectionError>
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
        let router = self.router.map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(self.peer);
            request
        });
        let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
        watcher.watch(connection.into_owned()).await
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
    pub connections: usize,
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
