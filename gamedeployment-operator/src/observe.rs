//! Watches, as events in the types of the core. Nothing else is listed; [`crate::act`] makes the direct
//! reads.

mod eviction;
mod evictions;
pub mod read;
mod stored_revision;
mod unreadable;

use std::future::ready;

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use gamedeployment_driver::watch_event::{Event, WatchEvent};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use operator_runtime::health::Health;
use operator_runtime::shard::Scope;
use operator_runtime::watch::{Observed, key_of, watch, watch_in};
use shared_api::parsed::{InvalidObject, Parsed};
use shared_api::unparsed::Unparsed;

use crate::clock::Clock;
pub use eviction::StoredEviction;
pub use stored_revision::StoredRevision;
pub use unreadable::UnreadableObjects;

/// Checks in `/readyz`: the kind has been listed and is being watched.
pub const CHECKS: [&str; 5] = [WORKLOADS, PODS, REVISIONS, RUNS, TEMPLATES];
/// Check for nodes, used only if they are watched.
pub const NODES: &str = "nodes-watch";
const WORKLOADS: &str = "gamedeployments-watch";
const PODS: &str = "pods-watch";
const REVISIONS: &str = "controllerrevisions-watch";
const RUNS: &str = "hookruns-watch";
const TEMPLATES: &str = "hooktemplates-watch";

/// Kinds that are watched only if the operator is configured to.
#[derive(Debug, Clone, Copy)]
pub struct OptionalWatches {
    /// Nodes.
    pub nodes: bool,
    /// Evictions of `lifecycle.k8s.io`.
    pub evictions: bool,
}

/// Converts a watch event. `read` returns `None` for objects that the driver does not need.
fn event<K, T>(
    observed: Observed<K>,
    read: impl Fn(Result<K, InvalidObject>) -> Option<T>,
) -> Option<Event<T>>
where
    K: Resource<DynamicType = ()>,
{
    let of = |object: Parsed<K>| {
        let key = key_of(object.meta());
        Some((key, read(object.0)?))
    };
    Some(match observed {
        watcher::Event::Init => Event::Init,
        watcher::Event::InitApply(object) => {
            let (key, value) = of(object)?;
            Event::InitApply(key, value)
        }
        watcher::Event::InitDone => Event::InitDone,
        watcher::Event::Apply(object) => {
            let (key, value) = of(object)?;
            Event::Apply(key, value)
        }
        watcher::Event::Delete(object) => {
            let metadata = object.meta();
            Event::Delete(key_of(metadata), metadata.uid.clone().unwrap_or_default())
        }
    })
}

/// Merges the watches of a scope into one stream that never ends. Nodes belong to every scope.
pub fn watch_all(
    client: &Client,
    scope: &Scope,
    optional: OptionalWatches,
    health: &Health,
    clock: Clock,
    unreadable: &UnreadableObjects,
) -> impl Stream<Item = WatchEvent> + Send + use<> {
    let mut all: SelectAll<BoxStream<'static, WatchEvent>> = SelectAll::new();
    let workloads = watch_in(client, scope, WORKLOADS, health.clone());
    let workloads = workloads.filter_map(|seen| ready(event(seen, |read| Some(read::workload(read)))));
    all.push(workloads.map(WatchEvent::Workload).boxed());
    let pods = watch_in(client, scope, PODS, health.clone());
    let reporter = unreadable.clone();
    let pods =
        pods.filter_map(move |seen| ready(event(seen, |read| Some(read::pod(&reporter.readable(read)?)))));
    all.push(pods.map(WatchEvent::Pod).boxed());
    let revisions = watch_in(client, scope, REVISIONS, health.clone());
    let reporter = unreadable.clone();
    let revisions = revisions
        .filter_map(move |seen| ready(event(seen, |read| read::revision(&reporter.readable(read)?))));
    all.push(revisions.map(WatchEvent::Revision).boxed());
    let runs = watch_in(client, scope, RUNS, health.clone());
    let runs = runs.filter_map(|seen| ready(event(seen, |read| Some(read::run(read)))));
    let watched = health.clone();
    let healthy = move || watched.passes_since(RUNS).map(|at| clock.elapsed_at(at));
    all.push(runs.map(move |event| WatchEvent::Run(event, healthy())).boxed());
    let templates = watch_in(client, scope, TEMPLATES, health.clone());
    let templates = templates.filter_map(|seen| ready(event(seen, |read| Some(read::template(read)))));
    all.push(templates.map(WatchEvent::Template).boxed());
    if optional.nodes {
        let api: Api<Unparsed<Node>> = Api::all(client.clone());
        let nodes = watch(api, NODES, health.clone());
        let reporter = unreadable.clone();
        let nodes = nodes.filter_map(move |seen| {
            let read = |read: Result<Node, InvalidObject>| {
                Some(read::node(
                    read.inspect_err(|invalid| reporter.report::<Node>(invalid)),
                ))
            };
            ready(event(seen, read))
        });
        all.push(nodes.map(WatchEvent::Node).boxed());
    }
    if optional.evictions {
        all.push(evictions::watch_evictions(client, scope, unreadable).boxed());
    }
    all
}
