//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Alive means that the tasks of this process work. Ready means that it can work: every named check passes and the API
//! server answers; otherwise `/readyz` returns 503 with the reason of each failing check. `/metrics` has the checks as
//! well.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use connection_limit::socket::{self, Socket};
use connection_limit::tracked::Tracked;
use connection_limit::{Connections, Limits};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::client::ApiMeter;
use crate::connections::DroppedConnections;
use crate::heartbeat::Heartbeats;
use crate::metrics_text::MetricsText;

/// State that the endpoints report.
#[derive(Debug, Clone)]
pub struct Health {
    checks: Arc<Mutex<BTreeMap<&'static str, Check>>>,
    meter: ApiMeter,
}

#[derive(Debug, Clone)]
enum Check {
    Passes {
        words: String,
        since: Instant,
    },
    Fails(String),
    /// Watch that was interrupted. It counts as back when the API server grants it again, because there may
    /// be no event to show.
    Interrupted {
        why: String,
        resource: String,
        since: Instant,
    },
}

impl Health {
    /// Creates a state that is ready once the API server answers and these checks pass. They are given here so that
    /// the state is not ready between the start of the endpoint and the first result of a check.
    pub fn new(meter: ApiMeter, checks: &[&'static str]) -> Self {
        let health = Self {
            checks: Arc::default(),
            meter,
        };
        health.require(checks);
        health
    }

    /// Returns a state whose checks this one does not report.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::new(self.meter.clone(), &[])
    }

    /// Marks a check as passing.
    pub fn pass(&self, check: &'static str) {
        self.pass_saying(check, "ok");
    }

    /// Marks a check as passing, with a text.
    pub fn pass_saying(&self, check: &'static str, words: impl Into<String>) {
        let (words, mut since) = (words.into(), Instant::now());
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Check::Passes { since: known, .. }) = checks.get(check) {
            since = *known;
        }
        checks.insert(check, Check::Passes { words, since });
    }

    /// Adds checks that must pass. Until they are marked as passing, they fail.
    pub fn require(&self, checks: &[&'static str]) {
        for check in checks {
            self.fail(check, "not ready yet");
        }
    }

    /// Marks a check as failing, with the reason.
    pub fn fail(&self, check: &'static str, why: impl Into<String>) {
        self.set(check, Check::Fails(why.into()));
    }

    /// Marks the watch of a resource as interrupted, with the reason. The check passes again as soon as the
    /// API server grants another watch.
    pub fn interrupt(&self, check: &'static str, resource: impl Into<String>, why: impl Into<String>) {
        let (why, resource, since) = (why.into(), resource.into(), Instant::now());
        let interrupted = Check::Interrupted { why, resource, since };
        self.set(check, interrupted);
    }

    fn set(&self, check: &'static str, state: Check) {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(check, state);
    }

    /// Time since which a check has passed without a break; `None` while it fails. For an interrupted watch
    /// without an event since, it is the time at which the API server granted it again.
    pub fn passes_since(&self, check: &str) -> Option<Instant> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.get(check)? {
            Check::Passes { since, .. } => Some(*since),
            Check::Interrupted { resource, since, .. } => self.meter.watched_since(resource, *since),
            Check::Fails(_) => None,
        }
    }

    /// Registers the metric of the checks.
    pub fn register(&self, registry: &mut Registry) {
        let help = "1 while this /readyz check passes, otherwise 0";
        registry.register("hookgate_ready", help, Readiness(self.clone()));
    }

    /// Returns whether all checks pass, and a line for each check.
    pub fn report(&self) -> (bool, String) {
        let checks = self.checks();
        let line = |(check, state): (&&str, &Result<String, String>)| match state {
            Ok(words) => format!("[+] {check} {words}\n"),
            Err(why) => format!("[-] {check} {why}\n"),
        };
        (
            checks.values().all(Result::is_ok),
            checks.iter().map(line).collect(),
        )
    }

    /// Returns each check with its text, or the reason why it fails.
    fn checks(&self) -> BTreeMap<&'static str, Result<String, String>> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut checks: BTreeMap<_, _> = checks
            .into_iter()
            .map(|(check, state)| (check, self.judge(state)))
            .collect();
        let answers = self.meter.outage().map_or(Ok("ok".to_owned()), |outage| {
            let seconds = Timestamp::now().duration_since(outage.since).as_secs();
            Err(format!("no successful response for {seconds}s: {}", outage.error))
        });
        checks.insert("api-server", answers);
        checks
    }
}

/// Gauge of each check, which is read at each scrape.
#[derive(Debug)]
struct Readiness(Health);

impl EncodeMetric for Readiness {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), std::fmt::Error> {
        for (check, state) in self.0.checks() {
            let labels = [("check", check)];
            let mut series = encoder.encode_family(&labels)?;
            series.encode_gauge(&i64::from(state.is_ok()))?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl Health {
    fn judge(&self, check: Check) -> Result<String, String> {
        match check {
            Check::Passes { words, .. } => Ok(words),
            Check::Interrupted { resource, since, .. } if self.meter.watches_since(&resource, since) => {
                Ok("ok".to_owned())
            }
            Check::Fails(why) | Check::Interrupted { why, .. } => Err(why),
        }
    }
}

/// Limits of the connections. Each serves one request.
const LIMITS: Limits = Limits {
    connections: 256,
    first_request: Duration::from_secs(5),
    lifetime: Some(Duration::from_secs(15)),
};
/// Size of the buffers of a connection in the kernel.
const SOCKET_BYTES: u32 = 8 * 1024;
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Delay after a failed `accept`, for example if file descriptors are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves the endpoints until the process ends. Returns the listening address.
///
/// They have a thread of their own: work of the process delays no probe, and a flood of connections takes no more
/// than this thread from its work. `/healthz` fails if a task has been silent for a while; the runtime of the caller is
/// watched like one. If a task stays silent, the process ends.
pub async fn serve(
    listen: SocketAddr,
    health: Health,
    heartbeats: &Heartbeats,
    registry: Registry,
    dropped: &DroppedConnections,
) -> std::io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let watched = heartbeats.clone();
    let healthz = async move || match watched.report() {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(hung) => (StatusCode::SERVICE_UNAVAILABLE, hung),
    };
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state((health, Arc::new(MetricsText::new(registry))));
    let connections = Connections::new(LIMITS, dropped.of("http"));
    let (report, bound) = oneshot::channel();
    let work = async move {
        let listener = match socket::listen(listen, SOCKET_BYTES) {
            Ok(listener) => listener,
            Err(error) => return drop(report.send(Err(error))),
        };
        drop(report.send(listener.local_addr()));
        accept(&listener, &router, &connections).await;
    };
    std::thread::Builder::new()
        .name("health".to_owned())
        .spawn(move || runtime.block_on(work))?;
    let address = bound
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the endpoint thread exited")))?;
    let heartbeat = heartbeats.of("runtime");
    tokio::spawn(async move { heartbeat.keep().await });
    heartbeats.guard()?;
    Ok(address)
}

async fn accept(listener: &TcpListener, router: &Router, connections: &Connections) {
    let mut http = http1::Builder::new();
    http.keep_alive(false)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_HEAD_BYTES)
        .timer(TokioTimer::new());
    loop {
        match connections.accept(listener).await {
            Ok(None) => {}
            Ok(Some((stream, connection))) => {
                let service = Tracked::new(TowerToHyperService::new(router.clone()), connection.handle());
                let served = http.serve_connection(TokioIo::new(Socket::new(stream)), service);
                // Broken and slow clients are no event of this process.
                tokio::spawn(connection.run(async { drop(served.await) }));
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

type Served = (Health, Arc<MetricsText>);

async fn readyz(State((health, _)): State<Served>) -> impl IntoResponse {
    let (ready, report) = health.report();
    (
        if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        report,
    )
}

async fn metrics(State((_, text)): State<Served>) -> impl IntoResponse {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match text.read(Instant::now) {
        Ok(text) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, content_type)],
            Body::from(text),
        ),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain")],
            Body::from(error.to_string()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::metrics;

    /// Returns the series of the checks, without their common labels.
    fn series(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        let begin = "hookgate_ready{component=\"hook-operator\",";
        let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn the_gauges_are_the_checks_at_each_scrape() {
        let mut registry = Registry::default();
        let health = Health::new(ApiMeter::default(), &["crds"]);
        health.register(metrics::common(&mut registry, "hook-operator", "1.0.0"));
        let of_crds = |value| {
            [
                "check=\"api-server\"} 1".to_owned(),
                format!("check=\"crds\"}} {value}"),
            ]
        };
        assert_eq!(series(&registry), of_crds(0));
        assert!(!health.report().0);
        health.pass("crds");
        assert!(health.report().0);
        assert_eq!(series(&registry), of_crds(1));
        health.interrupt("crds", "hookruns", "connection reset");
        assert_eq!(series(&registry), of_crds(0));
        assert!(!health.report().0);
        // A state of its own has no series here.
        health.detached().fail("quiet", "not yet");
        assert_eq!(series(&registry), of_crds(0));
    }
}
