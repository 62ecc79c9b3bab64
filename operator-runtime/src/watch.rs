//! Watches: stream all objects of a kind, then every change of them, without end.

use futures::{Stream, StreamExt};
use kube::core::{NamespaceResourceScope, ObjectMeta};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use shared_api::parsed::Parsed;
use shared_api::unparsed::Unparsed;

use crate::error::root_cause;
use crate::health::Health;
use crate::paged_watch::watch_pages;
use crate::shard::Scope;

/// Time after which the API server ends a watch, and another one begins where it ended. If the end is 5 s late, the
/// connection counts as dead: nobody reports it when a peer vanishes, or a firewall forgets the connection.
pub const WATCH_SECONDS: u32 = 60;

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

/// Streams all objects that `api` lists, then every change; never ends. The check `check` in `/readyz`
/// reports its state.
pub fn watch<K>(
    api: Api<Unparsed<K>>,
    check: &'static str,
    health: Health,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched,
{
    watch_pages(api, None).filter_map(move |observed| {
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
    api: Api<Unparsed<K>>,
    label: &str,
    what: &'static str,
) -> impl Stream<Item = Observed<K>> + Send + use<K>
where
    K: Watched,
{
    watch_pages(api, Some(label)).filter_map(move |observed| {
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
    let all = watch(scope.api(client), check, health);
    let scope = scope.clone();
    all.filter(move |event| std::future::ready(concerns(&scope, event)))
}

/// Whether an event concerns this scope.
pub fn concerns<K: kube::Resource>(scope: &Scope, event: &Event<K>) -> bool {
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
