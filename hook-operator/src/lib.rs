//! Turns HookTemplates into measured HookRuns.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | flags and environment |
//! | [`observe`] | watches of HookRuns and HookTemplates |
//! | [`controller`] | a session for every run without a verdict |
//! | `refusals` | what is recorded of runs that cannot be read |
//! | [`act`] | every write to the API server |
//! | [`template`] | the `Valid` condition of HookTemplates |
//! | [`metrics`] | what Prometheus is told |
//!
//! What a run means is decided in `hook-core`; here is what touches the world. A run's life is in `hook-session`, and the calls
//! that measure are in `hook-providers`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use hook_session::measure::Measurer;
use operator_runtime::crd_wait;
use operator_runtime::error::StartError;
use operator_runtime::process;
use operator_runtime::shell::{Settings, Shell};
use prometheus_client::registry::Registry;
use shared_api::names::HOOK_OPERATOR;

pub mod act;
pub mod config;
pub mod controller;
pub mod metrics;
pub mod observe;
mod refusals;
pub mod template;

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
    let telemetry = config.operator.telemetry(HOOK_OPERATOR, VERSION);
    process::start(&telemetry, run(config))
}

/// Runs the operator until a signal asks it to end.
pub async fn run(config: Config) -> Result<(), StartError> {
    let mut registry = Registry::default();
    let metrics = metrics::Metrics::new(config.operator.original_metrics);
    metrics.register(&mut registry);
    let settings = Settings {
        name: HOOK_OPERATOR,
        version: VERSION,
        operator: &config.operator,
        leader: &config.leader,
    };
    let shell = Shell::start(settings, registry).await?;
    let (client, health) = (shell.client.clone(), shell.health.clone());
    let providers = config.measuring.providers();
    let ledger = act::ApiLedger::new(client.clone(), shell.events.clone(), config.operator.calls());
    let ledger = Arc::new(ledger);
    // Ending drops every session: calls in flight are cancelled, and what is not recorded is measured again by
    // whoever takes over.
    let work = Box::pin(async {
        health.require(&[crd_wait::CHECK, observe::RUNS, observe::TEMPLATES]);
        crd_wait::wait_for(&client, &["hookruns", "hooktemplates"], &health).await;
        let watches = observe::Watches::new(client.clone(), config.operator.scope(), health.clone());
        let measurer = Measurer {
            ledger: ledger.clone(),
            providers,
            observer: Arc::new(metrics.clone()),
        };
        let compute = measurer.providers.compute().clone();
        let runs = controller::Controller::new(measurer, metrics.clone()).drive(watches.runs());
        let templates = template::drive(watches.templates(), ledger.clone(), metrics.clone(), compute);
        tokio::join!(runs, templates);
    });
    shell.work(work).await
}
