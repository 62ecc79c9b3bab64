//! Follows the pods of the namespace.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::JoinSet;

use super::fleet::Fleet;
use super::worker::Worker;

/// Follows the pods forever, with a task for each. Dropping the future ends all tasks.
pub(super) async fn follow(fleet: Arc<Fleet>) {
    let mut workers = JoinSet::new();
    let mut events = Box::pin(watcher(fleet.pods(), watcher::Config::default()));
    let mut unlisted = HashSet::new();
    let see = |pod: Pod, workers: &mut JoinSet<()>| {
        if let Some(record) = fleet.saw(pod) {
            workers.spawn(Worker::new(Arc::clone(&fleet), record).live());
        }
    };
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some(_) = workers.join_next() => continue,
        };
        match event {
            Some(Ok(Event::Init)) => unlisted = fleet.known().into_iter().collect(),
            Some(Ok(Event::InitApply(pod))) => {
                unlisted.remove(pod.metadata.uid.as_deref().unwrap_or_default());
                see(pod, &mut workers);
            }
            Some(Ok(Event::InitDone)) => unlisted.drain().for_each(|uid| fleet.lost(&uid)),
            Some(Ok(Event::Apply(pod))) => see(pod, &mut workers),
            Some(Ok(Event::Delete(pod))) => fleet.lost(pod.metadata.uid.as_deref().unwrap_or_default()),
            // The API server is unreachable; the stream restarts by itself.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            None => return,
        }
    }
}
