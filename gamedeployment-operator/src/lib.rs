//! Runs GameDeployments: pods leave only when their hook says so.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of workloads, pods, revisions, HookRuns, HookTemplates and nodes |
//! | [`run`] | the loop around the driver: what happens goes in, what is to be done comes out |
//! | [`act`] | every call to the API server |
//! | [`clock`] | the time |
//! | [`metrics`] | what Prometheus is told |
//!
//! What a GameDeployment means is decided in `gamedeployment-core`, and when and in which order things are done in
//! `gamedeployment-driver`; here is what touches the world.

use std::process::ExitCode;

use clap::Parser;
use operator_runtime::crd_wait;
use operator_runtime::process::{self, StartError};
use operator_runtime::shell::{Settings, Shell};
use prometheus_client::registry::Registry;
use shared_api::names::GAMEDEPLOYMENT_OPERATOR;

pub mod act;
pub mod clock;
pub mod config;
pub mod metrics;
pub mod observe;
pub mod run;

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
    let clock = clock::Clock::begin();
    let calls = config.operator.calls();
    let caller = act::Caller::new(
        client.clone(),
        calls,
        shell.events.clone(),
        metrics.clone(),
        clock,
    );
    // Ending drops the writes in flight: whoever takes over finds on the objects how far they have come.
    let work = Box::pin(async {
        health.require(&checks);
        crd_wait::wait_for(
            &client,
            &["gamedeployments", "hookruns", "hooktemplates"],
            &health,
        )
        .await;
        let news = observe::everything(&client, &config.operator.scope(), with_nodes, &health, clock);
        run::Loop::new(with_nodes, caller, clock, metrics, health.clone())
            .run(news)
            .await;
    });
    shell.work(work).await
}
