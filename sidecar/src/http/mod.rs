//! The two listeners. Each connection carries one request, and has five seconds for it.

pub(crate) mod answers;
pub(crate) mod reports;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::board::Unknown;

/// Maximum number of connections of a listener at once. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;
/// Maximum time of a connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Port for answers.
pub(crate) const PORT: u16 = 9357;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Binds an address, by default the port for answers on all addresses.
pub(crate) async fn listen(address: Option<SocketAddr>) -> io::Result<TcpListener> {
    let bind = async |address: SocketAddr| {
        let bound = TcpListener::bind(address).await;
        bound.map_err(crate::failed(format_args!("listen on {address}")))
    };
    if let Some(address) = address {
        return bind(address).await;
    }
    // The kernel may have no IPv6.
    match bind((Ipv6Addr::UNSPECIFIED, PORT).into()).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            bind((Ipv4Addr::UNSPECIFIED, PORT).into()).await
        }
        bound => bound,
    }
}

/// Connections of one listener.
struct Server {
    turns: Arc<Semaphore>,
}

impl Server {
    fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Serves a connection, or closes it if there are too many.
    fn serve<F>(&self, stream: TcpStream, handler: impl Fn(Request<Incoming>) -> F + Send + 'static)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
            return;
        };
        let service = service_fn(move |request| {
            let answer = handler(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MAX_HEAD_BYTES)
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // Broken and slow clients are no event of the sidecar.
            let _ = tokio::time::timeout(TIMEOUT, connection).await;
            drop(turn);
        });
    }
}

/// Waits after a connection could not be accepted, such as for lack of file descriptors.
async fn not_accepted(error: &io::Error) {
    tracing::warn!(%error, "a connection was not accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Body of a refusal.
#[derive(Serialize)]
struct Refusal<'a> {
    error: String,
    reason: &'a str,
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => answer(status, "application/json", body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", body)
}

/// Answers that no number of players is known.
fn unknown(status: StatusCode, unknown: &Unknown) -> Answer {
    let error = unknown.to_string();
    let reason = unknown.reason();
    json(status, &Refusal { error, reason })
}

fn method_not_allowed(allowed: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed}\n"));
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}
