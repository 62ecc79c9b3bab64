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
use operator_runtime::flags::OperatorArgs;
use operator_runtime::leader::LeaderArgs;
use operator_runtime::shell::{self, Operator, Shell};
use prometheus_client::registry::Registry;
use shared_api::names::GAMEDEPLOYMENT_OPERATOR;

pub mod act;
pub mod clock;
pub mod config;
pub mod metrics;
pub mod observe;
pub mod run;

use config::Config;
use metrics::Metrics;

/// The program: parses flags, runs until a signal, and says in one line why it could not.
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// The program with these settings.
pub fn start(config: Config) -> ExitCode {
    shell::start(config)
}

impl Operator for Config {
    const NAME: &'static str = GAMEDEPLOYMENT_OPERATOR;
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Metrics = Metrics;

    fn operator(&self) -> &OperatorArgs {
        &self.operator
    }

    fn leader(&self) -> &LeaderArgs {
        &self.leader
    }

    fn metrics(&self, registry: &mut Registry) -> Metrics {
        let metrics = Metrics::new(self.operator.original_metrics);
        metrics.register(registry);
        metrics
    }

    /// Ending drops the writes in flight: whoever takes over finds on the objects how far they have come.
    async fn work(self, shell: Shell, metrics: Metrics) {
        let Shell {
            client,
            events,
            health,
        } = shell;
        let with_nodes = !self.ignore_nodes;
        let mut checks = vec![crd_wait::CHECK];
        checks.extend(observe::CHECKS);
        checks.extend(with_nodes.then_some(observe::NODES));
        health.require(&checks);
        crd_wait::wait_for(
            &client,
            &["gamedeployments", "hookruns", "hooktemplates"],
            &health,
        )
        .await;
        let clock = clock::Clock::begin();
        let calls = self.operator.calls();
        let caller = act::Caller::new(client.clone(), calls, events, metrics.clone(), clock);
        let news = observe::everything(&client, &self.operator.scope(), with_nodes, &health, clock);
        run::Loop::new(with_nodes, caller, clock, metrics, health)
            .run(news)
            .await;
    }
}
