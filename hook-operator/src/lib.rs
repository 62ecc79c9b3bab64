//! Turns HookTemplates into measured HookRuns.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of HookRuns and HookTemplates |
//! | [`controller`] | a session for every run without a verdict |
//! | [`session`] | the life of one run: decide, record, measure, wait |
//! | [`measure`] | one measurement |
//! | [`provider`] | web and Prometheus, behind the egress policy |
//! | [`ledger`] | what a session needs of the place where it records |
//! | [`act`] | every write to the API server |
//! | [`template`] | the `Valid` condition of HookTemplates |
//! | [`metrics`] | what Prometheus is told |
//!
//! What a run means is decided in `hook-core`; here is what touches the world.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use operator_runtime::client::ApiMeter;
use operator_runtime::events::Events;
use operator_runtime::health::Health;
use operator_runtime::leader::{self, Election, Fence, LeaderMetrics};
use operator_runtime::process::{self, StartError};
use operator_runtime::shutdown::Shutdown;
use operator_runtime::{client, crd_wait, health};
use prometheus_client::registry::Registry;
use shared_api::names::HOOK_OPERATOR;

pub mod act;
pub mod config;
pub mod controller;
pub mod ledger;
pub mod measure;
pub mod metrics;
pub mod observe;
pub mod provider;
pub mod session;
pub mod template;

use config::Config;

/// The program: parses flags, runs until a signal, and says in one line why it could not.
#[must_use]
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// The program with these settings.
#[must_use]
pub fn start(config: Config) -> ExitCode {
    process::start(config.log_format, &config.log.clone(), run(config))
}

/// Runs the operator until a signal asks it to end.
pub async fn run(config: Config) -> Result<(), StartError> {
    let mut shutdown = Shutdown::on_signals().map_err(StartError::Signals)?;
    let mut registry = Registry::default();
    let meter = ApiMeter::default();
    meter.register(&mut registry);
    let metrics = metrics::Metrics::default();
    metrics.register(&mut registry);
    let elects = config.leader.leader_election;
    let fence = if elects { Fence::closed() } else { Fence::open() };
    let elections = LeaderMetrics::default();
    elections.register(&mut registry);
    let client = client::connect(&meter, config.api_timeout, &fence).await?;
    let unfenced = client::connect(&meter, config.api_timeout, &Fence::open()).await?;
    let events = Events::start(client.clone(), HOOK_OPERATOR, &mut registry);
    let providers = config.measuring.providers();
    let checks = [crd_wait::CHECK, observe::RUNS, observe::TEMPLATES];
    let health = Health::new(meter);
    let served = health::serve(config.listen, health.clone(), registry).await;
    let address = served.map_err(|source| StartError::Listen {
        address: config.listen,
        source,
    })?;
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "hook-operator started");

    let ledger = act::ApiLedger::new(client.clone(), events, config.api_concurrency, config.api_timeout);
    let ledger = Arc::new(ledger);
    let work = Box::pin(async {
        health.require(&checks);
        crd_wait::wait_for(&client, &["hookruns", "hooktemplates"], &health).await;
        let watches = observe::Watches::new(client.clone(), config.namespace.as_deref(), health.clone());
        let measurer = measure::Measurer {
            ledger: ledger.clone(),
            providers,
            metrics: metrics.clone(),
        };
        let runs = controller::Controller::new(measurer).drive(watches.runs());
        let templates = template::drive(watches.templates(), ledger.clone(), metrics.clone());
        tokio::join!(runs, templates);
    });
    // Ending drops every session: calls in flight are cancelled, and what is not recorded is measured again by
    // whoever takes over.
    let election = elects.then(|| {
        let namespace = config.namespace.as_deref();
        Election::new(
            unfenced,
            HOOK_OPERATOR,
            namespace,
            &config.leader,
            fence,
            elections,
            health.clone(),
        )
    });
    leader::work(election, work, &mut shutdown).await
}
