//! HTTP endpoints for the API server: `/validate`, `/authorize` and `/guard`.
//!
//! A body has a size limit and a timeout. All bodies of one path share a limit of bytes, so requests to
//! `/validate` cannot starve the guard. No part of an object is logged: its environment may contain secrets,
//! and a message may repeat a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use fair_share::compute::Compute;
use tokio::sync::Semaphore;

use crate::cluster::ClusterReader;
use crate::metrics::Metrics;
use crate::review::{self, AdmissionDecision, AdmissionRequest};
use crate::validate;
use crate::{authors, guard, hooks};

/// Maximum length of a body in bytes: the new and the old object, 3 MiB each (the limit of API servers), and
/// the rest.
const MAX_BODY_BYTES: usize = 7 * 1024 * 1024;
/// Maximum bytes of all concurrent bodies per path. Parsing may take sixteen times as much memory.
const BODIES: u32 = 8 * 1024 * 1024;
/// Timeout for a reservation of memory for a body.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// State of the request handlers.
#[derive(Debug)]
pub struct Handler {
    /// Cluster access.
    pub cluster: ClusterReader,
    /// Users whose deletions need no label.
    pub exempt: Vec<String>,
    /// Users who may create HookRuns that a GameDeployment controls; empty for all users.
    pub workload_operators: Vec<String>,
    /// Prometheus metrics.
    pub metrics: Metrics,
    /// Set once the process is shutting down: each response then closes its connection.
    pub ending: Arc<AtomicBool>,
    /// Compute pool that validates objects.
    pub compute: Compute,
}

/// State of one endpoint.
#[derive(Debug)]
struct Path {
    handler: Arc<Handler>,
    name: &'static str,
    /// Available bytes for bodies.
    room: Semaphore,
}

/// Builds the router for all paths.
pub fn router(handler: Handler) -> Router {
    let handler = Arc::new(handler);
    let path = |name| {
        Arc::new(Path {
            handler: handler.clone(),
            name,
            room: Semaphore::new(BODIES as usize),
        })
    };
    Router::new()
        .route("/validate", post(validate).with_state(path("validate")))
        .route("/authorize", post(authorize).with_state(path("authorize")))
        .route("/guard", post(guard).with_state(path("guard")))
}

async fn validate(State(path): State<Arc<Path>>, headers: HeaderMap, body: Body) -> Response {
    answer(&path, &headers, body, async |request| {
        if let Some(verdict) = validate::forged(&request, &path.handler.workload_operators) {
            return Ok(verdict);
        }
        let namespace = request.namespace().to_owned();
        let workload = hooks::to_look_up(&request);
        // On the compute pool, because compiling a hook with 100 conditions takes time.
        let judge = move || validate::judge(&request);
        let judged = path.handler.compute.attempt(&namespace, judge).await;
        let mut verdict = judged.map_err(|error| error.to_string())?;
        if let (AdmissionDecision::Allowed(warnings), Some(workload)) = (&mut verdict, workload) {
            let templates = path.handler.cluster.templates(&namespace).await;
            warnings
                .extend(templates.map_or_else(Vec::new, |templates| hooks::warnings(&workload, templates)));
        }
        Ok(verdict)
    })
    .await
}

async fn authorize(State(path): State<Arc<Path>>, headers: HeaderMap, body: Body) -> Response {
    let handler = &path.handler;
    answer(&path, &headers, body, async |request| {
        let rights = authors::needed(&request, &handler.workload_operators);
        Ok(handler.cluster.authorize(&rights).await)
    })
    .await
}

async fn guard(State(path): State<Arc<Path>>, headers: HeaderMap, body: Body) -> Response {
    let handler = &path.handler;
    answer(&path, &headers, body, async |request| {
        let pending = guard::judge(&request, &handler.exempt);
        Ok(handler.cluster.settle(pending).await)
    })
    .await
}

/// Returns the bytes to reserve for a body: its `Content-Length`, or else the maximum.
fn announced(headers: &HeaderMap) -> u32 {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length.unwrap_or(BODIES).min(BODIES)
}

/// Reads a review, has it judged, records the outcome and builds the response.
async fn answer(
    path: &Path,
    headers: &HeaderMap,
    body: Body,
    judge: impl AsyncFnOnce(AdmissionRequest) -> Result<AdmissionDecision, String>,
) -> Response {
    let since = Instant::now();
    let Path { handler, name, room } = path;
    let path = *name;
    let refuse = |code: StatusCode, words: String| {
        handler.metrics.malformed();
        tracing::warn!(path, code = code.as_u16(), words, "a request cannot be read");
        (code, words).into_response()
    };
    let room = tokio::time::timeout(ROOM_TIMEOUT, room.acquire_many(announced(headers))).await;
    let Ok(Ok(_room)) = room else {
        let words = "too many bodies at a time; try again".to_owned();
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    };
    let body = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let words = format!("the body cannot be read: {error}; at most {MAX_BODY_BYTES} bytes are");
            return refuse(StatusCode::BAD_REQUEST, words);
        }
        Err(_) => {
            return refuse(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time".to_owned(),
            );
        }
    };
    let request = match review::read(&body) {
        Ok(request) => request,
        // The parser's message may quote a value. The caller already knows it, but the log must not contain
        // it.
        Err(error) => {
            handler.metrics.malformed();
            tracing::warn!(path, bytes = body.len(), "a request is not an AdmissionReview");
            return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
        }
    };
    drop(body);
    let asked = request.clone_head();
    let verdict = match judge(request).await {
        Ok(verdict) => verdict,
        Err(error) => {
            handler.metrics.answered(path, &asked, "failed", since.elapsed());
            tracing::error!(path, error, "a question ended in a defect");
            return (StatusCode::INTERNAL_SERVER_ERROR, "a defect; the log says more").into_response();
        }
    };
    handler
        .metrics
        .answered(path, &asked, verdict.as_str(), since.elapsed());
    log_decision(path, &asked, &verdict);
    let text = review::answer(&asked.uid, &verdict).to_string();
    let mut answer = ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    if handler.ending.load(Ordering::Relaxed) {
        // API servers keep connections open and would send more requests until this one is cut.
        let headers = answer.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

fn log_decision(path: &str, asked: &AdmissionRequest, verdict: &AdmissionDecision) {
    let (kind, name, namespace) = (&asked.kind.kind, asked.name(), asked.namespace());
    let (operation, user) = (&asked.operation, asked.user_info.username.as_deref());
    match verdict {
        AdmissionDecision::Allowed(_) => {
            tracing::debug!(path, kind, namespace, name, operation, user, "allowed");
        }
        AdmissionDecision::Invalid(_) | AdmissionDecision::Forbidden(_) => {
            tracing::info!(path, kind, namespace, name, operation, user, "refused");
        }
    }
}
