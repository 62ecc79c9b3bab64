//! Runs GameDeployments: a pod is deleted or updated only after its hook succeeded.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of workloads, pods, revisions, HookRuns, HookTemplates, nodes and Evictions |
//! | [`run`] | the loop around the driver: feeds inputs and handles outputs |
//! | [`act`] | every call to the API server |
//! | [`clock`] | wall-clock, elapsed and monotonic time |
//! | [`metrics`] | Prometheus metrics |
//!
//! `gamedeployment-core` decides what a GameDeployment means, and `gamedeployment-driver` decides the timing
//! and order of the writes. This crate does the I/O.

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
use observe::UnreadableObjects;

/// Entry point: parses flags, runs until a signal, and reports a startup failure in one line.
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// Runs the program with these settings.
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

    fn checks(&self) -> Vec<&'static str> {
        let mut checks = vec![crd_wait::CHECK];
        checks.extend(observe::CHECKS);
        checks.extend((!self.ignore_nodes).then_some(observe::NODES));
        checks
    }

    /// Shutdown drops the writes in flight: the next leader reads their progress from the objects.
    async fn work(self, shell: Shell, metrics: Metrics) {
        let Shell {
            client,
            events,
            health,
            heartbeats,
        } = shell;
        let with_nodes = !self.ignore_nodes;
        crd_wait::wait_for(
            &client,
            &["gamedeployments", "hookruns", "hooktemplates"],
            &health,
            crd_wait::CHECK,
        )
        .await;
        let clock = clock::Clock::begin();
        let calls = self.operator.call_limiter();
        let unreadable = UnreadableObjects::new(events.clone(), metrics.clone());
        let caller = act::Caller::new(client.clone(), calls, events, metrics.clone(), clock);
        let scope = self.operator.scope();
        let optional = observe::OptionalWatches {
            nodes: with_nodes,
            evictions: self.eviction_responder,
        };
        let events = observe::watch_all(&client, &scope, optional, &health, clock, &unreadable);
        let heartbeat = heartbeats.of("driver");
        run::Loop::new(optional, caller, clock, metrics, health, heartbeat)
            .run(events)
            .await;
    }
}
