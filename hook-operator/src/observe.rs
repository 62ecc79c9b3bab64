//! The watches. Everything that this operator knows of the cluster comes through here.

use futures::Stream;
use kube::Client;
use operator_runtime::health::Health;
use operator_runtime::shard::Scope;
use operator_runtime::watch::{Observed, watch_in};
use shared_api::{HookRun, HookTemplate};

/// The check in `/readyz` that the HookRuns have been listed and are being watched.
pub const RUNS: &str = "hookruns-watch";
/// The check in `/readyz` that the HookTemplates have been listed and are being watched.
pub const TEMPLATES: &str = "hooktemplates-watch";

/// Makes the watches.
pub struct Watches {
    client: Client,
    scope: Scope,
    health: Health,
}

impl Watches {
    /// Watches what is in a scope.
    pub fn new(client: Client, scope: Scope, health: Health) -> Self {
        Self {
            client,
            scope,
            health,
        }
    }

    /// All HookRuns, then every change of them; never ends.
    pub fn runs(&self) -> impl Stream<Item = Observed<HookRun>> + Send + use<> {
        watch_in(&self.client, &self.scope, RUNS, self.health.clone())
    }

    /// All HookTemplates, then every change of them; never ends.
    pub fn templates(&self) -> impl Stream<Item = Observed<HookTemplate>> + Send + use<> {
        watch_in(&self.client, &self.scope, TEMPLATES, self.health.clone())
    }
}
