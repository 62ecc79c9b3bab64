//! The number of ready pods, as seen by a watch of its own.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use test_kit::wait::within;
use tokio::task::JoinHandle;

use super::Outcome;
use super::harness::PATIENCE;

/// Minimum number of ready pods since all of them were ready.
pub(super) struct ReadyPods {
    least: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl ReadyPods {
    /// Returns once this many pods are ready, and counts them from then on.
    pub(super) async fn watch(pods: Api<Pod>, all: usize) -> Outcome<Self> {
        let now = Arc::new(AtomicUsize::new(0));
        let least = Arc::new(AtomicUsize::new(usize::MAX));
        let (shown, lowest) = (Arc::clone(&now), Arc::clone(&least));
        let task = tokio::spawn(async move {
            let mut ready: HashSet<String> = HashSet::new();
            let mut complete = false;
            let mut events = std::pin::pin!(watcher(pods, watcher::Config::default()));
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) if is_ready(&pod) => {
                        ready.insert(pod.name_any());
                    }
                    Ok(Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod)) => {
                        ready.remove(&pod.name_any());
                    }
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
                shown.store(ready.len(), Ordering::Relaxed);
                complete |= ready.len() == all;
                if complete {
                    lowest.fetch_min(ready.len(), Ordering::Relaxed);
                }
            }
        });
        let watched = Self { least, task };
        within(PATIENCE, || async {
            let now = now.load(Ordering::Relaxed);
            if now == all {
                Ok(())
            } else {
                Err(format!("{now} of {all} pods are ready"))
            }
        })
        .await?;
        Ok(watched)
    }

    pub(super) fn least(&self) -> usize {
        self.least.load(Ordering::Relaxed)
    }
}

impl Drop for ReadyPods {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}
