//! Measures HookRuns and validates HookTemplates.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of HookRuns and HookTemplates |
//! | [`controller`] | a session for every run without a verdict |
//! | `waiting` | runs that wait for memory |
//! | `metadata` | metadata of HookRuns that is used |
//! | `latest_tasks` | at most one task for each object |
//! | [`act`] | every write to the API server, except for Jobs and annotations |
//! | [`account`] | identity of hooks in the cluster |
//! | [`commands`] | commands in containers |
//! | [`executions`] | an execution for every ExecutionHook |
//! | [`jobs`] | Jobs of measurements |
//! | [`objects`] | objects that measurements read or annotate |
//! | `references` | keys of Secrets and ConfigMaps |
//! | [`template`] | the `Valid` condition of HookTemplates |
//! | `unreadable` | records which HookRuns and ExecutionHooks cannot be read |
//! | `recording` | retries of these records |
//! | [`metrics`] | Prometheus metrics |
//!
//! `hook-core` decides what a run means, `hook-session` runs its life, and `hook-providers` makes the calls
//! that measure. This crate does the remaining I/O.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use hook_driver::spec_budget::SpecLimits;
use hook_session::measure::Measurer;
use operator_runtime::clock;
use operator_runtime::crd_wait;
use operator_runtime::flags::OperatorArgs;
use operator_runtime::leader::LeaderArgs;
use operator_runtime::shell::{self, Operator, Shell};
use prometheus_client::registry::Registry;
use shared_api::names::HOOK_OPERATOR;

pub mod account;
pub mod act;
pub mod commands;
pub mod config;
pub mod controller;
pub mod executions;
pub mod jobs;
mod latest_tasks;
mod metadata;
pub mod metrics;
pub mod objects;
pub mod observe;
mod recording;
mod references;
pub mod template;
mod unreadable;
mod waiting;

use config::Config;
use metrics::Metrics;

/// Entry point: parses flags, runs until a signal, and reports a startup failure in one line.
pub fn main() -> ExitCode {
    start(Config::parse())
}

/// Runs the program with these settings.
pub fn start(config: Config) -> ExitCode {
    shell::start(config)
}

impl Operator for Config {
    const NAME: &'static str = HOOK_OPERATOR;
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
        let mut checks = vec![crd_wait::CHECK, observe::RUNS, observe::TEMPLATES];
        if self.execution_hooks {
            checks.extend(executions::CHECKS);
        }
        checks
    }

    /// Shutdown drops every session: calls in flight are cancelled, and the next leader repeats measurements
    /// that are not recorded.
    async fn work(self, shell: Shell, metrics: Metrics) {
        let Shell {
            client,
            events,
            health,
            heartbeats,
        } = shell;
        let backend = Arc::new(act::ApiBackend::new(
            client.clone(),
            events,
            self.operator.call_limiter(),
            self.operator.tenant_call_limiter(),
            self.optional_providers(),
        ));
        let resources = ["hookruns", "hooktemplates"];
        let providers = self.measuring.providers().with_clock(clock::elapsed);
        let executions = executions::drive(executions::Settings {
            client: client.clone(),
            providers: providers.clone(),
            scope: self.operator.scope(),
            health: health.clone(),
            heartbeats: heartbeats.clone(),
            limiter: self.operator.tenant_call_limiter(),
            backend: backend.clone(),
            metrics: metrics.executions.clone(),
            is_enabled: self.execution_hooks,
        });
        let watches = observe::Watches::new(client.clone(), self.operator.scope(), health.clone());
        let measurer = Measurer {
            backend: backend.clone(),
            providers,
            observer: Arc::new(metrics.clone()),
        };
        let compute = measurer.providers.compute().clone();
        let limits = SpecLimits::new(self.max_spec_bytes);
        let controller = controller::Controller::new(measurer, metrics.clone(), limits);
        let runs = controller.drive(watches.runs(), &heartbeats);
        let templates = template::drive(watches.templates(), &heartbeats, backend, metrics, compute);
        // HookRuns do not wait for the definitions of ExecutionHooks.
        let hooks = async {
            crd_wait::wait_for(&client, &resources, &health, crd_wait::CHECK).await;
            tokio::join!(runs, templates);
        };
        tokio::join!(hooks, executions);
    }
}
