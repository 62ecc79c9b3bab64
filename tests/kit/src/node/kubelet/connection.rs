//! One connection to a kubelet: TLS, the call, the upgrade and the frames of the command.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use axum::http::{Method, Request, Response, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use k8s_openapi::jiff::Timestamp;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};

use super::Desk;
use super::record::{ExecCall, RunningCall};
use super::script::{CHUNK, Exec, ExecEnd, ExecFrame, STDOUT, exit_status};
use crate::keeper::lock;
use crate::loopback::{Answered, HangUp};
use crate::node::fleet::Fleet;

/// The only protocol that the kubelet speaks.
const PROTOCOL: &str = "v4.channel.k8s.io";
/// Suffix of every key in the `WebSocket` handshake, from RFC 6455.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Exit code of a command whose container ended: the kernel kills it.
const KILLED: i32 = 137;
/// Time limit for the client to end the connection after the kubelet's Close.
const FAREWELL: Duration = Duration::from_secs(2);
/// Buffer for frames from the client, in bytes. They are pings and a Close.
const READ_BUFFER: usize = 4096;

type Socket = WebSocketStream<TokioIo<Upgraded>>;
type ToClient = SplitSink<Socket, Message>;
type FromClient = SplitStream<Socket>;

/// Serves a connection until it ends.
pub(super) async fn converse(desk: &Desk, stream: TcpStream) {
    // An error here or below is a broken connection: caused by the client, or by a script.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = desk.tls.accept(stream).await else {
        return;
    };
    let certificate = stream.get_ref().1.peer_certificates().is_some();
    let accepted = Mutex::new(None);
    let slot = &accepted;
    let service = service_fn(move |request: Request<Incoming>| answer(desk, request, certificate, slot));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let session = lock(&accepted).take();
    if let Some(session) = session {
        session.run(&desk.fleet).await;
    }
}

/// Answers a request. Fills the slot if a command begins.
async fn answer(
    desk: &Desk,
    request: Request<Incoming>,
    certificate: bool,
    slot: &Mutex<Option<Session>>,
) -> Answered {
    let Some(call) = read(&request, certificate) else {
        return refuse(404, "404 page not found");
    };
    let running = RunningCall::record(&desk.fleet, call.clone());
    let container = match ContainerRun::find(desk, &call) {
        Ok(container) => container,
        Err((code, text)) => return refuse(code, &text),
    };
    let exec = desk.fleet.commands.choose(&call);
    if let Some((code, text)) = &exec.refusal {
        tokio::time::sleep(exec.delay).await;
        return refuse(*code, text);
    }
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY) else {
        return refuse(400, "Upgrade request required");
    };
    if !call.protocols.iter().any(|offered| offered == PROTOCOL) {
        return refuse(403, "the stand-in kubelet speaks v4.channel.k8s.io alone");
    }
    let accept = accept(key.as_bytes(), exec.wrong_accept);
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .header(
            SEC_WEBSOCKET_PROTOCOL,
            exec.protocol.as_deref().unwrap_or(PROTOCOL),
        )
        .body(Body::empty())
        .map_err(|_| HangUp)?;
    *lock(slot) = Some(Session {
        upgrade: hyper::upgrade::on(request),
        exec,
        container,
        _running: running,
    });
    Ok(response)
}

/// Reads the call from the request; `None` if it is no exec.
fn read(request: &Request<Incoming>, certificate: bool) -> Option<ExecCall> {
    let parts: Vec<_> = request.uri().path().split('/').collect();
    let ["", "exec", namespace, pod, container] = parts[..] else {
        return None;
    };
    // Clients that speak SPDY send POST: they are recorded and refused.
    if !matches!(*request.method(), Method::GET | Method::POST) {
        return None;
    }
    let query = request.uri().query().unwrap_or_default();
    let argv = url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| name == "command")
        .map(|(_, value)| value.into_owned());
    Some(ExecCall {
        at: Instant::now(),
        time: Timestamp::now(),
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        container: container.to_owned(),
        argv: argv.collect(),
        query: query.to_owned(),
        protocols: protocols(request.headers()),
        certificate,
        running: true,
    })
}

fn protocols(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Answers without an upgrade, in plain text as a kubelet does.
fn refuse(code: u16, text: &str) -> Answered {
    Response::builder()
        .status(code)
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .body(Body::from(text.to_owned()))
        .map_err(|_| HangUp)
}

/// Returns the proof that the kubelet read this key, or the proof of another key.
fn accept(key: &[u8], wrong: bool) -> String {
    let key: &[u8] = if wrong { b"another key" } else { key };
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID.as_bytes()].concat());
    BASE64_STANDARD.encode(hash)
}

/// Run of a container, from its start to its end.
struct ContainerRun {
    /// UID of the pod and name of the container.
    key: (String, String),
    number: usize,
}

impl ContainerRun {
    /// Returns the current run of the called container, or the status code and text of a refusal.
    fn find(desk: &Desk, call: &ExecCall) -> Result<Self, (u16, String)> {
        let fleet = &desk.fleet;
        let ours = call.namespace == fleet.namespace;
        let pod = ours.then(|| fleet.pod_on(&desk.node, &call.pod)).flatten();
        let pod = pod.ok_or_else(|| (404, "pod does not exist".to_owned()))?;
        let key = (pod.uid.clone(), call.container.clone());
        match fleet.history.run_of(&key) {
            Some(number) => Ok(Self { key, number }),
            None => Err((500, format!("container not found (\"{}\")", call.container))),
        }
    }

    /// Waits for the end of this run.
    async fn over(&self, fleet: &Fleet) {
        let mut changes = fleet.changed.subscribe();
        while fleet.history.run_of(&self.key) == Some(self.number) {
            if changes.changed().await.is_err() {
                // No further change can come.
                return;
            }
        }
    }
}

/// Command that the kubelet accepted.
struct Session {
    upgrade: OnUpgrade,
    exec: Exec,
    container: ContainerRun,
    _running: RunningCall,
}

impl Session {
    /// Runs the command until it ends, its container ends, or the client leaves.
    async fn run(self, fleet: &Fleet) {
        let Ok(upgraded) = self.upgrade.await else {
            return;
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0);
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config));
        let (mut to_client, mut from_client) = socket.await.split();
        let farewell = tokio::select! {
            () = self.container.over(fleet) => status_and_close(&exit_status(KILLED)),
            played = play(&self.exec, &mut to_client) => match played {
                Ok(farewell) => farewell,
                // The client is gone.
                Err(_) => return,
            },
            () = hear_out(&mut from_client) => return,
        };
        let parted = send(&mut to_client, &farewell).await.is_ok();
        if parted && farewell.last() == Some(&ExecFrame::Close) {
            let _ = tokio::time::timeout(FAREWELL, hear_out(&mut from_client)).await;
        }
    }
}

/// Plays a script up to its end. Returns the frames that remain to send.
async fn play(exec: &Exec, to_client: &mut ToClient) -> Result<Vec<ExecFrame>, tungstenite::Error> {
    send(to_client, &exec.frames).await?;
    flood(to_client, exec.flood).await?;
    tokio::time::sleep(exec.delay).await;
    match &exec.end {
        ExecEnd::Status(status) => Ok(status_and_close(status)),
        ExecEnd::Close => Ok(vec![ExecFrame::Close]),
        ExecEnd::Cut => Ok(Vec::new()),
        ExecEnd::Never => std::future::pending().await,
    }
}

fn status_and_close(status: &Value) -> Vec<ExecFrame> {
    vec![ExecFrame::status(status), ExecFrame::Close]
}

async fn send(to_client: &mut ToClient, frames: &[ExecFrame]) -> Result<(), tungstenite::Error> {
    for frame in frames {
        let message = match frame {
            ExecFrame::Binary(data) => Message::binary(data.clone()),
            ExecFrame::Text(text) => Message::text(text.clone()),
            ExecFrame::Close => Message::Close(None),
        };
        to_client.send(message).await?;
    }
    Ok(())
}

/// Sends this many bytes of standard output.
async fn flood(to_client: &mut ToClient, bytes: u64) -> Result<(), tungstenite::Error> {
    let mut frame = vec![b'x'; 1 + CHUNK];
    frame[0] = STDOUT;
    let frame = Bytes::from(frame);
    let mut left = bytes;
    while left > 0 {
        let size = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        to_client.send(Message::Binary(frame.slice(..=size))).await?;
        left -= size as u64;
    }
    Ok(())
}

/// Reads until the client ends the connection. Reading also answers pings.
async fn hear_out(from_client: &mut FromClient) {
    while let Some(Ok(_)) = from_client.next().await {}
}
