//! What is known of the cluster, and which workloads a piece of news is about.

mod arrivals;
mod nodes;
mod read;
mod surroundings;

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use gamedeployment_core::gate::{HookKind, Run};
use gamedeployment_core::pod::Pod;
use gamedeployment_core::revision::Revision;
use k8s_openapi::api::core::v1 as api;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::Event;
use operator_runtime::watch::{Key, Observed, key_of};
use shared_api::game_deployment::HookStep;
use shared_api::{GameDeployment, HookRun, HookTemplate};

use crate::observe::News;
use crate::store::{Store, Stored};

use arrivals::Arrivals;
use nodes::Nodes;
pub use read::read_revision;
use read::{Template, pods_differ, read_pod, read_template, runs_differ};
pub use surroundings::Surroundings;

/// A workload, readable or not.
#[derive(Debug)]
pub struct Workload {
    uid: String,
    version: String,
    /// The object, or why it cannot be read.
    pub object: Result<Box<GameDeployment>, InvalidObject>,
}

/// A ControllerRevision with its owner.
#[derive(Debug, PartialEq)]
pub struct OwnedRevision {
    owner: Option<String>,
    /// The revision.
    pub revision: Revision,
}

/// What is known of the cluster.
#[derive(Debug, Default)]
pub struct Index {
    /// Workloads.
    pub workloads: Store<Workload>,
    /// Pods of every owner: their names are taken.
    pub pods: Store<Pod>,
    /// ControllerRevisions.
    pub revisions: Store<OwnedRevision>,
    /// HookRuns.
    pub runs: Store<Run>,
    arrivals: Arrivals,
    templates: Store<Template>,
    /// Nodes.
    pub nodes: Nodes,
    by_uid: HashMap<String, Key>,
}

macro_rules! stored {
    ($kind:ty, $uid:expr, $version:expr, $owner:expr) => {
        impl Stored for $kind {
            fn uid(&self) -> &str {
                let of: fn(&Self) -> &str = $uid;
                of(self)
            }

            fn version(&self) -> &str {
                let of: fn(&Self) -> &str = $version;
                of(self)
            }

            fn owner(&self) -> Option<&str> {
                let of: fn(&Self) -> Option<&str> = $owner;
                of(self)
            }
        }
    };
}

stored!(Workload, |this| &this.uid, |this| &this.version, |_| None);
stored!(Template, |this| &this.uid, |this| &this.version, |_| None);
stored!(Pod, |this| &this.uid, |this| &this.resource_version, |this| this
    .controller
    .as_deref());
stored!(Run, |this| &this.uid, |this| &this.resource_version, |this| this
    .controller
    .as_deref());
stored!(
    OwnedRevision,
    |this| &this.revision.uid,
    |this| &this.revision.resource_version,
    |this| this.owner.as_deref()
);

impl Index {
    /// Whether everything has been listed once: before that nothing may be decided.
    #[must_use]
    pub fn is_synced(&self, with_nodes: bool) -> bool {
        self.workloads.is_synced()
            && self.pods.is_synced()
            && self.revisions.is_synced()
            && self.runs.is_synced()
            && self.templates.is_synced()
            && (self.nodes.is_synced() || !with_nodes)
    }

    /// The key of the workload with this UID.
    #[must_use]
    pub fn workload_of(&self, uid: &str) -> Option<&Key> {
        self.by_uid.get(uid)
    }

    /// The hook whose verdict these news bring, if it is not a success. One that was there before is no news.
    #[must_use]
    pub fn refusal(&self, news: &News) -> Option<HookKind> {
        let News::Run(Event::Apply(DeserializeGuard(Ok(run))) | Event::InitApply(DeserializeGuard(Ok(run)))) =
            news
        else {
            return None;
        };
        if !run.status.as_ref()?.phase.is_final() {
            return None;
        }
        let known = self.runs.get(&key_of(&run.metadata))?;
        let run = Run::read(run);
        let news = known.uid == run.uid && !known.phase.is_final() && run.is_unsuccessful();
        run.kind.filter(|_| news)
    }

    /// Notes the time at which a verdict arrives. What a list brings may have been there for long.
    pub fn see_verdict(&mut self, event: &Observed<HookRun>, healthy: Option<Instant>) {
        let Event::Apply(DeserializeGuard(Ok(run))) = event else {
            return;
        };
        let key = key_of(&run.metadata);
        let ended = run.status.as_ref().is_some_and(|status| status.phase.is_final());
        let uid = run.metadata.uid.clone().unwrap_or_default();
        let was_open =
            { self.runs.get(&key) }.is_some_and(|known| known.uid == uid && !known.phase.is_final());
        if ended && was_open {
            self.arrivals.arrived(key, uid, healthy, Instant::now());
            let runs = &self.runs;
            self.arrivals
                .sweep(|key, uid| runs.get(key).is_some_and(|run| run.uid == uid));
        }
    }

    /// Takes news in. Adds the workloads that it is about.
    pub fn learn(&mut self, news: News, about: &mut BTreeSet<Key>) {
        match news {
            News::Workload(event) => self.learn_workload(event, about),
            News::Pod(event) => {
                if let Event::Apply(DeserializeGuard(Ok(pod))) | Event::InitApply(DeserializeGuard(Ok(pod))) =
                    &event
                    && let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref())
                {
                    self.nodes.bound(node, Instant::now());
                }
                let owners = learn(&mut self.pods, event, |pod| Some(read_pod(&pod)), pods_differ);
                self.concerned(owners, about);
            }
            News::Revision(event) => {
                let owners = learn(
                    &mut self.revisions,
                    event,
                    |object| read_revision(&object),
                    |_, _| true,
                );
                self.concerned(owners, about);
            }
            News::Run(event) => {
                let owners = learn(&mut self.runs, event, |run| Some(Run::read(&run)), runs_differ);
                self.concerned(owners, about);
            }
            News::Template(event) => self.learn_template(event, about),
            News::Node(event) => self.learn_node(event, about),
        }
    }

    /// Adds the workloads that are owners, and for objects without one all workloads of their namespace: they may be
    /// adopted.
    fn concerned(&self, owners: BTreeSet<Owner>, about: &mut BTreeSet<Key>) {
        for owner in owners {
            match owner {
                Owner::Uid(uid) => about.extend(self.by_uid.get(&uid).cloned()),
                Owner::NoneIn(namespace) => {
                    about.extend(self.workloads.orphans_in(&namespace).map(Workload::key));
                }
            }
        }
    }

    fn learn_workload(&mut self, event: Observed<GameDeployment>, about: &mut BTreeSet<Key>) {
        match event {
            Event::Init => self.workloads.begin_list(),
            Event::InitApply(DeserializeGuard(read)) | Event::Apply(DeserializeGuard(read)) => {
                let workload = Workload::new(read);
                let key = workload.key();
                self.by_uid.insert(workload.uid.clone(), key.clone());
                if self.workloads.observe(key.clone(), workload).1 {
                    about.insert(key);
                }
            }
            Event::Delete(DeserializeGuard(read)) => {
                let workload = Workload::new(read);
                let key = workload.key();
                self.workloads.forget(&key, &workload.uid);
                self.by_uid.remove(&workload.uid);
                about.insert(key);
            }
            Event::InitDone => {
                for gone in self.workloads.end_list() {
                    self.by_uid.remove(&gone.uid);
                    about.insert(gone.key());
                }
            }
        }
    }

    /// What a write returned.
    pub fn wrote_workload(&mut self, mut object: GameDeployment) {
        // As it is of what the watch brings.
        object.metadata.managed_fields = None;
        let workload = Workload::new(Ok(object));
        self.workloads.wrote(workload.key(), workload);
    }

    fn learn_template(&mut self, event: Observed<HookTemplate>, about: &mut BTreeSet<Key>) {
        let mut changed = BTreeSet::new();
        match event {
            Event::Init => self.templates.begin_list(),
            Event::InitApply(DeserializeGuard(read)) | Event::Apply(DeserializeGuard(read)) => {
                let (key, template) = read_template(read);
                let known = self.templates.get(&key);
                let differs = known.is_none_or(|known| known.differs(&template));
                self.templates.observe(key.clone(), template);
                if differs {
                    changed.insert(key);
                }
            }
            Event::Delete(DeserializeGuard(read)) => {
                let (key, template) = read_template(read);
                self.templates.forget(&key, &template.uid);
                changed.insert(key);
            }
            Event::InitDone => {
                if !self.templates.end_list().is_empty() {
                    // Which ones they were is not worth knowing: this happens after a watch was lost.
                    about.extend(self.workloads.iter().map(|(key, _)| key.clone()));
                }
            }
        }
        for (namespace, name) in changed {
            let here = self.workloads.orphans_in(&namespace);
            about.extend(
                { here }
                    .filter(|workload| workload.uses(&name))
                    .map(Workload::key),
            );
        }
    }

    fn learn_node(&mut self, event: Observed<api::Node>, about: &mut BTreeSet<Key>) {
        let is_list = matches!(event, Event::InitDone);
        let changed = self.nodes.learn(event);
        if is_list || !changed.is_empty() {
            let bound = self.pods.iter().filter_map(|(_, pod)| pod.node.as_deref());
            self.nodes.bound_to(bound, Instant::now());
        }
        if changed.is_empty() {
            return;
        }
        let on_them = |pod: &Pod| pod.node.as_ref().is_some_and(|node| changed.contains(node));
        let owners = self
            .pods
            .iter()
            .filter(|(_, pod)| on_them(pod))
            .filter_map(|(_, pod)| pod.controller.as_ref());
        about.extend(owners.filter_map(|uid| self.by_uid.get(uid)).cloned());
    }
}

impl Workload {
    fn new(read: Result<GameDeployment, InvalidObject>) -> Self {
        let metadata = match &read {
            Ok(object) => &object.metadata,
            Err(invalid) => &invalid.metadata,
        };
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            object: read.map(Box::new),
        }
    }

    fn key(&self) -> Key {
        match &self.object {
            Ok(object) => key_of(&object.metadata),
            Err(invalid) => key_of(&invalid.metadata),
        }
    }

    /// Whether one of its hooks uses this HookTemplate.
    fn uses(&self, template: &str) -> bool {
        let Ok(object) = &self.object else { return false };
        let spec = &object.spec;
        let strategies = [
            &spec.pre_delete_update_strategy,
            &spec.pre_inplace_update_strategy,
            &spec.post_inplace_update_strategy,
        ];
        let hooks = strategies
            .into_iter()
            .flatten()
            .filter_map(|strategy| strategy.hook.as_ref());
        let canary = spec
            .update_strategy
            .as_ref()
            .and_then(|update| update.canary.as_ref());
        let steps = canary
            .and_then(|canary| canary.steps.as_ref())
            .into_iter()
            .flatten();
        let named = |hook: &HookStep| hook.template_name == template;
        { hooks }.any(named) || { steps }.filter_map(|step| step.hook.as_ref()).any(named)
    }
}

/// The owner of an object that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Uid(String),
    NoneIn(String),
}

impl Owner {
    fn of<T: Stored>(value: &T, namespace: &str) -> Self {
        value.owner().map_or_else(
            || Self::NoneIn(namespace.to_owned()),
            |uid| Self::Uid(uid.to_owned()),
        )
    }
}

/// Takes an event into a store. Returns the owners of what changed in a way that `differ` sees.
fn learn<K, T>(
    store: &mut Store<T>,
    event: Observed<K>,
    read: impl Fn(K) -> Option<T>,
    differ: impl Fn(&T, &mut T) -> bool,
) -> BTreeSet<Owner>
where
    K: kube::Resource<DynamicType = ()>,
    T: Stored,
{
    let mut owners = BTreeSet::new();
    match event {
        Event::Init => store.begin_list(),
        Event::InitApply(DeserializeGuard(object)) | Event::Apply(DeserializeGuard(object)) => {
            let Ok(object) = object else { return owners };
            let key = key_of(object.meta());
            let Some(mut value) = read(object) else {
                return owners;
            };
            let owner = Owner::of(&value, &key.0);
            let differs = store.get(&key).is_none_or(|known| differ(known, &mut value));
            let (before, news) = store.observe(key.clone(), value);
            if news && differs {
                owners.extend(before.map(|before| Owner::of(&before, &key.0)));
                owners.insert(owner);
            }
        }
        Event::Delete(DeserializeGuard(object)) => {
            let (key, uid) = match &object {
                Ok(object) => (key_of(object.meta()), object.meta().uid.clone()),
                Err(invalid) => (key_of(&invalid.metadata), invalid.metadata.uid.clone()),
            };
            let gone = store.forget(&key, &uid.unwrap_or_default());
            owners.extend(gone.map(|gone| Owner::of(&gone, &key.0)));
        }
        Event::InitDone => owners.extend(store.end_list().iter().map(|gone| Owner::of(gone, ""))),
    }
    owners
}
