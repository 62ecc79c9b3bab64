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

use http::header::UPGRADE;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tower::util::MapResponseLayer;
use tower::{BoxError, Layer, Service};

use crate::error::{ConnectError, root_cause};
use crate::fence::Fence;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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

/// Counts requests and remembers whether the API server answered the last one.
#[derive(Debug, Clone)]
pub struct ApiMeter {
    requests: Family<RequestLabels, Counter>,
    /// Time to the head of the answer.
    seconds: Family<VerbLabels, Histogram, fn() -> Histogram>,
    outage: Arc<Mutex<Option<Outage>>>,
    /// Time of the last granted watch by resource.
    watches: Arc<Mutex<HashMap<String, Instant>>>,
}

/// Ongoing failure of requests.
#[derive(Debug, Clone)]
pub struct Outage {
    /// Time of the first failed request.
    pub since: Timestamp,
    /// Error of the newest failed request.
    pub error: String,
    /// Time of the newest failed request.
    newest: Instant,
}

/// Time without a failed request after which an outage is over even without a success: while the API server
/// does not answer, the watches fail again every few seconds.
const OUTAGE_ENDS_AFTER: Duration = Duration::from_secs(30);

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
            outage: Arc::default(),
            watches: Arc::default(),
        }
    }
}

impl ApiMeter {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Requests to the API server by verb, resource and status code (error: no answer)";
        registry.register("hookgate_api_requests", help, self.requests.clone());
        let help = "Time from a request to the API server to the head of its answer, by verb";
        registry.register(
            "hookgate_api_request_duration_seconds",
            help,
            self.seconds.clone(),
        );
    }

    /// Returns the current outage of the API server, if there is one.
    pub fn outage(&self) -> Option<Outage> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |outage: &&Outage| outage.newest.elapsed() < OUTAGE_ENDS_AFTER;
        outage.as_ref().filter(recent).cloned()
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

    fn observe(&self, verb: &'static str, resource: String, took: Duration, outcome: Result<u16, &BoxError>) {
        self.seconds
            .get_or_create(&VerbLabels { verb })
            .observe(took.as_secs_f64());
        if verb == "watch" && outcome.as_ref().is_ok_and(|code| *code == 200) {
            let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.insert(resource.clone(), Instant::now());
        }
        let code = outcome.map_or_else(|_| "error".to_owned(), |code| code.to_string());
        self.requests
            .get_or_create(&RequestLabels { verb, resource, code })
            .inc();
        let failed = match outcome {
            Ok(code) if code < 500 => None,
            Ok(code) => Some(format!("status {code}")),
            Err(error) => Some(root_cause(error.as_ref())),
        };
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        *outage = failed.map(|error| Outage {
            since: outage.as_ref().map_or_else(Timestamp::now, |outage| outage.since),
            error,
            newest: Instant::now(),
        });
    }
}

/// Creates a client from the environment: `KUBECONFIG`, the default kubeconfig, or the pod's service account.
/// Writes pass only while the fence is open.
pub async fn connect(
    meter: &ApiMeter,
    call_timeout: Duration,
    fence: &Fence,
) -> Result<Client, ConnectError> {
    let config = Config::infer().await?;
    Ok(with_config(config, meter, call_timeout, fence)?)
}

/// Creates a client from a configuration.
pub fn with_config(
    mut config: Config,
    meter: &ApiMeter,
    call_timeout: Duration,
    fence: &Fence,
) -> Result<Client, kube::Error> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let layer = MeterLayer {
        meter: meter.clone(),
        call_timeout,
        fence: fence.clone(),
    };
    let client = ClientBuilder::try_from(config)?.with_layer(&layer);
    Ok(client
        .with_layer(&MapResponseLayer::new(utf8_body::valid))
        .build())
}

struct MeterLayer {
    meter: ApiMeter,
    call_timeout: Duration,
    fence: Fence,
}

impl<S> Layer<S> for MeterLayer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered {
            inner,
            meter: self.meter.clone(),
            call_timeout: self.call_timeout,
            fence: self.fence.clone(),
        }
    }
}

/// Measures the requests of an inner service and limits their time to the head of the answer, because a watch
/// streams on.
#[derive(Clone)]
struct Metered<S> {
    inner: S,
    meter: ApiMeter,
    call_timeout: Duration,
    fence: Fence,
}

impl<S, B> Service<Request<Body>> for Metered<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, resource) = classify(request.method(), request.uri());
        let (meter, mut limit) = (self.meter.clone(), self.call_timeout);
        // A command in a container is a GET that changes its connection.
        if request.method() != Method::GET || request.headers().contains_key(UPGRADE) {
            match self.fence.left() {
                Ok(left) => limit = limit.min(left),
                Err(closed) => {
                    let error = BoxError::from(closed);
                    return Box::pin(async move { Err(error) });
                }
            }
        }
        let started = Instant::now();
        let call = self.inner.call(request);
        Box::pin(async move {
            let outcome = match tokio::time::timeout(limit, call).await {
                Ok(outcome) => outcome.map_err(Into::into),
                Err(_) => Err(BoxError::from(format!(
                    "the API server did not answer within {}s",
                    limit.as_secs()
                ))),
            };
            meter.observe(
                verb,
                resource,
                started.elapsed(),
                outcome.as_ref().map(|response| response.status().as_u16()),
            );
            outcome
        })
    }
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
        (None, _) => format!("discovery:{}", group.unwrap_or_default()),
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
    use super::*;

    /// A process that lost its Lease must neither write nor run commands, which are GETs.
    #[tokio::test]
    async fn a_closed_fence_lets_reads_pass_and_nothing_that_acts() {
        let sent = |method: Method, upgrade: bool, fence: Fence| async move {
            let inner = tower::service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(())) });
            let mut client = Metered {
                inner,
                meter: ApiMeter::default(),
                call_timeout: Duration::from_secs(5),
                fence,
            };
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
        ";
        for line in cases.trim().lines() {
            let (request, name) = line.trim().split_once(" -> ").unwrap();
            let (method, uri) = request.split_once(' ').unwrap();
            let (verb, resource) = classify(&method.parse().unwrap(), &uri.parse().unwrap());
            assert_eq!(format!("{verb} {resource}"), name, "{line}");
        }
    }
}
