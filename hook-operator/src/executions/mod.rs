//! An execution for every ExecutionHook.
//!
//! | module | job |
//! | --- | --- |
//! | `controller` | keeps the executions in sync with the watch |
//! | `runner` | carries out the outputs of one execution |
//! | `calls` | calls of the API server and of pods |
//!
//! `hook-core` and `hook-driver` decide; this module does the I/O.

use std::sync::Arc;

use hook_providers::Providers;
use kube::Client;
use operator_runtime::calls::CallLimiter;
use operator_runtime::crd_wait;
use operator_runtime::health::Health;
use operator_runtime::heartbeat::Heartbeats;
use operator_runtime::shard::Scope;

use crate::act::ApiBackend;
use crate::metrics::ExecutionMetrics;
use crate::observe::{EXECUTIONS, Watches};

mod calls;
mod controller;
mod runner;

use calls::Calls;
use controller::Controller;

/// Check in `/readyz`, with `--execution-hooks`: the definitions are served.
const DEFINITIONS: &str = "execution-crds";
/// Checks that pass once execution hooks are watched.
pub const CHECKS: [&str; 2] = [DEFINITIONS, EXECUTIONS];
const RESOURCES: [&str; 2] = ["executionhooks", "hookactions"];

/// Everything that executions need.
pub struct Settings {
    /// Client of the operator.
    pub client: Client,
    /// Calls to pods.
    pub providers: Providers,
    /// Part of the cluster.
    pub scope: Scope,
    /// Health of the operator.
    pub health: Health,
    /// Heartbeats of the operator.
    pub heartbeats: Heartbeats,
    /// Limiter of calls as the accounts of namespaces.
    pub limiter: CallLimiter,
    /// Backend.
    pub backend: Arc<ApiBackend>,
    /// Metrics.
    pub metrics: ExecutionMetrics,
    /// Whether ExecutionHooks are carried out. If not, they end before their first try, and say why.
    pub is_enabled: bool,
}

/// Executes the hooks of the scope; never ends.
pub async fn drive(settings: Settings) {
    let Settings {
        client,
        providers,
        scope,
        mut health,
        heartbeats,
        limiter,
        backend,
        metrics,
        is_enabled,
    } = settings;
    if is_enabled {
        crd_wait::wait_for(&client, &RESOURCES, &health, DEFINITIONS).await;
    } else {
        // An operator that carries out none is ready without their definitions and the rights on them.
        crd_wait::wait_quietly_for(&client, &RESOURCES).await;
        health = health.detached();
    }
    let watches = Watches::new(client.clone(), scope, health);
    let calls = Arc::new(Calls::new(
        client, providers, limiter, backend, metrics, is_enabled,
    ));
    Controller::new(calls)
        .drive(watches.executions(), &heartbeats)
        .await;
}
