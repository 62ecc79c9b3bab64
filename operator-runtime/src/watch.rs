//! Watches: all objects of a kind, then every change of them, for ever.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::core::{DeserializeGuard, NamespaceResourceScope, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use runtime_core::backoff::Backoff;
use serde::de::DeserializeOwned;

use crate::error::root_cause;
use crate::health::Health;
use crate::random::random;
use crate::shard::Scope;

/// An event about an object that may not be readable as its kind.
pub type Observed<K> = Event<DeserializeGuard<K>>;

/// Namespace and name.
pub type Key = (String, String);

/// The key of an object.
pub fn key_of(metadata: &ObjectMeta) -> Key {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// When a watch begins again after failures: a fifth of kube's own delays, which would leave an operator blind for up to a
/// minute.
struct Soon(Backoff);

impl Default for Soon {
    fn default() -> Self {
        Self(Backoff::new(Duration::from_millis(160), Duration::from_secs(6)))
    }
}

impl Iterator for Soon {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.0.fail();
        // Up to as much again by chance: not all watches of all operators come back at once.
        let percent = u32::try_from(random() % 101).unwrap_or_default();
        Some(delay + delay * percent / 100)
    }
}

impl kube::runtime::utils::Backoff for Soon {
    fn reset(&mut self) {
        self.0.reset();
    }
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
        .backoff(Soon::default())
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
                    health.interrupt(check, K::plural(&()), root_cause(&error));
                    None
                }
            };
            std::future::ready(event)
        })
}

/// The same of what is in a process's scope. What is of another shard comes as far as here, since the API server cannot
/// tell it apart, and nobody hears of it.
pub fn watch_in<K>(
    client: &Client,
    scope: &Scope,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let all = watch(scope.api(client), check, health);
    let scope = scope.clone();
    all.filter(move |event| std::future::ready(concerns(&scope, event)))
}

/// Whether an event is about something in this scope, or about all.
fn concerns<K: kube::Resource>(scope: &Scope, event: &Event<K>) -> bool {
    match event {
        Event::Init | Event::InitDone => true,
        Event::InitApply(object) | Event::Apply(object) | Event::Delete(object) => {
            scope.has(object.meta().namespace.as_deref().unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::runtime::watcher::Event;

    use super::concerns;
    use crate::shard::Scope;

    #[test]
    fn what_is_of_another_shard_is_not_heard_of() {
        let pod = |namespace: &str| {
            let mut pod = Pod::default();
            pod.metadata.namespace = Some(namespace.to_owned());
            pod
        };
        for (shard, here) in [("0/2", "games-c"), ("1/2", "games-a")] {
            let scope = Scope {
                namespace: None,
                shard: Some(shard.parse().unwrap()),
            };
            for namespace in ["games-c", "games-a"] {
                let about = [Event::InitApply, Event::Apply, Event::Delete];
                for event in about.map(|event| event(pod(namespace))) {
                    assert_eq!(concerns(&scope, &event), namespace == here, "{shard} {event:?}");
                }
            }
            assert!(concerns::<Pod>(&scope, &Event::Init) && concerns::<Pod>(&scope, &Event::InitDone));
        }
    }
}
