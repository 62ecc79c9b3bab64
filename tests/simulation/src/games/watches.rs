//! Watches of one process, as input for the driver.

use std::rc::Rc;
use std::time::Duration;

use gamedeployment_driver::watch_event::{Event, OwnedRevision, Template, WatchEvent, Workload};

use crate::objects::{
    EvictionObject, NodeObject, Object, PodObject, RevisionObject, RunObject, TemplateObject, WorkloadObject,
    key,
};
use crate::server::Server;
use crate::server::table::{Table, Watch, WatchEvent as TableEvent};

/// Number of watched kinds.
pub const KINDS: usize = 7;
/// Index of HookRuns.
pub(super) const RUNS: usize = 3;
/// Index of nodes.
pub(super) const NODES: usize = 5;
/// Index of Evictions.
pub(super) const EVICTIONS: usize = 6;

/// Watches of one process.
#[derive(Debug, Default)]
pub(super) struct Watches {
    workloads: Watch<WorkloadObject>,
    pods: Watch<PodObject>,
    revisions: Watch<RevisionObject>,
    runs: Watch<RunObject>,
    templates: Watch<TemplateObject>,
    nodes: Watch<NodeObject>,
    evictions: Watch<EvictionObject>,
    /// Start of the current uninterrupted watch of runs, on the clock of the process.
    runs_watched: Option<Duration>,
}

/// Result of one delivery by a watch.
#[derive(Debug, Default, Clone, Copy)]
pub struct Shown {
    /// Whether there was an item.
    pub any: bool,
    /// Whether the watch had expired and lists again.
    pub expired: bool,
}

impl Watches {
    /// Breaks the watch of a kind.
    pub(super) fn lose(&mut self, kind: usize) {
        match kind {
            0 => self.workloads = Watch::Closed,
            1 => self.pods = Watch::Closed,
            2 => self.revisions = Watch::Closed,
            RUNS => {
                self.runs = Watch::Closed;
                self.runs_watched = None;
            }
            4 => self.templates = Watch::Closed,
            NODES => self.nodes = Watch::Closed,
            _ => self.evictions = Watch::Closed,
        }
    }

    /// Returns the next item of a kind's watch.
    pub(super) fn next(&mut self, server: &Server, kind: usize, now: Duration) -> (Vec<WatchEvent>, Shown) {
        match kind {
            0 => next(
                &server.workloads,
                &mut self.workloads,
                workload,
                WatchEvent::Workload,
            ),
            1 => next(
                &server.pods,
                &mut self.pods,
                |pod| pod.read.clone(),
                WatchEvent::Pod,
            ),
            2 => next(
                &server.revisions,
                &mut self.revisions,
                revision,
                WatchEvent::Revision,
            ),
            RUNS => {
                let since = self.runs_watched;
                let news = |event| WatchEvent::Run(event, since);
                let (events, shown) = next(&server.runs, &mut self.runs, |run| run.read.clone(), news);
                if !events.is_empty() && self.runs_watched.is_none() {
                    self.runs_watched = Some(now);
                }
                (events, shown)
            }
            4 => next(
                &server.templates,
                &mut self.templates,
                template,
                WatchEvent::Template,
            ),
            NODES => next(
                &server.nodes,
                &mut self.nodes,
                NodeObject::facts,
                WatchEvent::Node,
            ),
            _ => next(
                &server.evictions,
                &mut self.evictions,
                EvictionObject::facts,
                WatchEvent::Eviction,
            ),
        }
    }
}

/// Converts a workload to its cached form.
pub(super) fn workload(object: &WorkloadObject) -> Workload {
    Workload {
        uid: object.id.uid.clone(),
        version: object.id.version.clone(),
        object: Ok(object.api.clone()),
    }
}

/// Converts a revision to its cached form.
pub(super) fn revision(object: &RevisionObject) -> OwnedRevision {
    OwnedRevision {
        owner: object.id.owner.clone(),
        revision: object.read.clone(),
    }
}

fn template(object: &TemplateObject) -> Template {
    let (uid, version) = (object.id.uid.clone(), object.id.version.clone());
    Template::new(uid, version, Ok(object.spec.clone()), None)
}

fn next<T: Object, K>(
    table: &Table<T>,
    watch: &mut Watch<T>,
    read: impl Fn(&T) -> K,
    news: impl Fn(Event<K>) -> WatchEvent,
) -> (Vec<WatchEvent>, Shown) {
    let any = table.has_events(watch);
    let (shows, expired) = table.next(watch);
    let of = |object: &Rc<T>| (key(&object.id().name), read(object));
    let events = match shows {
        None => Vec::new(),
        Some(TableEvent::List(all)) => {
            let listed = all.iter().map(|object| {
                let (key, value) = of(object);
                Event::InitApply(key, value)
            });
            let begins = std::iter::once(Event::Init);
            begins.chain(listed).chain([Event::InitDone]).collect()
        }
        Some(TableEvent::Apply(object)) => {
            let (key, value) = of(&object);
            vec![Event::Apply(key, value)]
        }
        Some(TableEvent::Delete(object)) => {
            let id = object.id();
            vec![Event::Delete(key(&id.name), id.uid.clone())]
        }
    };
    (events.into_iter().map(news).collect(), Shown { any, expired })
}
