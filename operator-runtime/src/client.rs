//! Client of the API server: every call has a timeout, none is retried implicitly, all are counted.
//!
//! The library's own retry layer replays requests by status alone, including writes; here the caller decides,
//! because only the caller knows whether a write may be repeated.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tower::util::MapResponseLayer;
use tower::{BoxError, Service, ServiceExt as _};

use crate::answer::{self, Answer, PeekedBody};
use crate::calls::deadline;
use crate::error::{ConnectError, root_cause};
use crate::fence::{Fence, NotSent, WritePermit};
use crate::outage::{Failures, Outage};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without an answer after which a request that its caller gives up counts as a failure.
const UNANSWERED_AFTER: Duration = Duration::from_secs(1);
/// Header that names the user of a request.
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// Returns a client whose requests are made as this user. It shares the connections, the limits and the fence of
/// `client`, whose own user needs the right to impersonate.
pub fn acting_as(client: &Client, user: &str) -> Client {
    // A name that is no header value is sent as none, which the API server refuses.
    let user = HeaderValue::from_str(user).unwrap_or(HeaderValue::from_static(""));
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let send = move |mut request: Request<Body>| {
        request.headers_mut().insert(IMPERSONATE_USER, user.clone());
        let client = client.clone();
        async move { client.send(request).await }
    };
    Client::new(tower::service_fn(send), namespace)
}

/// Counts requests and remembers whether the API server answers them.
#[derive(Debug, Clone)]
pub struct ApiMeter {
    requests: Family<RequestLabels, Counter>,
    /// Time to the head of the answer.
    seconds: Family<VerbLabels, Histogram, fn() -> Histogram>,
    failures: Arc<Mutex<Failures>>,
    /// Time of the last granted watch by resource.
    watches: Arc<Mutex<HashMap<String, Instant>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

const SECONDS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

impl Default for ApiMeter {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            failures: Arc::default(),
            watches: Arc::default(),
        }
    }
}

impl ApiMeter {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Requests to the API server by verb, resource and status code (error: no response; 403-policy: \
                    denied by a quota, a policy or a webhook rather than by RBAC; 500-webhook: a webhook failed)";
        registry.register("hookgate_api_requests", help, self.requests.clone());
        let help = "Time from sending a request to the API server to receiving the response headers, by verb";
        registry.register(
            "hookgate_api_request_duration_seconds",
            help,
            self.seconds.clone(),
        );
    }

    /// Returns the current outage of the API server, if there is one.
    pub fn outage(&self) -> Option<Outage> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.outage(Instant::now())
    }

    /// Whether the API server has granted a watch of this resource since `moment`.
    pub fn watches_since(&self, resource: &str, moment: Instant) -> bool {
        self.watched_since(resource, moment).is_some()
    }

    /// Time at which the API server last granted a watch of this resource, if that was after `moment`.
    pub fn watched_since(&self, resource: &str, moment: Instant) -> Option<Instant> {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(resource).copied().filter(|granted| *granted > moment)
    }

    /// Counts a request that was answered, or failed with this error.
    fn observe(&self, verb: &'static str, resource: String, took: Duration, outcome: Result<Answer, String>) {
        self.seconds
            .get_or_create(&VerbLabels { verb })
            .observe(took.as_secs_f64());
        let now = Instant::now();
        if verb == "watch" && outcome == Ok(Answer::Status(200)) {
            let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.insert(resource.clone(), now);
        }
        let code = outcome
            .as_ref()
            .map_or_else(|_| "error".to_owned(), |answer| answer.code());
        self.requests
            .get_or_create(&RequestLabels { verb, resource, code })
            .inc();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(Answer::Status(code)) if code >= 500 => failures.failed(format!("status {code}"), now),
            Ok(Answer::Status(_) | Answer::PolicyRefusal) => failures.end(),
            // The API server calls webhooks before it stores anything, so this says nothing about it.
            Ok(Answer::WebhookFailure) => {}
            Err(error) => failures.failed(error, now),
        }
    }
}

/// Request that has no answer yet. Counts if its caller stops waiting for it, whose timeout may be shorter than the
/// client's own.
struct PendingRequest<'m> {
    meter: &'m ApiMeter,
    /// Verb and resource; `None` once it has been counted.
    name: Option<(&'static str, String)>,
    started: Instant,
}

impl PendingRequest<'_> {
    /// Counts the request.
    fn end(mut self, took: Duration, outcome: Result<Answer, String>) {
        if let Some((verb, resource)) = self.name.take() {
            self.meter.observe(verb, resource, took, outcome);
        }
    }

    /// Does not count the request: it was not sent, and says nothing about the API server.
    fn forget(mut self) {
        self.name = None;
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let waited = self.started.elapsed();
        if waited < UNANSWERED_AFTER {
            return;
        }
        if let Some((verb, resource)) = self.name.take() {
            let error = format!("no response within {}s", waited.as_secs());
            self.meter.observe(verb, resource, waited, Err(error));
        }
    }
}

/// Creates a client from the environment: `KUBECONFIG`, the default kubeconfig, or the pod's service account.
/// Writes pass only while the fence is open, and within the deadline of their call.
pub async fn connect(
    meter: &ApiMeter,
    call_timeout: Duration,
    fence: &Fence,
) -> Result<Client, ConnectError> {
    let config = Config::infer().await?;
    Ok(with_config(config, meter, call_timeout, fence)?)
}

/// Creates a client from a configuration. Its connections belong to the current runtime.
pub fn with_config(
    mut config: Config,
    meter: &ApiMeter,
    call_timeout: Duration,
    fence: &Fence,
) -> Result<Client, kube::Error> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let inner = ClientBuilder::try_from(config)?.build();
    let (namespace, valid_until) = (inner.default_namespace().to_owned(), *inner.valid_until());
    let send = move |request: Request<Body>| {
        let inner = inner.clone();
        async move { inner.send(request).await }
    };
    let metered = Metered {
        inner: tower::service_fn(send),
        bodies: GuardedBodies::new(),
        meter: meter.clone(),
        call_timeout,
        fence: fence.clone(),
    };
    let client = ClientBuilder::new(metered, namespace).with_valid_until(valid_until);
    Ok(client
        .with_layer(&MapResponseLayer::new(utf8_body::valid))
        .build())
}

/// Measures the requests of an inner service and limits their time to the head of the answer, because a watch
/// streams on. Holds back requests that change something and are not allowed, or not any more.
#[derive(Clone)]
struct Metered<S> {
    inner: S,
    bodies: GuardedBodies,
    meter: ApiMeter,
    call_timeout: Duration,
    fence: Fence,
}

impl<S, B> Service<Request<Body>> for Metered<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
{
    type Response = Response<PeekedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<PeekedBody<B>>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each request waits for the inner service by itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        // The caller polls the future in its own task, where its deadline is known; a task of the client calls this
        // function.
        Box::pin(async move {
            let name = classify(request.method(), request.uri());
            let is_impersonated = request.headers().contains_key(IMPERSONATE_USER);
            let (mut request, mut limit) = (request, this.call_timeout);
            // A command in a container is a GET that changes its connection.
            if request.method() != Method::GET || request.headers().contains_key(UPGRADE) {
                let permit = WritePermit {
                    fence: this.fence,
                    until: deadline(),
                };
                limit = limit.min(permit.check()?);
                request = this.bodies.guard(request, permit).await?;
            }
            let pending = PendingRequest {
                meter: &this.meter,
                name: Some(name),
                started: Instant::now(),
            };
            let call = this.inner.oneshot(request);
            let outcome = match tokio::time::timeout(limit, call).await {
                Ok(outcome) => outcome.map_err(Into::into),
                Err(_) => Err(BoxError::from(format!(
                    "the API server did not respond within {}s",
                    limit.as_secs()
                ))),
            };
            let took = pending.started.elapsed();
            match outcome {
                Ok(response) => {
                    let left = limit.saturating_sub(took);
                    let (answer, response) = answer::read(response, is_impersonated, left).await;
                    pending.end(took, Ok(answer));
                    Ok(response)
                }
                Err(error) => {
                    if NotSent::cause_of(error.as_ref()).is_some() {
                        pending.forget();
                    } else {
                        pending.end(took, Err(root_cause(error.as_ref())));
                    }
                    Err(error)
                }
            }
        })
    }
}

/// Wraps bodies of requests so that they check once more, when the connection asks for them, whether the request may be
/// sent.
///
/// A connection asks when it is open and the request is the next one on it, before it sends the head: a request that
/// waited for its connection, or was frozen meanwhile, is not sent. If the head were sent already, the API server would
/// still carry out no request whose body does not come.
///
/// The library makes bodies of requests from bytes alone, but bodies of answers from any: this is a client whose answer
/// is the body of its request.
#[derive(Clone)]
struct GuardedBodies(Client);

impl GuardedBodies {
    fn new() -> Self {
        let answer = |mut request: Request<Body>| {
            let permit = request.extensions_mut().remove::<WritePermit>();
            let guarded = permit.map(|permit| GuardedBody {
                permit: Some(permit),
                body: request.into_body(),
            });
            let answer = guarded.map(Response::new);
            std::future::ready(answer.ok_or_else(|| BoxError::from("a body without a permit")))
        };
        Self(Client::new(tower::service_fn(answer), ""))
    }

    /// Wraps the body of a request, if it has one.
    async fn guard(&self, request: Request<Body>, permit: WritePermit) -> Result<Request<Body>, kube::Error> {
        if request.body().is_end_stream() {
            return Ok(request);
        }
        let (head, body) = request.into_parts();
        let mut carrier = Request::new(body);
        carrier.extensions_mut().insert(permit);
        let guarded = self.0.send(carrier).await?.into_body();
        Ok(Request::from_parts(head, guarded))
    }
}

/// Body that fails unless its request may be sent.
struct GuardedBody {
    /// Permit to check; `None` once it was.
    permit: Option<WritePermit>,
    body: Body,
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(permit) = self.permit.take()
            && let Err(not_sent) = permit.check()
        {
            // Asking again gets the same answer.
            self.permit = Some(permit);
            return Poll::Ready(Some(Err(not_sent.into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Names the discovery of an API group. Hooks choose groups, which need not exist, so all foreign ones share a name.
fn discovery_of(group: &str) -> String {
    let is_known = group.is_empty() || group == shared_api::names::GROUP;
    format!("discovery:{}", if is_known { group } else { "other" })
}

/// Returns a request's verb and resource (with subresource) in the terms of the audit log.
fn classify(method: &Method, uri: &http::Uri) -> (&'static str, String) {
    let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
    let group = if parts.next() == Some("apis") {
        parts.next()
    } else {
        Some("")
    };
    let mut rest: Vec<&str> = parts.skip(1).collect();
    if rest.first() == Some(&"namespaces") && rest.len() > 2 {
        rest.drain(..2);
    }
    let named = rest.len() > 1;
    let resource = match (rest.first(), rest.get(2)) {
        (Some(resource), Some(subresource)) => format!("{resource}/{subresource}"),
        (Some(resource), None) => (*resource).to_owned(),
        (None, _) => discovery_of(group.unwrap_or_default()),
    };
    let watches = uri
        .query()
        .is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
    let verb = match method.as_str() {
        "GET" if watches => "watch",
        "GET" if named || rest.is_empty() => "get",
        "GET" => "list",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if named => "delete",
        "DELETE" => "deletecollection",
        _ => "other",
    };
    (verb, resource)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;
    use hyper_util::rt::TokioExecutor;
    use prometheus_client::encoding::text::encode;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::calls::{CallError, CallLimiter};
    use crate::clock;
    use crate::fence::Closed;

    fn metered<S>(inner: S, fence: Fence) -> Metered<S> {
        Metered {
            inner,
            bodies: GuardedBodies::new(),
            meter: ApiMeter::default(),
            call_timeout: Duration::from_secs(5),
            fence,
        }
    }

    /// Returns the number of requests with this code.
    fn count(meter: &ApiMeter, code: &str) -> u64 {
        let mut registry = Registry::default();
        meter.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let label = format!("code=\"{code}\"");
        let lines = text.lines().filter(|line| line.contains(&label));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }

    fn write() -> Request<Body> {
        let body = Body::from(b"{}".to_vec());
        Request::patch("/api/v1/namespaces/games/pods/a")
            .body(body)
            .unwrap()
    }

    /// A process that lost its Lease must neither write nor run commands, which are GETs.
    #[tokio::test]
    async fn a_closed_fence_lets_reads_pass_and_nothing_that_acts() {
        let sent = |method: Method, upgrade: bool, fence: Fence| async move {
            let inner = tower::service_fn(|_: Request<Body>| async {
                Ok::<_, BoxError>(Response::new(Body::empty()))
            });
            let mut client = metered(inner, fence);
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            if upgrade {
                let value = HeaderValue::from_static("websocket");
                request.headers_mut().insert(UPGRADE, value);
            }
            client.call(request).await.is_ok()
        };
        for (method, upgrade, passes) in [
            (Method::GET, false, true),
            (Method::GET, true, false),
            (Method::PATCH, false, false),
            (Method::POST, false, false),
            (Method::DELETE, false, false),
        ] {
            assert_eq!(
                sent(method.clone(), upgrade, Fence::closed()).await,
                passes,
                "{method} {upgrade}"
            );
            assert!(sent(method, upgrade, Fence::open()).await);
        }
    }

    /// The inner service stands for a connection that takes its time.
    #[tokio::test]
    async fn a_body_is_not_sent_if_the_fence_closes_before_the_connection_asks_for_it() {
        for closes in [false, true] {
            let fence = Fence::open();
            let closing = fence.clone();
            let inner = tower::service_fn(move |request: Request<Body>| {
                let closing = closing.clone();
                async move {
                    let body = request.into_body();
                    assert_eq!(body.size_hint().exact(), Some(2), "it has a Content-Length");
                    if closes {
                        closing.set(None);
                    }
                    Ok::<_, BoxError>(Response::new(Body::from(body.collect_bytes().await?)))
                }
            });
            let mut client = metered(inner, fence);
            match client.call(write()).await {
                Ok(answer) => {
                    let body = answer.into_body().collect().await.unwrap().to_bytes();
                    assert!(!closes && body == "{}");
                }
                Err(error) => {
                    assert!(closes, "{error}");
                    assert_eq!(NotSent::cause_of(error.as_ref()), Some(NotSent::Closed(Closed)));
                }
            }
            let failed = count(&client.meter, "error");
            assert_eq!(failed, 0, "the API server is not to blame");
        }
    }

    /// The deadline is that of the task of the caller. Clients make their requests in tasks of their own.
    #[tokio::test]
    async fn a_body_is_not_sent_if_its_deadline_is_over_when_the_connection_asks_for_it() {
        let has_read = Arc::new(AtomicBool::new(false));
        let reads = has_read.clone();
        let until = clock::elapsed() + Duration::from_millis(200);
        let inner = tower::service_fn(move |request: Request<Body>| {
            let reads = reads.clone();
            async move {
                while clock::elapsed() < until {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                request.into_body().collect_bytes().await?;
                reads.store(true, Ordering::Relaxed);
                Ok::<_, BoxError>(Response::new(Body::empty()))
            }
        });
        let client = Client::new(metered(inner, Fence::open()), "games");
        let client = acting_as(&client, "somebody");
        let calls = CallLimiter::new(1, Duration::from_mins(1));
        let done = calls
            .call_before(Some(until), "games", "try", client.send(write()))
            .await;
        assert_eq!(done.err(), Some(CallError::Lapsed));
        assert!(!has_read.load(Ordering::Relaxed));
        let done = calls
            .call_before(None, "games", "try", client.send(write()))
            .await;
        assert!(done.is_ok() && has_read.load(Ordering::Relaxed));
    }

    /// The connection itself, without a service in between: not even the head of the request is sent.
    #[tokio::test]
    async fn nothing_of_a_request_whose_body_fails_reaches_the_server() {
        for closes in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let place = format!("http://{}/", listener.local_addr().unwrap());
            let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http::<Body>();
            let client = Client::new(http, "games");
            let fence = Fence::open();
            let permit = WritePermit {
                fence: fence.clone(),
                until: None,
            };
            let request = Request::patch(place).body(Body::from(b"{}".to_vec())).unwrap();
            let guarded = GuardedBodies::new().guard(request, permit).await.unwrap();
            if closes {
                fence.set(None);
            }
            let server = async {
                let (mut connection, _) = listener.accept().await.unwrap();
                received(&mut connection).await
            };
            let (answer, received) = tokio::join!(client.send(guarded), server);
            match answer {
                Ok(answer) => assert!(!closes && answer.status() == 200),
                Err(error) => assert_eq!(NotSent::cause_of(&error), Some(NotSent::Closed(Closed))),
            }
            assert_eq!(received.is_empty(), closes, "{received}");
        }
    }

    /// Reads a request up to the end of its body, and answers it. Returns what was received, if only to the end of the
    /// connection.
    async fn received(connection: &mut TcpStream) -> String {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n{}") {
            if connection.read_buf(&mut received).await.unwrap() == 0 {
                return String::from_utf8(received).unwrap();
            }
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        connection.write_all(answer).await.unwrap();
        String::from_utf8(received).unwrap()
    }

    /// Sends a write that gets this answer. Returns the meter.
    async fn answered(code: u16, message: &str) -> ApiMeter {
        let status = serde_json::json!({ "kind": "Status", "message": message, "code": code }).to_string();
        let sent = status.clone();
        let inner = tower::service_fn(move |_: Request<Body>| {
            let mut response = Response::new(Body::from(sent.clone().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            async move { Ok::<_, BoxError>(response) }
        });
        let mut client = metered(inner, Fence::open());
        let answer = client.call(write()).await.unwrap();
        assert_eq!(answer.status(), code);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, status, "callers see what the API server has said");
        client.meter
    }

    #[tokio::test]
    async fn a_refusal_counts_by_its_cause() {
        for (code, message, label) in [
            (
                403,
                "pods is forbidden: User \"operator\" cannot create resource",
                "403",
            ),
            (403, "pods \"a\" is forbidden: exceeded quota: pods", "403-policy"),
            (
                500,
                "Internal error occurred: failed calling webhook \"policy\": refused",
                "500-webhook",
            ),
            (500, "etcdserver: no leader", "500"),
            (409, "the object has been modified", "409"),
        ] {
            let meter = answered(code, message).await;
            assert_eq!(count(&meter, label), 1, "{message}");
        }
    }

    /// Requests of the operators have timeouts of their own, which may be shorter than the client's.
    #[tokio::test]
    async fn a_request_without_an_answer_counts_when_its_caller_gives_it_up() {
        for (waits, counted) in [(Duration::ZERO, 0), (UNANSWERED_AFTER, 1)] {
            let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>();
            let mut client = metered(tower::service_fn(never), Fence::open());
            let limit = waits + Duration::from_millis(50);
            assert!(tokio::time::timeout(limit, client.call(write())).await.is_err());
            assert_eq!(count(&client.meter, "error"), counted, "{waits:?}");
        }
    }

    #[test]
    fn an_outage_is_of_requests_that_fail_without_a_good_answer_in_between() {
        let meter = ApiMeter::default();
        let get = |outcome| meter.observe("get", "pods".to_owned(), Duration::ZERO, outcome);
        let streak = || {
            let failures = meter.failures.lock().unwrap();
            failures.error().map(str::to_owned)
        };
        for (outcome, error) in [
            (Ok(Answer::Status(503)), Some("status 503")),
            (Ok(Answer::WebhookFailure), Some("status 503")),
            (Err("connection reset".to_owned()), Some("connection reset")),
            (Ok(Answer::Status(404)), None),
            (Ok(Answer::WebhookFailure), None),
            (Err("connection reset".to_owned()), Some("connection reset")),
            (Ok(Answer::PolicyRefusal), None),
        ] {
            let seen = format!("{outcome:?}");
            get(outcome);
            assert_eq!(streak().as_deref(), error, "{seen}");
        }
    }

    #[test]
    fn requests_are_named_as_the_audit_log_names_them() {
        let cases = "
            GET /apis/tkex.tencent.com/v1alpha1/hookruns?watch=true -> watch hookruns
            GET /apis/tkex.tencent.com/v1alpha1/hookruns?limit=500 -> list hookruns
            GET /apis/tkex.tencent.com/v1alpha1/namespaces/a/hookruns/b -> get hookruns
            PATCH /apis/tkex.tencent.com/v1alpha1/namespaces/a/hookruns/b/status -> patch hookruns/status
            GET /api/v1/namespaces/a/secrets/b -> get secrets
            DELETE /apis/tkex.tencent.com/v1alpha1/namespaces/a/hookruns/b -> delete hookruns
            DELETE /apis/tkex.tencent.com/v1alpha1/namespaces/a/hookruns?&labelSelector=a -> deletecollection hookruns
            POST /apis/events.k8s.io/v1/namespaces/a/events -> create events
            GET /apis/tkex.tencent.com/v1alpha1 -> get discovery:tkex.tencent.com
            GET /apis -> get discovery:
            GET /api/v1 -> get discovery:
            GET /apis/games.example.com/v1 -> get discovery:other
        ";
        for line in cases.trim().lines() {
            let (request, name) = line.trim().split_once(" -> ").unwrap();
            let (method, uri) = request.split_once(' ').unwrap();
            let (verb, resource) = classify(&method.parse().unwrap(), &uri.parse().unwrap());
            assert_eq!(format!("{verb} {resource}"), name, "{line}");
        }
    }
}
