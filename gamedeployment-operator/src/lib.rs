//! Runs GameDeployments: pods leave only when their hook says so.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of workloads, pods, revisions, HookRuns, HookTemplates and nodes |
//! | [`store`] | objects of one kind, by the watch and by own writes |
//! | [`index`] | what is known, and which workloads a piece of news is about |
//! | [`controller`] | a decision for every workload that news is about |
//! | [`act`] | every write to the API server |
//! | [`expectations`] | writes not seen yet: read directly after a deadline |
//! | [`metrics`] | what Prometheus is told |
//!
//! What a GameDeployment means is decided in `gamedeployment-core`; here is what touches the world.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use operator_runtime::calls::Calls;
use operator_runtime::client::ApiMeter;
use operator_runtime::events::Events;
use operator_runtime::health::Health;
use operator_runtime::leader::{self, Election, Fence, LeaderMetrics};
use operator_runtime::process::{self, StartError};
use operator_runtime::shutdown::Shutdown;
use operator_runtime::{client, crd_wait, health};
use prometheus_client::registry::Registry;
use shared_api::names::GAMEDEPLOYMENT_OPERATOR;

pub mod act;
pub mod config;
pub mod controller;
pub mod expectations;
pub mod index;
pub mod metrics;
pub mod observe;
pub mod store;

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
    let events = Events::start(client.clone(), GAMEDEPLOYMENT_OPERATOR, &mut registry);
    let with_nodes = !config.ignore_nodes;
    let mut checks = vec![crd_wait::CHECK];
    checks.extend(observe::CHECKS);
    checks.extend(with_nodes.then_some(observe::NODES));
    let health = Health::new(meter);
    let served = health::serve(config.listen, health.clone(), registry).await;
    let address = served.map_err(|source| StartError::Listen {
        address: config.listen,
        source,
    })?;
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "gamedeployment-operator started");

    let calls = || Calls::new(config.api_concurrency, config.api_timeout);
    let hands = act::Hands::new(client.clone(), calls(), events, metrics.clone());
    let work = Box::pin(async {
        health.require(&checks);
        crd_wait::wait_for(
            &client,
            &["gamedeployments", "hookruns", "hooktemplates"],
            &health,
        )
        .await;
        let news = observe::everything(&client, config.namespace.as_deref(), with_nodes, &health);
        let controller =
            controller::Controller::new(client.clone(), Arc::new(calls()), hands, metrics, with_nodes);
        controller.drive(news).await;
    });
    // Ending drops the writes in flight: whoever takes over finds on the objects how far they have come.
    let election = elects.then(|| {
        let namespace = config.namespace.as_deref();
        Election::new(
            unfenced,
            GAMEDEPLOYMENT_OPERATOR,
            namespace,
            &config.leader,
            fence,
            elections,
            health.clone(),
        )
    });
    leader::work(election, work, &mut shutdown).await
}
