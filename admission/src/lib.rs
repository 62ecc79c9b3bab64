//! hookgate-admission: an optional webhook that reports before an object is stored what the operators would
//! report afterwards, and rejects deletions that would disconnect players. The operators do not depend on it.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`review`] | messages exchanged with the API server |
//! | [`validate`] | the operators' own validation, limited to problems that a write introduces |
//! | [`authors`] | rights of the authors of hooks that act in the cluster |
//! | [`guard`] | the deletion guard: objects that can only be deleted if a label allows it |
//! | [`removal`] | the removal guard: pods whose removal is denied and recorded until their hook succeeds |
//! | [`hooks`] | warnings about hooks of a GameDeployment that cannot run |
//! | [`cluster`] | requests to the API server |
//! | [`http`] | the HTTP endpoints |
//! | [`body`] | bodies of requests, within bounds |
//! | [`complexity`] | bounds of an object, checked on its text |
//! | [`parse_room`] | room for parsed objects |
//! | [`serve`] | TLS and HTTP until a termination signal |
//! | [`certificates`] | automatically rotated certificates |
//! | [`metrics`] | Prometheus metrics |
//!
//! The cores alone interpret a spec; this crate adds no interpretation of its own.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use connection_limit::socket;
use fair_share::compute::Compute;
use operator_runtime::calls::CallLimiter;
use operator_runtime::client::{self, ApiMeter};
use operator_runtime::connections::DroppedConnections;
use operator_runtime::error::OperatorError;
use operator_runtime::fence::Fence;
use operator_runtime::health::{self, Health};
use operator_runtime::heartbeat::Heartbeats;
use operator_runtime::process;
use operator_runtime::shutdown::Shutdown;
use operator_runtime::telemetry::Telemetry;
use prometheus_client::registry::Registry;

pub mod authors;
pub mod body;
pub mod certificates;
pub mod cluster;
pub mod complexity;
pub mod config;
pub mod guard;
pub mod hooks;
pub mod http;
pub mod metrics;
pub mod parse_room;
pub mod removal;
pub mod review;
pub mod serve;
pub mod validate;

use certificates::store::CertificateStore;
use certificates::{CertificateController, CertificateLifetimes, Presented, keep};
use config::Config;
use parse_room::ParseRoom;
use removal::entries::KnownEntries;

/// Maximum number of concurrent API calls about certificates.
const CALLS: usize = 2;
/// Name of this component in Prometheus metrics.
const COMPONENT: &str = "hookgate-admission";
/// Check in `/readyz` that fails once the process is shutting down.
const ENDING: &str = "ending";

/// Runs the program: parses flags, runs until a signal, and prints one line if it fails.
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// Runs the program with these settings.
pub fn start(config: Config) -> ExitCode {
    let telemetry = Telemetry {
        name: COMPONENT,
        version: env!("CARGO_PKG_VERSION"),
        format: config.process.log_format,
        log: config.process.log.clone(),
        // Callers of the webhook are traced by the API server.
        otlp_endpoint: None,
    };
    process::start(&telemetry, run(config))
}

/// Runs until a termination signal. There is no leader: every replica answers.
pub async fn run(config: Config) -> Result<(), OperatorError> {
    let shutdown = Shutdown::on_signals().map_err(OperatorError::Signals)?;
    let mut registry = Registry::default();
    let metrics = metrics::Metrics::default();
    metrics.register(&mut registry);
    let common = operator_runtime::metrics::common(&mut registry, COMPONENT, env!("CARGO_PKG_VERSION"));
    let meter = ApiMeter::default();
    meter.register(common);
    let dropped = DroppedConnections::default();
    dropped.register(common);
    let client = client::connect(&meter, config.process.api_timeout, &Fence::open()).await?;
    let health = Health::new(meter, &[keep::CERTIFICATE, keep::CONFIGURATION]);
    health.register(common);
    let refused = |address| move |source| OperatorError::Listen { address, source };
    let heartbeats = Heartbeats::default();
    let address = health::serve(
        config.process.listen,
        health.clone(),
        &heartbeats,
        registry,
        &dropped,
    )
    .await;
    let address = address.map_err(refused(config.process.listen))?;
    let listener =
        socket::listen(config.listen_tls, serve::SOCKET_BYTES).map_err(refused(config.listen_tls))?;
    let (version, tls) = (env!("CARGO_PKG_VERSION"), config.listen_tls);
    tracing::info!(%address, %tls, version, "hookgate-admission started");

    let namespace = config.namespace.as_deref().unwrap_or(client.default_namespace());
    let names = &config.certificates;
    let calls = CallLimiter::new(CALLS, config.process.api_timeout);
    let (presented, entries) = (Arc::new(Presented::default()), Arc::new(KnownEntries::default()));
    let certificate_controller = CertificateController::new(
        CertificateStore::new(&client, namespace, &names.secret, &names.configuration, calls),
        names.hosts(namespace),
        CertificateLifetimes {
            validity: names.certificate_validity,
        },
        presented.clone(),
        entries.clone(),
        health.clone(),
        metrics.clone(),
    );
    let ending = Arc::new(AtomicBool::new(false));
    let handler = http::Handler {
        cluster: cluster::ClusterReader::new(client.clone(), config.process.api_timeout),
        exempt: config.guard_exempt_user.clone(),
        workload_operators: config.workload_operator_user.clone(),
        removal_operators: config.removal_operators().to_vec(),
        removal_guard: config.removal_guard,
        entries,
        metrics: metrics.clone(),
        ending: ending.clone(),
        compute: Compute::default(),
        parse_room: ParseRoom::default(),
    };
    let server = serve::Server {
        listener,
        presented,
        router: http::router(handler),
        metrics,
        dropped,
    };
    let mut signal = shutdown.clone();
    let farewell = async {
        signal.requested().await;
        ending.store(true, Ordering::Relaxed);
        health.fail(ENDING, "shutting down; use another replica");
        std::future::pending::<()>().await;
    };
    // Keeps the certificate up to date until the last response.
    tokio::select! {
        () = server.run(shutdown, config.drain) => Ok(()),
        () = certificate_controller.run() => Err(OperatorError::WorkEnded),
        () = farewell => Ok(()),
    }
}
