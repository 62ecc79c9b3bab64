//! The two listeners. Each connection carries one request, and has five seconds for it.

pub(crate) mod answers;
pub(crate) mod reports;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use connection_limit::socket;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::board::Unknown;

/// Maximum number of connections of a listener at once.
const MAX_CONNECTIONS: usize = 32;
/// Maximum time of a connection.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the buffers of a connection in the kernel, in bytes.
const SOCKET_BYTES: u32 = 8 * 1024;
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Port for answers.
pub(crate) const PORT: u16 = 9357;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Binds an address, by default the port for answers on all addresses.
pub(crate) fn listen(address: Option<SocketAddr>) -> io::Result<TcpListener> {
    let bind = |address: SocketAddr| {
        let bound = socket::listen(address, SOCKET_BYTES);
        bound.map_err(crate::failed(format_args!("listen on {address}")))
    };
    if let Some(address) = address {
        return bind(address);
    }
    // The kernel may have no IPv6.
    match bind((Ipv6Addr::UNSPECIFIED, PORT).into()) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => bind((Ipv4Addr::UNSPECIFIED, PORT).into()),
        bound => bound,
    }
}

/// Serves the one request of a connection.
async fn serve<I, S>(stream: I, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Answer, Error = Infallible>,
{
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    // Broken and slow clients are no event of the sidecar.
    let _ = tokio::time::timeout(TIMEOUT, connection).await;
}

/// Waits after a connection could not be accepted, such as for lack of file descriptors.
async fn not_accepted(error: &io::Error) {
    tracing::warn!(%error, "failed to accept a connection");
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
    let mut answer = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("method not allowed: use {allowed}\n"),
    );
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}
