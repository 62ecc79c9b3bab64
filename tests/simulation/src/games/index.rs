//! What one gamedeployment-operator knows: the shell's own store for every kind, and which workloads news are about.
//!
//! `gamedeployment-operator/src/index` cannot be had without a client; this does what it does, on the same store.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::cluster::{Cluster, Node};
use gamedeployment_core::gate::{FoundTemplate, Run};
use gamedeployment_core::pod::Pod;
use jiff::Timestamp;

use crate::objects::{
    NodeObject, Object, PodObject, RevisionObject, RunObject, TemplateObject, WorkloadObject, key,
};
use crate::server::Server;
use crate::server::table::{News, Table, Watch};
use crate::store::{Store, Stored};

/// What is known.
#[derive(Debug, Default)]
pub struct Index {
    pub workloads: Store<Rc<WorkloadObject>>,
    pub pods: Store<Rc<PodObject>>,
    pub revisions: Store<Rc<RevisionObject>>,
    pub runs: Store<Rc<RunObject>>,
    pub templates: Store<Rc<TemplateObject>>,
    pub nodes: Rc<BTreeSet<String>>,
    nodes_known: bool,
    /// Since when nodes that pods are bound to have been absent.
    absent: BTreeMap<String, Timestamp>,
    /// Since when the watch of nodes has had no break.
    healthy: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
}

/// The watches that feed it.
#[derive(Debug, Default)]
pub struct Watches {
    pub workloads: Watch<WorkloadObject>,
    pub pods: Watch<PodObject>,
    pub revisions: Watch<RevisionObject>,
    pub runs: Watch<RunObject>,
    pub templates: Watch<TemplateObject>,
    pub nodes: Watch<NodeObject>,
}

/// Kinds that are watched.
pub const KINDS: usize = 6;

/// Whose an object is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Uid(String),
    Nobody,
}

fn owner_of<T: Stored>(object: &T) -> Owner {
    object
        .owner()
        .map_or(Owner::Nobody, |uid| Owner::Uid(uid.to_owned()))
}

/// What came of letting a watch show one thing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Shown {
    /// There was something.
    pub any: bool,
    /// The watch was too old, and lists anew.
    pub expired: bool,
}

impl Index {
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.workloads.is_synced()
            && self.pods.is_synced()
            && self.revisions.is_synced()
            && self.runs.is_synced()
            && self.templates.is_synced()
            && self.nodes_known
    }

    /// Takes in the next thing that the watch of a kind shows. Adds the workloads that it is about.
    pub fn learn(
        &mut self,
        server: &Server,
        watches: &mut Watches,
        kind: usize,
        about: &mut BTreeSet<String>,
    ) -> Shown {
        let (owners, shown) = match kind {
            0 => {
                let (news, shown) = next(&server.workloads, &mut watches.workloads);
                self.learn_workload(news, about);
                return shown;
            }
            1 => {
                let (news, shown) = next(&server.pods, &mut watches.pods);
                let owners = learn(&mut self.pods, news, |known, new| {
                    pods_differ(&known.read, &new.read)
                });
                self.note_absent();
                (owners, shown)
            }
            2 => {
                let (news, shown) = next(&server.revisions, &mut watches.revisions);
                (learn(&mut self.revisions, news, |_, _| true), shown)
            }
            3 => {
                let (news, shown) = next(&server.runs, &mut watches.runs);
                let now = self.now;
                let differ = |known: &RunObject, new: &RunObject| runs_differ(&known.read, &new.read, now);
                (learn(&mut self.runs, news, differ), shown)
            }
            4 => {
                let (news, shown) = next(&server.templates, &mut watches.templates);
                if news.is_some() {
                    about.extend(self.names());
                }
                (
                    learn(&mut self.templates, news, |known, new| known.spec != new.spec),
                    shown,
                )
            }
            _ => {
                let (news, shown) = next(&server.nodes, &mut watches.nodes);
                self.learn_node(news, about);
                return shown;
            }
        };
        self.concerned(owners, about);
        shown
    }

    fn names(&self) -> Vec<String> {
        self.workloads.iter().map(|(key, _)| key.1.clone()).collect()
    }

    fn concerned(&self, owners: BTreeSet<Owner>, about: &mut BTreeSet<String>) {
        for owner in owners {
            for (key, workload) in self.workloads.iter() {
                if owner == Owner::Nobody || owner == Owner::Uid(workload.id.uid.clone()) {
                    about.insert(key.1.clone());
                }
            }
        }
    }

    fn learn_workload(&mut self, news: Option<News<WorkloadObject>>, about: &mut BTreeSet<String>) {
        match news {
            None => {}
            Some(News::List(all)) => {
                self.workloads.begin_list();
                for object in all {
                    self.apply_workload(object, about);
                }
                about.extend(self.workloads.end_list().iter().map(|gone| gone.id.name.clone()));
            }
            Some(News::Apply(object)) => self.apply_workload(object, about),
            Some(News::Delete(object)) => {
                self.workloads.forget(&key(&object.id.name), &object.id.uid);
                about.insert(object.id.name.clone());
            }
        }
    }

    fn apply_workload(&mut self, object: Rc<WorkloadObject>, about: &mut BTreeSet<String>) {
        let name = object.id.name.clone();
        if self.workloads.observe(key(&name), object).1 {
            about.insert(name);
        }
    }

    /// The watch of nodes breaks.
    pub fn lose_nodes(&mut self) {
        self.healthy = None;
    }

    /// The API server has not confirmed that this node is gone.
    pub fn doubt(&mut self, name: &str) {
        self.absent.insert(name.to_owned(), self.now);
    }

    fn note_absent(&mut self) {
        if self.nodes_known {
            let bound = self.pods.iter().filter_map(|(_, pod)| pod.read.node.clone());
            for node in bound.filter(|node| !self.nodes.contains(node)) {
                self.absent.entry(node).or_insert(self.now);
            }
        }
    }

    fn learn_node(&mut self, news: Option<News<NodeObject>>, about: &mut BTreeSet<String>) {
        let Some(news) = news else { return };
        let nodes = Rc::make_mut(&mut self.nodes);
        match news {
            News::List(all) => {
                *nodes = all.iter().map(|node| node.id.name.clone()).collect();
                self.nodes_known = true;
                self.healthy = Some(self.now);
                self.absent.retain(|name, _| !nodes.contains(name));
            }
            News::Apply(node) => {
                self.absent.remove(&node.id.name);
                nodes.insert(node.id.name.clone());
            }
            News::Delete(node) => drop(nodes.remove(&node.id.name)),
        }
        self.note_absent();
        about.extend(self.names());
    }
}

fn next<T: Object>(table: &Table<T>, watch: &mut Watch<T>) -> (Option<News<T>>, Shown) {
    let any = table.has_news(watch);
    let (news, expired) = table.next(watch);
    (news, Shown { any, expired })
}

/// Takes news into a store. Returns the owners of what changed in a way that `differ` sees.
fn learn<T>(
    store: &mut Store<Rc<T>>,
    news: Option<News<T>>,
    differ: impl Fn(&T, &T) -> bool,
) -> BTreeSet<Owner>
where
    T: Object,
    Rc<T>: Stored,
{
    let mut owners = BTreeSet::new();
    let mut apply = |store: &mut Store<Rc<T>>, object: Rc<T>| {
        let key = key(&object.id().name);
        let owner = owner_of(&object);
        let differs = store.get(&key).is_none_or(|known| differ(known, &object));
        let (before, news) = store.observe(key, object);
        if news && differs {
            owners.extend(before.map(|before| owner_of(&before)));
            owners.insert(owner);
        }
    };
    match news {
        None => {}
        Some(News::List(all)) => {
            store.begin_list();
            for object in all {
                apply(store, object);
            }
            owners.extend(store.end_list().iter().map(owner_of));
        }
        Some(News::Apply(object)) => apply(store, object),
        Some(News::Delete(object)) => {
            let gone = store.forget(&key(&object.id().name), &object.id().uid);
            owners.extend(gone.iter().map(owner_of));
        }
    }
    owners
}

fn pods_differ(known: &Pod, new: &Pod) -> bool {
    let resource_version = new.resource_version.clone();
    Pod {
        resource_version,
        ..known.clone()
    } != *new
}

/// A measurement that came in time is no news.
fn runs_differ(known: &Run, new: &Run, now: Timestamp) -> bool {
    let mut known = known.clone();
    known.resource_version.clone_from(&new.resource_version);
    if known.not_taken_up_at.is_some_and(|known| known > now) && new.not_taken_up_at.is_some() {
        known.not_taken_up_at = new.not_taken_up_at;
    }
    known != *new
}

impl Cluster for Index {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        let found = self.templates.get(&key(name));
        found.map_or(FoundTemplate::Missing, |template| {
            FoundTemplate::Found(&template.spec)
        })
    }

    fn node(&self, name: &str) -> Node {
        if !self.nodes_known || self.nodes.contains(name) {
            return Node::There;
        }
        match (self.absent.get(name), self.healthy) {
            (Some(absent), Some(healthy)) => Node::Absent(self.now.duration_since(healthy.max(*absent))),
            _ => Node::Unsure,
        }
    }

    fn node_cost(&self, _: &str) -> Option<f64> {
        None
    }

    fn has_run(&self, _: &str, name: &str) -> bool {
        self.runs.get(&key(name)).is_some()
    }

    fn has_pod(&self, name: &str) -> bool {
        self.pods.get(&key(name)).is_some()
    }
}
