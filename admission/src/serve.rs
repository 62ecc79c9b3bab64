//! Serves TLS and HTTP/1.1 until a termination signal.
//!
//! Every handshake looks up the certificate, so a new certificate applies to new connections and interrupts
//! no existing one. Connections, handshakes and idle times are bounded. After a signal, requests are still
//! answered for a while, because callers learn of the shutdown a moment later. Then each connection closes
//! after its current response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use operator_runtime::shutdown::Shutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Presented;
use crate::metrics::Metrics;

/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 512;
/// Timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
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
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let mut end = std::pin::pin!(async {
            shutdown.requested().await;
            tracing::info!("asked to end");
            tokio::time::sleep(drain).await;
        });
        loop {
            let accepted = async {
                let slot = slots.clone().acquire_owned().await;
                (slot, self.listener.accept().await)
            };
            tokio::select! {
                () = &mut end => break,
                (slot, accepted) = accepted => match (slot, accepted) {
                    (Ok(slot), Ok((stream, _))) => {
                        let connection = Connection {
                            acceptor: acceptor.clone(),
                            router: self.router.clone(),
                            metrics: self.metrics.clone(),
                            watcher: graceful.watcher(),
                            slot,
                        };
                        tokio::spawn(connection.serve(stream));
                    }
                    (_, accepted) => {
                        let error = accepted.err();
                        tracing::warn!(?error, "failed to accept a connection");
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
            tracing::warn!("connections were cut that did not end in time");
        }
    }
}

struct Connection {
    acceptor: TlsAcceptor,
    router: Router,
    metrics: Metrics,
    watcher: Watcher,
    slot: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let handshake = tokio::time::timeout(HANDSHAKE, self.acceptor.accept(stream)).await;
        let stream = match handshake {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                let reason = if is_refused(&error) { "refused" } else { "other" };
                self.metrics.handshake_failed(reason);
                tracing::debug!(reason, %error, "a TLS connection did not come about");
                return;
            }
            Err(_) => return self.metrics.handshake_failed("timeout"),
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(IDLE);
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router));
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(self.slot);
    }
}

/// Returns whether the caller aborted the handshake, usually because it rejects the certificate.
fn is_refused(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(error, Some(rustls::Error::AlertReceived(_)))
}
