//! Watches: stream all objects of a kind, then every change of them, without end.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::core::{NamespaceResourceScope, ObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use runtime_core::backoff::Backoff;
use serde::de::DeserializeOwned;
use shared_api::parsed::Parsed;

use crate::error::root_cause;
use crate::health::Health;
use crate::random::random;
use crate::shard::Scope;

/// Objects of one answer of a list; the default of client-go.
const PAGE: u32 = 500;

/// Event about an object that may not parse as its kind.
pub type Observed<K> = Event<Parsed<K>>;

/// Kind that can be watched.
pub trait Watched:
    kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static
{
}

impl<K> Watched for K where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static
{
}

/// Namespace and name.
pub type NamespacedName = (String, String);

/// Returns the namespace and name of an object.
pub fn key_of(metadata: &ObjectMeta) -> NamespacedName {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// Back-off between attempts to restart a watch: a fifth of kube's own delays, which would leave an operator
/// blind for up to a minute.
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
        // Add a jitter of up to 100 %, so that the watches of all operators do not come back at once.
        let percent = u32::try_from(random() % 101).unwrap_or_default();
        Some(delay + delay * percent / 100)
    }
}

impl kube::runtime::utils::Backoff for Soon {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Streams all objects that `api` lists, then every change; never ends. The check `check` in `/readyz`
/// reports its state.
pub fn watch<K>(
    api: Api<Parsed<K>>,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched,
{
    watch_with(api, watcher::Config::default(), check, health)
}

fn watch_with<K>(
    api: Api<Parsed<K>>,
    config: watcher::Config,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched,
{
    watcher(api, config)
        .backoff(Soon::default())
        .modify(|object| object.managed_fields_mut().clear())
        .filter_map(move |observed| {
            let event = match observed {
                Ok(event) => {
                    // A list in progress is not reliable yet; any other event shows that the watch works.
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

/// Streams all objects with a label, then every change; never ends. Says only in the log if it is interrupted: for
/// watches without which the operator works.
pub fn watch_selected<K>(
    api: Api<Parsed<K>>,
    label: &str,
    what: &'static str,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched,
{
    watcher(api, watcher::Config::default().labels(label))
        .backoff(Soon::default())
        .modify(|object| object.managed_fields_mut().clear())
        .filter_map(move |observed| {
            let event = observed.inspect_err(|error| {
                tracing::warn!(what, error = root_cause(error), "the watch was interrupted");
            });
            std::future::ready(event.ok())
        })
}

/// Like [`watch()`], limited to the process's scope. Objects of other shards are dropped here, because the
/// API server cannot filter them.
pub fn watch_in<K>(
    client: &Client,
    scope: &Scope,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched + kube::Resource<Scope = NamespaceResourceScope>,
{
    watch_in_pages(client, scope, PAGE, check, health)
}

/// Like [`watch_in()`], with lists of this many objects at a time: for kinds whose objects are large.
pub fn watch_in_pages<K>(
    client: &Client,
    scope: &Scope,
    page: u32,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched + kube::Resource<Scope = NamespaceResourceScope>,
{
    let config = watcher::Config::default().page_size(page);
    let all = watch_with(scope.api(client), config, check, health);
    let scope = scope.clone();
    all.filter(move |event| std::future::ready(concerns(&scope, event)))
}

/// Whether an event concerns this scope.
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
