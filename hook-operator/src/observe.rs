//! The watches. Everything that this operator knows of the cluster comes through here.

use futures::Stream;
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::{Api, Client};
use operator_runtime::health::Health;
use operator_runtime::watch::{Observed, watch};
use shared_api::{HookRun, HookTemplate};

/// The check in `/readyz` that the HookRuns have been listed and are being watched.
pub const RUNS: &str = "hookruns-watch";
/// The check in `/readyz` that the HookTemplates have been listed and are being watched.
pub const TEMPLATES: &str = "hooktemplates-watch";

/// Makes the watches.
pub struct Watches {
    client: Client,
    namespace: Option<String>,
    health: Health,
}

impl Watches {
    /// Watches one namespace, or all.
    #[must_use]
    pub fn new(client: Client, namespace: Option<&str>, health: Health) -> Self {
        Self {
            client,
            namespace: namespace.map(str::to_owned),
            health,
        }
    }

    /// All HookRuns, then every change of them; never ends.
    pub fn runs(&self) -> impl Stream<Item = Observed<HookRun>> + Send + use<> {
        watch(self.api(), RUNS, self.health.clone())
    }

    /// All HookTemplates, then every change of them; never ends.
    pub fn templates(&self) -> impl Stream<Item = Observed<HookTemplate>> + Send + use<> {
        watch(self.api(), TEMPLATES, self.health.clone())
    }

    fn api<K>(&self) -> Api<DeserializeGuard<K>>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}
