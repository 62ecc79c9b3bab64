//! Serves TLS and HTTP/1.1 until a termination signal.
//!
//! Every handshake looks up the certificate, so a new certificate applies to new connections and interrupts
//! no existing one. Connections, heads, handshakes and idle times are bounded; if there are too many connections, the
//! address with the most loses the one that has waited longest. After a signal, requests are still
//! answered for a while, because callers learn of the shutdown a moment later. Then each connection closes
//! after its current response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use connection_limit::socket::Socket;
use connection_limit::tracked::Tracked;
use connection_limit::{Connections, Handle, Limits};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use operator_runtime::connections::DroppedConnections;
use operator_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Presented;
use crate::metrics::Metrics;

/// Limits of the connections. API servers open one for each concurrent request, keep them, and keep some that they have
/// not used yet.
const LIMITS: Limits = Limits {
    connections: 512,
    first_request: IDLE,
    lifetime: None,
};
/// Size of the buffers of a connection in the kernel, in bytes.
pub const SOCKET_BYTES: u32 = 32 * 1024;
/// Timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Timeout for the next request on a connection. It is longer than the 90 s for which API servers keep idle
/// connections, so that this side never closes a connection on which a request is in flight.
const IDLE: Duration = Duration::from_mins(2);
/// Timeout for the last responses after the drain.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Delay after a failed `accept`, for example if file descriptors are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The TLS server.
#[derive(Debug)]
pub struct Server {
    /// Listener for connections.
    pub listener: TcpListener,
    /// Certificate to present.
    pub presented: Arc<Presented>,
    /// Router for requests.
    pub router: Router,
    /// Prometheus metrics.
    pub metrics: Metrics,
    /// Count of dropped connections.
    pub dropped: DroppedConnections,
}

impl Server {
    /// Serves until a signal, and then for `drain` and the time of the last responses.
    pub async fn run(self, mut shutdown: Shutdown, drain: Duration) {
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(self.presented.clone());
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let graceful = GracefulShutdown::new();
        let connections = Connections::new(LIMITS, self.dropped.of("webhook"));
        let mut end = std::pin::pin!(async {
            shutdown.requested().await;
            tracing::info!("shutdown requested");
            tokio::time::sleep(drain).await;
        });
        loop {
            tokio::select! {
                () = &mut end => break,
                accepted = connections.accept(&self.listener) => match accepted {
                    Ok(None) => {}
                    Ok(Some((stream, connection))) => {
                        let served = Served {
                            acceptor: acceptor.clone(),
                            router: self.router.clone(),
                            metrics: self.metrics.clone(),
                            watcher: graceful.watcher(),
                            handle: connection.handle(),
                        };
                        tokio::spawn(connection.run(served.serve(stream)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to accept a connection");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
            }
        }
        drop(self.listener);
        if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("closed connections that did not finish in time");
        }
    }
}

/// Connection from its acceptance on.
struct Served {
    acceptor: TlsAcceptor,
    router: Router,
    metrics: Metrics,
    watcher: Watcher,
    handle: Handle,
}

impl Served {
    async fn serve(self, stream: TcpStream) {
        let handshake = tokio::time::timeout(HANDSHAKE, self.acceptor.accept(Socket::new(stream))).await;
        let stream = match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let reason = if is_refused(&error) { "refused" } else { "other" };
                self.metrics.handshake_failed(reason);
                tracing::debug!(reason, %error, "a TLS handshake failed");
                return;
            }
            Err(_) => return self.metrics.handshake_failed("timeout"),
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_HEAD_BYTES);
        self.handle.progress();
        let service = Tracked::new(TowerToHyperService::new(self.router), self.handle);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Returns whether the caller aborted the handshake, usually because it rejects the certificate.
fn is_refused(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(error, Some(rustls::Error::AlertReceived(_)))
}
