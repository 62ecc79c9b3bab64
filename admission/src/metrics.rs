//! Prometheus metrics. Labels have a fixed set of values; contents of requests are never used as labels.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::review::AdmissionRequest;

const SECONDS: [f64; 9] = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0];

/// Metrics of this component.
#[derive(Debug, Clone)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    malformed: Counter,
    seconds: Histogram,
    handshakes_failed: Family<HandshakeLabels, Counter>,
    renewals: Counter,
    expiry: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: &'static str,
    kind: &'static str,
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeLabels {
    reason: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            malformed: Counter::default(),
            seconds: Histogram::new(SECONDS),
            handshakes_failed: Family::default(),
            renewals: Counter::default(),
            expiry: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers all metrics for `/metrics`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("hookgate_admission");
        let help = "Admission requests handled, by path, kind, operation and outcome (allowed, refused, pending, \
                    failed)";
        registry.register("requests", help, self.requests.clone());
        let help = "Requests that are not a valid AdmissionReview";
        registry.register("malformed_requests", help, self.malformed.clone());
        let help = "Time from the arrival of a request to its response";
        registry.register("request_duration_seconds", help, self.seconds.clone());
        let help = "Failed TLS handshakes, by reason (refused: the client does not trust the certificate; timeout; \
                    other: the client disconnected, or does not speak TLS)";
        registry.register("tls_handshakes_failed", help, self.handshakes_failed.clone());
        let help = "Certificates created by this process";
        registry.register("certificate_renewals", help, self.renewals.clone());
        let help = "Unix time at which the certificate in use expires; 0 if there is none";
        registry.register("certificate_expiry_timestamp_seconds", help, self.expiry.clone());
    }

    /// Counts a request that was answered or failed.
    pub fn answered(
        &self,
        path: &'static str,
        request: &AdmissionRequest,
        outcome: &'static str,
        took: Duration,
    ) {
        let labels = RequestLabels {
            path,
            kind: kind(&request.kind.kind),
            operation: operation(&request.operation),
            outcome,
        };
        self.requests.get_or_create(&labels).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a malformed request.
    pub fn malformed(&self) {
        self.malformed.inc();
    }

    /// Counts a failed TLS handshake.
    pub fn handshake_failed(&self, reason: &'static str) {
        self.handshakes_failed
            .get_or_create(&HandshakeLabels { reason })
            .inc();
    }

    /// Counts a certificate that this process created and recorded.
    pub fn renewed(&self) {
        self.renewals.inc();
    }

    /// Records the expiry of the presented certificate.
    pub fn expires(&self, at: jiff::Timestamp) {
        self.expiry.set(at.as_second());
    }
}

fn kind(kind: &str) -> &'static str {
    let known = [
        "GameDeployment",
        "HookTemplate",
        "HookRun",
        "HookAction",
        "ExecutionHook",
        "CustomResourceDefinition",
        "Pod",
        "Eviction",
        "Namespace",
    ];
    known.into_iter().find(|known| *known == kind).unwrap_or("other")
}

fn operation(operation: &str) -> &'static str {
    match operation {
        "CREATE" => "create",
        "UPDATE" => "update",
        "DELETE" => "delete",
        _ => "other",
    }
}
