//! The watches. Everything that this operator knows of the cluster comes through here.

use futures::{Stream, StreamExt};
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use operator_runtime::client::root_cause;
use operator_runtime::health::Health;
use serde::de::DeserializeOwned;
use shared_api::{HookRun, HookTemplate};

/// The check in `/readyz` that the HookRuns have been listed and are being watched.
pub const RUNS: &str = "hookruns-watch";
/// The check in `/readyz` that the HookTemplates have been listed and are being watched.
pub const TEMPLATES: &str = "hooktemplates-watch";

/// An event about an object that may not be readable as its kind.
pub type Observed<K> = Event<DeserializeGuard<K>>;

/// Namespace and name.
pub type Key = (String, String);

/// The key of an object.
#[must_use]
pub fn key_of(metadata: &ObjectMeta) -> Key {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

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
        self.watch(RUNS)
    }

    /// All HookTemplates, then every change of them; never ends.
    pub fn templates(&self) -> impl Stream<Item = Observed<HookTemplate>> + Send + use<> {
        self.watch(TEMPLATES)
    }

    fn watch<K>(&self, check: &'static str) -> impl Stream<Item = Observed<K>> + Send + use<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let api: Api<DeserializeGuard<K>> = match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let health = self.health.clone();
        watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear())
            .filter_map(move |observed| {
                let event = match observed {
                    Ok(event) => {
                        // A list in progress is not a state to rely on; anything else shows that the watch lives.
                        if !matches!(event, Event::Init | Event::InitApply(_)) {
                            health.pass(check);
                        }
                        Some(event)
                    }
                    Err(error) => {
                        tracing::warn!(check, error = root_cause(&error), "the watch was interrupted");
                        health.fail(check, root_cause(&error));
                        None
                    }
                };
                std::future::ready(event)
            })
    }
}
