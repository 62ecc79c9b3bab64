//! Live views of objects: self-healing watches, and the newest state that they delivered.

use std::hash::Hash;

use futures::future::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, Lookup, Store};
use kube::runtime::watcher::{self, watcher};
use shared_api::parsed::Parsed;
use shared_api::{GameDeployment, HookRun};

use super::failure::{Failure, RequestInfo, root_cause};
use super::fetch::{Kind, ListResult, Snapshot, UnreadableObject, selector_of};
use super::flags::ClusterConnection;

/// Event of a watch.
#[derive(Debug)]
pub(crate) enum News {
    /// Something may have changed.
    Changed,
    /// The cluster is not responding; the watch retries.
    Trouble(String),
    /// The watch cannot continue.
    End(Failure),
}

type Events = BoxStream<'static, News>;

/// Live view of a workload and everything that belongs to it.
pub(crate) struct Live {
    name: String,
    flags: String,
    events: SelectAll<Events>,
    games: Store<Parsed<GameDeployment>>,
    pods: Store<Parsed<Pod>>,
    runs: Store<Parsed<HookRun>>,
    revisions: Store<Parsed<ControllerRevision>>,
}

impl Live {
    /// Starts watching a workload, after checking that it exists and can be parsed.
    pub(crate) async fn of(cluster: &ClusterConnection, name: &str) -> Result<Self, Failure> {
        let snapshot = cluster.snapshot(name).await?;
        let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let selected = watcher::Config::default().labels_from(&selector_of(&snapshot.game));
        let (games, game_events) = watch(cluster, false, one);
        let (pods, pod_events) = watch(cluster, false, selected);
        let (runs, run_events) = watch(cluster, false, watcher::Config::default());
        let (revisions, revision_events) = watch(cluster, false, watcher::Config::default());
        Ok(Self {
            name: name.to_owned(),
            flags: cluster.flags.clone(),
            events: futures::stream::select_all([game_events, pod_events, run_events, revision_events]),
            games,
            pods,
            runs,
            revisions,
        })
    }

    /// Waits for the next event.
    pub(crate) async fn news(&mut self) -> News {
        next(&mut self.events).await
    }

    /// Returns the newest state: `None` until all watches are ready, an error if the workload was deleted or
    /// cannot be parsed.
    pub(crate) fn snapshot(&self) -> Option<Result<Snapshot, Failure>> {
        let known = is_ready(&self.games)
            && is_ready(&self.pods)
            && is_ready(&self.runs)
            && is_ready(&self.revisions);
        known.then(|| {
            let ListResult { objects, unreadable } = ListResult::of(state(&self.games));
            let Some(game) = objects.into_iter().next() else {
                return Err(match unreadable.into_iter().next() {
                    Some(UnreadableObject { name, error, .. }) => Failure::Other(format!(
                        "GameDeployment {name} cannot be parsed: {error}; fix the field with kubectl edit"
                    )),
                    None => Failure::NotFound(format!("GameDeployment {} no longer exists", self.name)),
                });
            };
            let objects = |pods, runs, revisions| Snapshot::of(game, pods, runs, revisions, &self.flags);
            Ok(objects(
                ListResult::of(state(&self.pods)).objects,
                ListResult::of(state(&self.runs)),
                ListResult::of(state(&self.revisions)).objects,
            ))
        })
    }
}

/// Live view of all objects of a kind.
pub(crate) struct LiveList<K: Kind> {
    events: SelectAll<Events>,
    objects: Store<Parsed<K>>,
}

impl<K: Kind> LiveList<K>
where
    Parsed<K>: Lookup<DynamicType = ()>,
{
    /// Starts watching all objects, or only the one with this name.
    pub(crate) async fn of(
        cluster: &ClusterConnection,
        everywhere: bool,
        name: Option<&str>,
    ) -> Result<Self, Failure> {
        let _: ListResult<K> = cluster.list(everywhere, &ListParams::default().limit(1)).await?;
        let all = watcher::Config::default();
        let config = name.map_or(all.clone(), |name| all.fields(&format!("metadata.name={name}")));
        let (objects, events) = watch(cluster, everywhere, config);
        Ok(Self {
            events: futures::stream::select_all([events]),
            objects,
        })
    }

    /// Waits for the next event.
    pub(crate) async fn news(&mut self) -> News {
        next(&mut self.events).await
    }

    /// Waits until the watch is ready. No later change is missed.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        while !is_ready(&self.objects) {
            match self.news().await {
                News::Changed => {}
                News::Trouble(words) => return Err(Failure::Other(words)),
                News::End(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Returns the newest state; `None` until the watch is ready.
    pub(crate) fn listed(&self) -> Option<ListResult<K>> {
        is_ready(&self.objects).then(|| ListResult::of(state(&self.objects)))
    }
}

async fn next(events: &mut SelectAll<Events>) -> News {
    match events.next().await {
        Some(news) => news,
        None => News::End(Failure::Other(
            "the watch has ended; run the command again".to_owned(),
        )),
    }
}

fn watch<K: Kind>(
    cluster: &ClusterConnection,
    everywhere: bool,
    config: watcher::Config,
) -> (Store<Parsed<K>>, Events)
where
    Parsed<K>: Lookup<DynamicType = ()>,
{
    let api: Api<Parsed<K>> = cluster.parsed(everywhere);
    let (store, writer) = reflector::store();
    let namespace = (!everywhere).then(|| cluster.namespace.clone());
    let events = watcher(api, config).default_backoff().reflect(writer);
    let events = events.map(move |event| {
        let request = RequestInfo {
            verb: "watch",
            resource: K::RESOURCE,
            name: None,
            namespace: namespace.as_deref(),
        };
        event.map_or_else(|error| judge(&error, &request), |_| News::Changed)
    });
    (store, events.boxed())
}

/// Classifies a watch error: a missing permission is final, all other errors are retried.
fn judge(error: &watcher::Error, request: &RequestInfo<'_>) -> News {
    let failed = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => request.failed(error),
        watcher::Error::WatchError(status) => request.refused(status),
        watcher::Error::NoResourceVersion => Failure::Other(root_cause(error)),
    };
    match failed {
        Failure::Forbidden(_) => News::End(failed),
        other => News::Trouble(other.to_string()),
    }
}

fn is_ready<K>(store: &Store<K>) -> bool
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    store.wait_until_ready().now_or_never().is_some()
}

fn state<K>(store: &Store<Parsed<K>>) -> Vec<Parsed<K>>
where
    K: Clone + 'static,
    Parsed<K>: Lookup<DynamicType = ()>,
{
    let objects = store.state();
    objects.iter().map(|object| Parsed::clone(object)).collect()
}

/// Waits for Ctrl-C or a termination signal.
pub(crate) async fn interrupted() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(_) => drop(interrupt.await),
        }
    }
    #[cfg(not(unix))]
    drop(interrupt.await);
}
