//! HTTP endpoints for the API server: `/validate`, `/authorize`, `/guard` and, if enabled, `/removals`.
//!
//! Each path has limits of its own for bodies and requests, which client addresses share fairly: a flood of requests
//! delays the API server by its own share of turns. No part of an object is logged: its environment
//! may contain secrets, and a message may repeat a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use connection_limit::Handle;
use fair_share::compute::Compute;
use fair_share::semaphore::FairSemaphore;
use jiff::Timestamp;

use crate::body::{self, ReceivedBody, Room};
use crate::cluster::ClusterReader;
use crate::metrics::Metrics;
use crate::parse_room::ParseRoom;
use crate::removal::entries::KnownEntries;
use crate::removal::recent::RecentDenials;
use crate::removal::{self, RemovalDecision, namespace, record};
use crate::review::{self, AdmissionDecision, AdmissionRequest, Malformed, ReceivedRequest};
use crate::validate;
use crate::{authors, guard, hooks};

/// Maximum number of requests of a path that are judged at once. A single client gets half of them.
const MAX_JUDGED: usize = 64;
/// Maximum length of a body that is parsed where it is received, in bytes.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// State of the request handlers.
#[derive(Debug)]
pub struct Handler {
    /// Cluster access.
    pub cluster: ClusterReader,
    /// Users whose deletions need no label.
    pub exempt: Vec<String>,
    /// Users who may create HookRuns that a GameDeployment controls; empty for all users.
    pub workload_operators: Vec<String>,
    /// Users who may delete guarded pods.
    pub removal_operators: Vec<String>,
    /// Whether evictions and deletions of guarded pods, deletions of their namespaces, and removals of the finalizer of
    /// their GameDeployments are reviewed.
    pub removal_guard: bool,
    /// Entries of the removal guard in the configuration.
    pub entries: Arc<KnownEntries>,
    /// Prometheus metrics.
    pub metrics: Metrics,
    /// Set once the process is shutting down: each response then closes its connection.
    pub ending: Arc<AtomicBool>,
    /// Compute pool that validates objects.
    pub compute: Compute,
    /// Room for parsed objects.
    pub parse_room: ParseRoom,
}

/// State of one endpoint.
#[derive(Debug)]
struct Path {
    handler: Arc<Handler>,
    name: &'static str,
    /// Room for bodies.
    room: Room,
    /// Requests that are judged; `None` if not all of them take turns.
    judged: Option<FairSemaphore>,
}

/// State of `/removals`.
#[derive(Debug, Clone)]
struct RemovalPath {
    path: Arc<Path>,
    /// Removals that are judged, apart from those that need no requests to the API server.
    judged: FairSemaphore,
    recent: Arc<RecentDenials>,
}

/// Builds the router for all paths.
pub fn router(handler: Handler) -> Router {
    let handler = Arc::new(handler);
    let turns = || FairSemaphore::with_reserve(MAX_JUDGED);
    let path = |name, judged| {
        Arc::new(Path {
            handler: handler.clone(),
            name,
            room: Room::default(),
            judged,
        })
    };
    let in_turns = |name| path(name, Some(turns()));
    let router = Router::new()
        .route("/validate", post(validate).with_state(in_turns("validate")))
        .route("/authorize", post(authorize).with_state(in_turns("authorize")))
        .route("/guard", post(guard).with_state(in_turns("guard")));
    if !handler.removal_guard {
        return router;
    }
    // A request is recorded by an update of the pod, which is reviewed while the removal is judged: it must not wait
    // for its turn behind removals.
    let state = RemovalPath {
        path: path("removals", None),
        judged: turns(),
        recent: Arc::default(),
    };
    router.route("/removals", post(removals).with_state(state))
}

async fn validate(
    State(path): State<Arc<Path>>,
    Extension(client): Extension<Handle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&path, &client, &headers, body, async |received| {
        let handler = &path.handler;
        if handler.removal_guard
            && let Some(denial) = received.finalizer_removal(&handler.removal_operators)
        {
            return Ok(denial);
        }
        let namespace = received.head().namespace().to_owned();
        let judge = |handler: &Handler, request: AdmissionRequest| {
            let forged = validate::forged(&request, &handler.workload_operators);
            forged.map_or_else(
                || (validate::judge(&request), hooks::to_look_up(&request)),
                |forged| (forged, None),
            )
        };
        let (mut decision, workload) = match with_objects(handler, &client, received, judge).await? {
            Ok(judged) => judged,
            Err(decision) => return Ok(decision),
        };
        if let (AdmissionDecision::Allowed(warnings), Some(workload)) = (&mut decision, workload) {
            let names = hooks::names(&workload);
            let room = (&handler.parse_room, tenant(&client));
            let found = handler.cluster.templates(&namespace, &names, room).await;
            warnings.extend(found.map_or_else(Vec::new, |found| hooks::warnings(&workload, &found)));
        }
        Ok(decision)
    })
    .await
}

async fn authorize(
    State(path): State<Arc<Path>>,
    Extension(client): Extension<Handle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&path, &client, &headers, body, async |received| {
        let handler = &path.handler;
        let needed = |handler: &Handler, request: AdmissionRequest| {
            authors::needed(&request, &handler.workload_operators)
        };
        match with_objects(handler, &client, received, needed).await? {
            Ok(rights) => Ok(handler.cluster.authorize(&rights).await),
            Err(decision) => Ok(decision),
        }
    })
    .await
}

/// Parses the objects of a creation or an update, and passes them on, both on the compute pool: compiling a hook with
/// 100 conditions takes time. Returns the decision on requests that need no look at their objects, or allow none.
async fn with_objects<T: Send + 'static>(
    handler: &Arc<Handler>,
    client: &Handle,
    received: ReceivedRequest,
    work: impl FnOnce(&Handler, AdmissionRequest) -> T + Send + 'static,
) -> Result<Result<T, AdmissionDecision>, String> {
    if !validate::concerns(received.head()) {
        return Ok(Err(AdmissionDecision::Allowed(Vec::new())));
    }
    let namespace = received.head().namespace().to_owned();
    let weighed = received.weigh();
    let room = handler.parse_room.claim(&tenant(client), weighed.values()).await;
    let for_work = handler.clone();
    let worked = handler.compute.attempt(&namespace, move || {
        let _room = room;
        weighed.parse().map(|request| work(&for_work, request))
    });
    worked.await.map_err(|error| error.to_string())
}

async fn guard(
    State(path): State<Arc<Path>>,
    Extension(client): Extension<Handle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&path, &client, &headers, body, async |received| {
        let handler = &path.handler;
        let request = match received.guarded() {
            Ok(request) => request,
            Err(decision) => return Ok(decision),
        };
        let pending = guard::judge(&request, &handler.exempt);
        Ok(handler.cluster.settle(pending).await)
    })
    .await
}

async fn removals(
    State(state): State<RemovalPath>,
    Extension(client): Extension<Handle>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let RemovalPath { path, judged, recent } = state;
    // The API server's own timeout includes the wait for a turn.
    let deadline = tokio::time::Instant::now() + path.handler.cluster.timeout();
    answer(&path, &client, &headers, body, async |received| {
        let handler = &path.handler;
        let review = match received.removal() {
            Ok(review) => review,
            Err(decision) => return Ok(decision),
        };
        let (operators, entries) = (&handler.removal_operators, handler.entries.get());
        let decision = removal::judge(review, operators, &recent, entries, Timestamp::now());
        let tenant = tenant(&client);
        let turn = async {
            let turn = judged.take(&tenant).await;
            // The room of its texts is returned.
            drop(received);
            turn
        };
        Ok(match decision {
            RemovalDecision::Allowed => AdmissionDecision::Allowed(Vec::new()),
            RemovalDecision::Denied(denial) => denial,
            RemovalDecision::NeedsPod(removal) => {
                record::settle(&handler.cluster, &recent, &removal, turn, deadline).await
            }
            RemovalDecision::NeedsNamespace(deletion) => {
                namespace::lookup::settle(&handler.cluster, &deletion, turn, deadline).await
            }
        })
    })
    .await
}

/// Returns the name of a client among those that share something.
fn tenant(client: &Handle) -> String {
    body::tenant(client.peer())
}

/// Parses a body, apart from its objects.
async fn parse(path: &Path, tenant: &str, body: ReceivedBody) -> Result<ReceivedRequest, Malformed> {
    let (mut bytes, room) = body.into_parts();
    let is_short = bytes.len() <= MAX_INLINE_BYTES;
    let read = move || {
        utf8_body::replace_invalid(&mut bytes);
        review::read(&bytes).map(|received| received.keep(room))
    };
    if is_short {
        return read();
    }
    path.handler.compute.run(tenant, read).await
}

/// Reads a review, has it judged, records the outcome and builds the response.
async fn answer(
    path: &Path,
    client: &Handle,
    headers: &HeaderMap,
    body: Body,
    judge: impl AsyncFnOnce(ReceivedRequest) -> Result<AdmissionDecision, String>,
) -> Response {
    let since = Instant::now();
    let (handler, name) = (&path.handler, path.name);
    let body = match body::receive(&path.room, client, headers, body).await {
        Ok(body) => body,
        Err(error) => {
            let code = error.code();
            handler.metrics.malformed();
            tracing::warn!(path = name, code = code.as_u16(), %error, "failed to read a request");
            return (code, error.to_string()).into_response();
        }
    };
    let tenant = tenant(client);
    let received = match parse(path, &tenant, body).await {
        Ok(received) => received,
        // The parser's message may quote a value. The caller already knows it, but the log must not contain
        // it.
        Err(error) => {
            handler.metrics.malformed();
            tracing::warn!(path = name, "a request is not an AdmissionReview");
            return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
        }
    };
    let asked = received.head().clone();
    let _turn = match &path.judged {
        Some(judged) => Some(judged.take(&tenant).await),
        None => None,
    };
    let verdict = match judge(received).await {
        Ok(verdict) => verdict,
        Err(error) => {
            handler.metrics.answered(name, &asked, "failed", since.elapsed());
            tracing::error!(path = name, error, "internal error while handling a request");
            let words = "internal error in hookgate-admission; see its log";
            return (StatusCode::INTERNAL_SERVER_ERROR, words).into_response();
        }
    };
    handler
        .metrics
        .answered(name, &asked, verdict.as_str(), since.elapsed());
    log_decision(name, &asked, &verdict);
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
        AdmissionDecision::Invalid(_)
        | AdmissionDecision::Forbidden(_)
        | AdmissionDecision::ForbiddenWithCause(..)
        | AdmissionDecision::TooFrequent { .. } => {
            tracing::info!(path, kind, namespace, name, operation, user, "refused");
        }
        // The client repeats it every few seconds; the recorded request is logged.
        AdmissionDecision::Pending(_) => {
            tracing::debug!(path, kind, namespace, name, operation, user, "pending");
        }
    }
}
