//! Records the visible history of objects: every state in the API server from a moment on, in order.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Resource, ResourceExt};
use operator_tests::Fleet;
use serde::de::DeserializeOwned;

/// States of all objects of a kind in a namespace, and their deletions.
pub(super) struct Seen<K> {
    api: Api<K>,
    events: Arc<Mutex<Vec<WatchEvent<K>>>>,
}

impl<K> Seen<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Starts recording now.
    pub(super) async fn of(api: Api<K>) -> Self {
        let list = api.list(&ListParams::default()).await.unwrap();
        let version = list.metadata.resource_version.unwrap();
        let listed = list.items.into_iter().map(WatchEvent::Added).collect();
        let events: Arc<Mutex<Vec<WatchEvent<K>>>> = Arc::new(Mutex::new(listed));
        let target = Arc::clone(&events);
        let watch = api.watch(&WatchParams::default().timeout(290), &version).await;
        let mut watch = watch.unwrap().boxed();
        tokio::spawn(async move {
            while let Ok(Some(event)) = watch.try_next().await {
                target.lock().unwrap().push(event);
            }
        });
        Self { api, events }
    }

    /// Returns all events, once they include the API server's current state.
    pub(super) async fn up_to_now(&self) -> Vec<WatchEvent<K>> {
        let now = self.api.list(&ListParams::default()).await.unwrap();
        let version = |object: &K| object.resource_version();
        let now: BTreeMap<String, _> = now.iter().map(|one| (one.name_any(), version(one))).collect();
        test_kit::eventually(operator_tests::SOON, || async {
            let events = self.events.lock().unwrap().clone();
            let mut shown = BTreeMap::new();
            for event in &events {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        shown.insert(object.name_any(), version(object));
                    }
                    WatchEvent::Deleted(object) => {
                        shown.remove(&object.name_any());
                    }
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                }
            }
            if shown == now { Ok(events) } else { Err(shown) }
        })
        .await
    }
}

/// Watches a fleet's pods for [`fewest_ready`].
pub(super) async fn pods(fleet: &Fleet<'_>) -> Seen<Pod> {
    Seen::of(fleet.pods()).await
}

/// Returns the minimum number of concurrently ready pods, after `launched` of them were ready. A terminating
/// pod does not count.
pub(super) async fn fewest_ready(pods: &Seen<Pod>, launched: usize) -> usize {
    let (mut ready, mut fewest) = (BTreeMap::new(), None);
    for event in pods.up_to_now().await {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                ready.insert(pod.name_any(), is_ready(&pod))
            }
            WatchEvent::Deleted(pod) => ready.insert(pod.name_any(), false),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
        };
        let count = ready.values().filter(|ready| **ready).count();
        if fewest.is_some() || count >= launched {
            fewest = Some(fewest.map_or(count, |fewest: usize| fewest.min(count)));
        }
    }
    fewest.unwrap()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let said = { conditions }.any(|one| one.type_ == "Ready" && one.status == "True");
    said && pod.metadata.deletion_timestamp.is_none()
}
