//! Watches of HookRuns, HookTemplates and ExecutionHooks. They drive all work of the operator.

use futures::Stream;
use kube::Client;
use operator_runtime::health::Health;
use operator_runtime::shard::Scope;
use operator_runtime::watch::{Observed, watch_in};
use shared_api::{ExecutionHook, HookRun, HookTemplate};

/// Check in `/readyz`: HookRuns have been listed and are being watched.
pub const RUNS: &str = "hookruns-watch";
/// Check in `/readyz`: HookTemplates have been listed and are being watched.
pub const TEMPLATES: &str = "hooktemplates-watch";
/// Check in `/readyz`, with `--execution-hooks`: ExecutionHooks have been listed and are being watched.
pub const EXECUTIONS: &str = "executionhooks-watch";

/// Creates the watches.
pub struct Watches {
    client: Client,
    scope: Scope,
    health: Health,
}

impl Watches {
    /// Creates the watches of a scope.
    pub fn new(client: Client, scope: Scope, health: Health) -> Self {
        Self {
            client,
            scope,
            health,
        }
    }

    /// Streams all HookRuns, then every change; never ends.
    pub fn runs(&self) -> impl Stream<Item = Observed<HookRun>> + Send + use<> {
        watch_in(&self.client, &self.scope, RUNS, self.health.clone())
    }

    /// Streams all HookTemplates, then every change; never ends.
    pub fn templates(&self) -> impl Stream<Item = Observed<HookTemplate>> + Send + use<> {
        watch_in(&self.client, &self.scope, TEMPLATES, self.health.clone())
    }

    /// Streams all ExecutionHooks, then every change; never ends.
    pub fn executions(&self) -> impl Stream<Item = Observed<ExecutionHook>> + Send + use<> {
        watch_in(&self.client, &self.scope, EXECUTIONS, self.health.clone())
    }
}
