//! TLS in front of an HTTP server, with one request a connection, whose handshakes a test may hold back.
//!
//! While they are held, each request waits for its connection inside the program under test, which has sent nothing of
//! it. Open connections stay, so watches go on. In front of an [`ApiProxy`](crate::ApiProxy), it delays a write at the
//! last point where its sender can still give it up.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, Request, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::control_plane::kubeconfig;
use crate::http_client::http_client;
use crate::keeper::KeptDirectory;
use crate::loopback::{Answered, HangUp, accept_streams, run};
use crate::wait::{TimedOut, changed_until};

/// Running gate. Dropping it closes all connections.
#[derive(Debug)]
pub struct TlsGate {
    address: SocketAddr,
    /// Certificate of the gate, as PEM.
    certificate: String,
    state: Arc<State>,
    directory: KeptDirectory,
    derived: AtomicU32,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all connections.
#[derive(Debug)]
struct State {
    /// URL of the server behind the gate.
    upstream: String,
    client: reqwest::Client,
    held: watch::Sender<bool>,
    counts: watch::Sender<Counts>,
}

/// Counts of the connections that were held back since the last [`TlsGate::hold`].
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Connections whose client has begun the handshake.
    waiting: usize,
    /// Of these, the ones that the gate has answered since.
    greeted: usize,
}

impl TlsGate {
    /// Starts a gate in front of a server, such as `http://127.0.0.1:PORT`.
    pub fn start(upstream: &str) -> io::Result<Self> {
        Self::start_with(upstream, |_| {})
    }

    /// Starts a gate with a certificate that has expired.
    pub fn start_expired(upstream: &str) -> io::Result<Self> {
        Self::start_with(upstream, |certificate| {
            certificate.not_before = rcgen::date_time_ymd(2020, 1, 1);
            certificate.not_after = rcgen::date_time_ymd(2020, 12, 31);
        })
    }

    fn start_with(upstream: &str, change: impl FnOnce(&mut CertificateParams)) -> io::Result<Self> {
        let certificate = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()]);
        let mut certificate = certificate.map_err(io::Error::other)?;
        change(&mut certificate);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = certificate.self_signed(&key).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(io::Error::other)?;
        let tls = TlsAcceptor::from(Arc::new(tls));
        let directory = KeptDirectory::new("tls-gate")?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            upstream: upstream.trim_end_matches('/').to_owned(),
            client: http_client().map_err(io::Error::other)?,
            held: watch::Sender::new(false),
            counts: watch::Sender::new(Counts::default()),
        });
        let shared = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let accept = async move {
                // Fails only without a free descriptor; then nobody is served, and the test says so.
                if let Ok(listener) = TcpListener::from_std(listener) {
                    let converse = move |stream| converse(Arc::clone(&shared), tls.clone(), stream);
                    accept_streams(listener, converse).await;
                }
            };
            run(&runtime, stopped, accept);
        };
        let thread = std::thread::Builder::new()
            .name(format!("tls gate {address}"))
            .spawn(serve)?;
        Ok(Self {
            address,
            certificate: certificate.pem(),
            state,
            directory,
            derived: AtomicU32::new(0),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Returns the gate's certificate as PEM, for clients that trust nothing else.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Writes a kubeconfig file that connects through the gate and impersonates a user.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> io::Result<PathBuf> {
        let number = self.derived.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(format!("kubeconfig-{number}"));
        let cluster = json!({
            "server": self.url(),
            "certificate-authority-data": BASE64_STANDARD.encode(&self.certificate),
        });
        let user = json!({ "as": user, "as-groups": groups });
        std::fs::write(&path, kubeconfig::text(&cluster, &user))?;
        Ok(path)
    }

    /// Holds back the handshakes of new connections until [`release`](Self::release).
    pub fn hold(&self) {
        self.state.counts.send_replace(Counts::default());
        self.state.held.send_replace(true);
    }

    /// Lets all handshakes go on.
    pub fn release(&self) {
        self.state.held.send_replace(false);
    }

    /// Waits until at least this many connections wait for their handshakes. A client that has given up counts, too.
    pub async fn await_waiting(&self, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        self.await_counts(deadline, |counts| counts.waiting >= count)
            .await
    }

    /// Waits until the gate has answered this many of the connections that it had held back: the rest of their
    /// handshakes, and their requests, are up to the client.
    pub async fn await_greeted(&self, count: usize, deadline: Duration) -> Result<(), TimedOut> {
        self.await_counts(deadline, |counts| counts.greeted >= count)
            .await
    }

    async fn await_counts(
        &self,
        deadline: Duration,
        holds: impl Fn(&Counts) -> bool,
    ) -> Result<(), TimedOut> {
        let counts = &self.state.counts;
        let seen = || format!("{:?}", *counts.borrow());
        changed_until(counts.subscribe(), deadline, || holds(&counts.borrow()), seen).await
    }
}

impl Drop for TlsGate {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic, and nobody is left to receive it.
            let _ = thread.join();
        }
    }
}

/// Serves the one request of a connection. Errors are broken connections, caused by the client.
async fn converse(state: Arc<State>, tls: TlsAcceptor, stream: TcpStream) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let was_held = *state.held.borrow();
    if was_held {
        if !matches!(stream.peek(&mut [0]).await, Ok(1)) {
            return;
        }
        state.counts.send_modify(|counts| counts.waiting += 1);
        // The sender lives in `state`, so the wait cannot end with an error.
        let _ = state.held.subscribe().wait_for(|held| !held).await;
    }
    let mut handshake = std::pin::pin!(tls.accept(stream));
    let begun = futures::poll!(handshake.as_mut());
    if was_held {
        state.counts.send_modify(|counts| counts.greeted += 1);
    }
    let stream = match begun {
        Poll::Ready(ended) => ended,
        Poll::Pending => handshake.await,
    };
    let Ok(stream) = stream else {
        return;
    };
    let service = service_fn(|request: Request<Incoming>| forward(Arc::clone(&state), request));
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Passes on a request that has arrived whole: the API server carries out no other either.
async fn forward(state: Arc<State>, request: Request<Incoming>) -> Answered {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| HangUp)?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let response = state
        .client
        .request(parts.method, format!("{}{path}", state.upstream))
        .headers(passed_on(parts.headers))
        .body(body)
        .send()
        .await
        .map_err(|_| HangUp)?;
    let (status, headers) = (response.status(), passed_on(response.headers().clone()));
    let mut answer = Response::new(Body::from_stream(response.bytes_stream()));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

/// Removes the headers that describe only this connection.
fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    for name in [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::webhook::{Answer, Webhook};

    const SOON: Duration = Duration::from_secs(20);

    fn start() -> (Webhook, TlsGate, reqwest::Client) {
        let server = Webhook::start().unwrap();
        server.on("/", Answer::text("well"));
        let gate = TlsGate::start(&server.url("")).unwrap();
        let certificate = reqwest::Certificate::from_pem(gate.certificate().as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([certificate]);
        (server, gate, client.build().unwrap())
    }

    #[tokio::test]
    async fn a_request_waits_for_its_connection() {
        let (server, gate, client) = start();
        let get = || async { client.get(gate.url()).send().await?.text().await };
        assert_eq!(get().await.unwrap(), "well");
        gate.hold();
        let held = async {
            gate.await_waiting(1, SOON).await.unwrap();
            assert_eq!(server.counts("/").received, 1, "it was sent all the same");
            gate.release();
            gate.await_greeted(1, SOON).await.unwrap();
        };
        let ((), answer) = tokio::join!(held, get());
        assert_eq!(answer.unwrap(), "well");
        assert_eq!(server.counts("/").received, 2);
    }

    #[tokio::test]
    async fn a_request_whose_body_breaks_off_is_not_passed_on() {
        let (server, gate, client) = start();
        let pieces = [Ok("begun"), Err(io::Error::other("given up"))];
        let body = reqwest::Body::wrap_stream(stream::iter(pieces));
        let sent = client.post(gate.url()).body(body).send().await;
        assert!(sent.is_err(), "{sent:?}");
        assert_eq!(client.get(gate.url()).send().await.unwrap().status(), 200);
        let methods: Vec<String> = (server.all_requests().into_iter())
            .map(|request| request.method)
            .collect();
        assert_eq!(methods, ["GET"]);
    }
}
