//! Forwards one request to the API server and its response back.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE};
use axum::http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use serde_json::json;

use super::ProxyState;
use super::call::ApiCall;
use super::handling::{Decision, Failure, Handling, Moment, WatchFault};
use super::watches;
use crate::loopback::{Answered, HangUp};

/// Handles one request from arrival to response.
pub(super) async fn handle(office: Arc<ProxyState>, request: Request<Incoming>) -> Answered {
    let call = ApiCall::new(
        request.method(),
        request.uri().path(),
        request.uri().query().unwrap_or_default(),
    );
    let number = office.journal.arrived(&call);
    let answered = judge_and_carry(&office, &call, request).await;
    office.journal.answered(
        number,
        answered.as_ref().ok().map(|response| response.status().as_u16()),
    );
    answered
}

async fn judge_and_carry(office: &Arc<ProxyState>, call: &ApiCall, request: Request<Incoming>) -> Answered {
    match office.judge.judge(call) {
        // A stall arrives as its own `Decision` variant.
        Decision::Handling(Handling::Forward | Handling::Stall(_)) => {
            carry(office, call, request, None).await
        }
        Decision::Handling(Handling::Disturb(trouble)) => carry(office, call, request, Some(trouble)).await,
        Decision::Handling(Handling::Delay(before, after)) => {
            tokio::time::sleep(before).await;
            let answer = carry(office, call, request, None).await;
            tokio::time::sleep(after).await;
            answer
        }
        Decision::Handling(Handling::Fail(failure)) => {
            if failure.moment == Moment::AfterForwarding {
                let answer = carry(office, call, request, None).await?;
                take_effect(call, answer).await;
            }
            fail(failure, call)
        }
        Decision::Stall(Moment::BeforeForwarding, fault) => {
            fault.until_released().await;
            carry(office, call, request, None).await
        }
        Decision::Stall(Moment::AfterForwarding, fault) => {
            let claim = fault.claim();
            let answer = carry(office, call, request, None).await;
            claim.strike();
            fault.until_released().await;
            answer
        }
    }
}

async fn carry(
    office: &Arc<ProxyState>,
    call: &ApiCall,
    request: Request<Incoming>,
    trouble: Option<WatchFault>,
) -> Answered {
    let (parts, body) = request.into_parts();
    if parts.headers.contains_key(UPGRADE) {
        return status_answer(
            501,
            "upgraded connections (exec, attach, port-forward) are not carried",
        );
    }
    // Request bodies are small. An error here means that the client has disconnected.
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| HangUp)?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = office.beginnings.of(call, path, trouble);
    let mut outgoing = Request::builder().method(parts.method).uri(path);
    if let Some(headers) = outgoing.headers_mut() {
        *headers = passed_on(parts.headers);
    }
    let outgoing = outgoing
        .body(kube::client::Body::from(body))
        .map_err(|_| HangUp)?;
    // An unreachable API server looks the same to the client with or without the proxy: no response.
    let (parts, body) = office
        .client
        .send(outgoing)
        .await
        .map_err(|_| HangUp)?
        .into_parts();
    let body = Body::new(body);
    let streams = call.is_watch() && parts.status.is_success();
    let mut response = Response::new(if streams {
        let trouble = trouble.map(|trouble| (trouble, office.judge.active_faults()));
        watches::through(&office.valves, body, trouble)
    } else {
        body
    });
    *response.status_mut() = parts.status;
    *response.headers_mut() = passed_on(parts.headers);
    Ok(response)
}

/// Reads the response to its end, because the first bytes may arrive before the write takes effect. Returns
/// at once for a watch, which has neither an effect nor an end.
async fn take_effect(call: &ApiCall, answer: Response<Body>) {
    if !call.is_watch() {
        let _ = to_bytes(answer.into_body(), usize::MAX).await;
    }
}

/// Removes the headers that describe only this connection.
fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    for name in [CONNECTION, HOST, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn fail(failure: Failure, call: &ApiCall) -> Answered {
    let status = failure.status.ok_or(HangUp)?;
    status_answer(
        status,
        &format!("failed on purpose: {} {}", call.method, call.path),
    )
}

/// Builds an error response in the API server's format.
fn status_answer(status: u16, message: &str) -> Answered {
    let reason = match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "Unknown",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "message": message, "reason": reason, "code": status,
    });
    let mut response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json");
    if status == 429 {
        response = response.header(RETRY_AFTER, 1);
    }
    response.body(Body::from(body.to_string())).map_err(|_| HangUp)
}
