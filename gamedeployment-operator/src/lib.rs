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
use operator_runtime::crd_wait;
use operator_runtime::process::{self, StartError};
use operator_runtime::shell::{Settings, Shell};
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

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The program: parses flags, runs until a signal, and says in one line why it could not.
#[must_use]
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// The program with these settings.
#[must_use]
pub fn start(config: Config) -> ExitCode {
    let telemetry = config.operator.telemetry(GAMEDEPLOYMENT_OPERATOR, VERSION);
    process::start(&telemetry, run(config))
}

/// Runs the operator until a signal asks it to end.
pub async fn run(config: Config) -> Result<(), StartError> {
    let mut registry = Registry::default();
    let metrics = metrics::Metrics::new(config.operator.original_metrics);
    metrics.register(&mut registry);
    let settings = Settings {
        name: GAMEDEPLOYMENT_OPERATOR,
        version: VERSION,
        operator: &config.operator,
        leader: &config.leader,
    };
    let shell = Shell::start(settings, registry).await?;
    let (client, health) = (shell.client.clone(), shell.health.clone());
    let with_nodes = !config.ignore_nodes;
    let mut checks = vec![crd_wait::CHECK];
    checks.extend(observe::CHECKS);
    checks.extend(with_nodes.then_some(observe::NODES));
    let calls = || config.operator.calls();
    let hands = act::Hands::new(client.clone(), calls(), shell.events.clone(), metrics.clone());
    // Ending drops the writes in flight: whoever takes over finds on the objects how far they have come.
    let work = Box::pin(async {
        health.require(&checks);
        crd_wait::wait_for(
            &client,
            &["gamedeployments", "hookruns", "hooktemplates"],
            &health,
        )
        .await;
        let news = observe::everything(&client, &config.operator.scope(), with_nodes, &health);
        let controller = controller::Controller::new(
            client.clone(),
            Arc::new(calls()),
            hands,
            metrics,
            health.clone(),
            with_nodes,
        );
        controller.drive(news).await;
    });
    shell.work(work).await
}
