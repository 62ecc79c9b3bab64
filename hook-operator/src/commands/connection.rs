//! WebSocket to a container, through the API server and the kubelet.
//!
//! It offers the subprotocol `v4.channel.k8s.io` alone. API servers translate its successor to SPDY, where a connection
//! that is cut reads as exit code 0.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use hook_core::answer::{MeasurementFailure, MeasurementReason, Transcript};
use hook_core::request::ExecRequest;
use hook_core::value::cut;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use operator_runtime::calls::{CallError, CallLimiter};
use operator_runtime::error::root_cause;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::SystemRandom;
use shared_api::names::HOOKS_ACCOUNT;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::objects::unreachable;

/// Subprotocol, in which the exit status follows the output on one stream.
const V4: &str = "v4.channel.k8s.io";
/// Text that a server adds to the key to prove that it speaks WebSocket (RFC 6455).
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest path with its query, in bytes: other signs than ASCII letters and digits take three bytes there.
const MAX_PATH: usize = 60_000;
/// Longest message of a server. Kubelets send at most 32 KiB at a time.
const MAX_MESSAGE: usize = 256 * 1024;
/// Longest body of a refusal that is read, and bytes of it that are quoted.
const MAX_REFUSAL: usize = 4 * 1024;
const QUOTED_BYTES: usize = 300;
/// Pause between pings, which keep proxies from closing the connection, and time without any frame after which it is
/// lost.
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENT_FOR: Duration = Duration::from_mins(1);

/// Connection to a command.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Starts a command.
///
/// # Errors
/// By the answer: `ApiRefused`, `CommandNotRun`, `ObjectGone`, `Unreachable`, or `MalformedAnswer` if it is no handshake.
pub(super) async fn open(
    client: &Client,
    limiter: &CallLimiter,
    namespace: &str,
    request: &ExecRequest,
) -> Result<Socket, MeasurementFailure> {
    let key = ring::rand::generate::<[u8; 16]>(&SystemRandom::new()).map_err(|_| {
        let message = "failed to generate random bytes for the connection";
        MeasurementFailure::new(MeasurementReason::Unreachable, message)
    })?;
    let key = STANDARD.encode(key.expose());
    let path = path(namespace, request);
    if path.len() > MAX_PATH {
        let message = format!(
            "the command is {} bytes long when URL-encoded; the limit is {MAX_PATH}",
            path.len()
        );
        return Err(MeasurementFailure::new(
            MeasurementReason::InvalidRequest,
            message,
        ));
    }
    let upgrade = Request::get(path)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key)
        .header(SEC_WEBSOCKET_PROTOCOL, V4)
        .body(Body::empty());
    let upgrade = upgrade.map_err(|error| {
        let message = format!("the request for the command is invalid: {error}");
        MeasurementFailure::new(MeasurementReason::InvalidRequest, message)
    })?;
    // The turn ends with the head of the answer: a command may take an hour.
    let answer = limiter
        .call(namespace, "run a command in a container", client.send(upgrade))
        .await
        .map_err(|error| match error {
            CallError::Refused { message, .. } | CallError::Unknown { message, .. } => {
                unreachable(&format!("failed to run the {request}"), &message)
            }
            CallError::Gone | CallError::Conflict | CallError::Lapsed => {
                unreachable(&request.to_string(), &error.to_string())
            }
        })?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(request, answer).await);
    }
    check_handshake(answer.headers(), &key)?;
    let upgraded = hyper::upgrade::on(answer).await.map_err(|error| {
        let message = format!("the connection was not upgraded: {}", root_cause(&error));
        MeasurementFailure::new(MeasurementReason::Unreachable, message)
    })?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .read_buffer_size(16 * 1024)
        .write_buffer_size(0);
    Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await)
}

fn path(namespace: &str, request: &ExecRequest) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("container", &request.container);
    query.append_pair("stdout", "true").append_pair("stderr", "true");
    query.extend_pairs(request.command.iter().map(|item| ("command", item)));
    let (pod, query) = (&request.pod.name, query.finish());
    format!("/api/v1/namespaces/{namespace}/pods/{pod}/exec?{query}")
}

/// Reads frames up to the exit status.
///
/// # Errors
/// `CommandLost` if the connection ends before, `MalformedAnswer` if it has other frames.
pub(super) async fn transcript(
    socket: &mut Socket,
    request: &ExecRequest,
) -> Result<Transcript, MeasurementFailure> {
    let lost = |why: &str| {
        let message = format!("the connection to the {request} ended before the exit status arrived: {why}");
        MeasurementFailure::new(MeasurementReason::CommandLost, message)
    };
    let mut transcript = Transcript::default();
    let mut silent = Duration::ZERO;
    loop {
        let Ok(next) = tokio::time::timeout(PING_EVERY, socket.next()).await else {
            silent += PING_EVERY;
            if silent >= SILENT_FOR {
                return Err(lost("no data was received for a minute"));
            }
            let ping = socket.send(Message::Ping(Bytes::new())).await;
            ping.map_err(|error| lost(&root_cause(&error)))?;
            continue;
        };
        silent = Duration::ZERO;
        let message = match next {
            None => return Err(lost("the API server closed the connection")),
            Some(Err(error)) => return Err(lost(&root_cause(&error))),
            Some(Ok(message)) => message,
        };
        match message {
            Message::Binary(frame) => {
                if transcript.add(&frame)? {
                    return Ok(transcript);
                }
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(_) => return Err(lost("the kubelet closed the connection")),
            Message::Text(_) | Message::Frame(_) => {
                let message = "the kubelet sent an unexpected frame";
                return Err(MeasurementFailure::new(
                    MeasurementReason::MalformedAnswer,
                    message,
                ));
            }
        }
    }
}

/// Checks that the server speaks WebSocket and this subprotocol.
fn check_handshake(headers: &HeaderMap, key: &str) -> Result<(), MeasurementFailure> {
    let accept = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{ACCEPT_SUFFIX}").as_bytes(),
    );
    let accept = STANDARD.encode(accept);
    let is = |name, wanted: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.eq_ignore_ascii_case(wanted))
    };
    let is_accepted = headers
        .get(SEC_WEBSOCKET_ACCEPT)
        .is_some_and(|value| value == accept.as_str());
    if is(UPGRADE, "websocket") && is_accepted && is(SEC_WEBSOCKET_PROTOCOL, V4) {
        return Ok(());
    }
    let message = format!("the response is not a WebSocket handshake with subprotocol {V4}");
    Err(MeasurementFailure::new(
        MeasurementReason::MalformedAnswer,
        message,
    ))
}

/// Returns the failure of an answer without a connection, which may come from the API server or, as plain text, from the
/// kubelet.
async fn refused(request: &ExecRequest, answer: Response<Body>) -> MeasurementFailure {
    let code = answer.status().as_u16();
    let body = beginning(answer.into_body()).await;
    let message = match serde_json::from_slice::<Status>(&body) {
        Ok(status) => status.message,
        Err(_) => String::from_utf8_lossy(&body).into_owned(),
    };
    let why = format!("{} ({code})", cut(message.trim(), QUOTED_BYTES));
    let about = request.to_string();
    let (kind, message) = match code {
        400 => (
            MeasurementReason::CommandNotRun,
            format!("{about} could not be run: {why}"),
        ),
        404 => (MeasurementReason::ObjectGone, format!("{about}: {why}")),
        429 => (MeasurementReason::Unreachable, format!("{about}: {why}")),
        401..500 => (
            MeasurementReason::ApiRefused,
            format!("failed to run the {about} as ServiceAccount {HOOKS_ACCOUNT}: {why}"),
        ),
        _ => (MeasurementReason::Unreachable, format!("{about}: {why}")),
    };
    MeasurementFailure::new(kind, message)
}

/// Reads the beginning of a body.
async fn beginning(mut body: Body) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < MAX_REFUSAL
        && let Some(Ok(frame)) = body.frame().await
    {
        let data = frame.data_ref().map(AsRef::as_ref).unwrap_or_default();
        read.extend_from_slice(data.get(..MAX_REFUSAL - read.len()).unwrap_or(data));
    }
    read
}
