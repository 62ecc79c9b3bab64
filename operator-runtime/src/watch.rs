//! Watches: all objects of a kind, then every change of them, for ever.

use futures::{Stream, StreamExt};
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;

use crate::client::root_cause;
use crate::health::Health;

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

/// All objects that `api` lists, then every change of them; never ends. `check` in `/readyz` tells how it is.
pub fn watch<K>(
    api: Api<DeserializeGuard<K>>,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
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
