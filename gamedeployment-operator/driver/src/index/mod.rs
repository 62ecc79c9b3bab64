//! Cached view of the cluster, and the workloads that each event concerns.

mod arrivals;
mod cluster_view;
mod evictions;
mod expired_requests;
mod lost_pods;
mod nodes;
mod questions;
mod requested_names;
mod sweep;
mod templates;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gamedeployment_core::deletion;
use gamedeployment_core::gate::{Run, failed_notice};
use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::{Action, Warning};
use gamedeployment_core::pod::Pod;
use jiff::Timestamp;
use shared_api::GameDeployment;
use shared_api::game_deployment::HookStep;

use crate::NamespacedName;
use crate::request::{ApiCall, Object, ObjectKind, Request};
use crate::store::{ObjectStore, Store, StoredObject};
use crate::watch_event::{Event, NodeFacts, OwnedRevision, Template, WatchEvent, Workload};
use runtime_core::clock::Now;

use arrivals::VerdictArrivals;
pub use cluster_view::ClusterView;
use evictions::Evictions;
use lost_pods::LostPods;
use nodes::Nodes;
use questions::Questions;
use requested_names::RequestedNames;
use templates::Templates;

/// Cached view of the cluster.
#[derive(Debug, Default)]
pub struct Index {
    /// Workloads.
    pub workloads: Store<Workload>,
    /// Pods of every owner, because their names are taken too.
    pub pods: Store<Pod>,
    /// ControllerRevisions.
    pub revisions: Store<OwnedRevision>,
    /// HookRuns.
    pub runs: Store<Run>,
    arrivals: VerdictArrivals,
    pub(crate) questions: Questions,
    requested_names: RequestedNames,
    lost_pods: LostPods,
    templates: Templates,
    /// Nodes.
    pub nodes: Nodes,
    pub(crate) evictions: Evictions,
    by_uid: HashMap<String, NamespacedName>,
}

impl Index {
    /// Whether every watch has listed once; no decision may be made before.
    pub fn is_synced(&self, with_nodes: bool) -> bool {
        self.workloads.is_synced()
            && self.pods.is_synced()
            && self.revisions.is_synced()
            && self.runs.is_synced()
            && self.templates.is_synced()
            && (self.nodes.is_synced() || !with_nodes)
    }

    /// Returns the store of a kind that the operator writes.
    pub fn object_store(&self, kind: ObjectKind) -> &dyn ObjectStore {
        match kind {
            ObjectKind::Workload => &self.workloads,
            ObjectKind::Pod => &self.pods,
            ObjectKind::Revision => &self.revisions,
            ObjectKind::Run => &self.runs,
        }
    }

    /// Returns the same store mutably.
    pub fn object_store_mut(&mut self, kind: ObjectKind) -> &mut dyn ObjectStore {
        match kind {
            ObjectKind::Workload => &mut self.workloads,
            ObjectKind::Pod => &mut self.pods,
            ObjectKind::Revision => &mut self.revisions,
            ObjectKind::Run => &mut self.runs,
        }
    }

    /// Stores an object that a write or a direct read returned.
    pub fn apply_write(&mut self, object: Object, now: Duration) {
        match object {
            Object::Workload(key, object) => self.workloads.apply_write(key, object, now),
            Object::Pod(key, pod) => self.pods.apply_write(key, *pod, now),
            Object::Revision(key, revision) => self.revisions.apply_write(key, *revision, now),
            Object::Run(key, run) => {
                self.questions.asked(&run);
                self.runs.apply_write(key, *run, now);
            }
        }
    }

    /// Records a question that a request is about to note.
    pub(crate) fn record_question(&mut self, request: &Request) {
        let (pod, text) = if let ApiCall::Act(Action::RecordSelection(pod, text, _)) = &request.call {
            (pod, text)
        } else if let ApiCall::Act(Action::NoteQuestion(pod, question, _)) = &request.call {
            (pod, &question.text)
        } else {
            return;
        };
        let pods = &self.pods;
        let uids = || pods.iter().map(|(_, pod)| pod.uid.as_str()).collect();
        self.questions.note(&pod.uid, text, uids);
    }

    /// Records a request that deletes a pod and is about to be sent.
    pub(crate) fn record_deletion(&mut self, request: &Request) {
        self.lost_pods.record(request, &self.pods);
    }

    /// Returns the warning about a guarded pod that others delete, and its workload. `None` if the workload is being
    /// deleted as well, and no hooks run for its pods, or if it has no `PreDelete` hook.
    pub(crate) fn lost_pod(
        &self,
        event: &Event<Pod>,
    ) -> Option<(&NamespacedName, Arc<GameDeployment>, Warning)> {
        let (Event::Apply(key, _) | Event::InitApply(key, _) | Event::Delete(key, _)) = event else {
            return None;
        };
        let known = self.pods.get(key)?;
        let warning = self.lost_pods.warning(known, event)?;
        let workload = self.by_uid.get(known.controller.as_ref()?)?;
        let object = self.workloads.get(workload)?.object.as_ref().ok()?;
        let goes_along = deletion::is_requested(object) && !deletion::is_guarded(object);
        let strategy = object.spec.pre_delete_update_strategy.as_ref();
        let has_hook = strategy.is_some_and(|strategy| strategy.hook.is_some());
        (has_hook && !goes_along).then(|| (workload, object.clone(), warning))
    }

    /// Applies the answer to a direct read.
    pub fn apply_read(&mut self, object: Object, now: Duration) {
        match object {
            Object::Workload(key, object) => self.workloads.apply_read(key, object, now),
            Object::Pod(key, pod) => self.pods.apply_read(key, *pod, now),
            Object::Revision(key, revision) => self.revisions.apply_read(key, *revision, now),
            Object::Run(key, run) => {
                self.questions.asked(&run);
                self.runs.apply_read(key, *run, now);
            }
        }
    }

    /// Returns the hook kind of a run that this event turns unsuccessful. A verdict that was known before
    /// does not count again.
    pub fn refusal(&self, event: &Event<Run>) -> Option<HookKind> {
        self.newly_unsuccessful(event)?.kind
    }

    /// Returns the warning about a notice that this event turns unsuccessful, and its workload. A result that was known
    /// before does not count again.
    pub(crate) fn failed_notice(
        &self,
        event: &Event<Run>,
    ) -> Option<(&NamespacedName, Arc<GameDeployment>, Warning)> {
        let run = self
            .newly_unsuccessful(event)
            .filter(|run| run.notice.is_some())?;
        let owner = run.controller.as_ref()?;
        let workload = self.by_uid.get(owner)?;
        let object = self.workloads.get(workload)?.object.as_ref().ok()?;
        let mut pods = self.pods.owned_by(owner);
        let pod = pods.find(|pod| run.pod_uid.as_ref() == Some(&pod.uid));
        Some((workload, object.clone(), failed_notice(run, pod)))
    }

    /// Returns the run that this event turns unsuccessful.
    fn newly_unsuccessful<'e>(&self, event: &'e Event<Run>) -> Option<&'e Run> {
        let (Event::Apply(key, run) | Event::InitApply(key, run)) = event else {
            return None;
        };
        let known = self.runs.get(key)?;
        let news = known.uid == run.uid && !known.phase.is_final() && run.is_unsuccessful();
        news.then_some(run)
    }

    /// Records the arrival time of a verdict. Listed runs are ignored because their verdict may be old.
    /// `healthy` is the time since which the watch of runs has had no break.
    pub fn record_verdict(&mut self, event: &Event<Run>, healthy: Option<Duration>, now: Duration) {
        let Event::Apply(key, run) = event else { return };
        let known = self.runs.get(key);
        let was_open = known.is_some_and(|known| known.uid == run.uid && !known.phase.is_final());
        if run.phase.is_final() && was_open {
            self.arrivals.arrived(key.clone(), run.uid.clone(), healthy, now);
            let runs = &self.runs;
            self.arrivals
                .sweep(|key, uid| runs.get(key).is_some_and(|run| run.uid == uid));
        }
    }

    /// Applies a watch event and adds the workloads that it concerns to `about`.
    pub fn apply_event(&mut self, event: WatchEvent, about: &mut BTreeSet<NamespacedName>, now: Now) {
        match event {
            WatchEvent::Workload(event) => self.apply_workload(event, about, now.elapsed),
            WatchEvent::Pod(event) => {
                if let Event::Apply(key, pod) | Event::InitApply(key, pod) = &event {
                    self.requested_names.observe(key, pod, now.elapsed);
                    if let Some(node) = &pod.node {
                        self.nodes.bound(node, now.monotonic);
                    }
                }
                let owners = apply_event(&mut self.pods, event, pods_differ, now.elapsed);
                self.enqueue_owners(owners, about);
            }
            WatchEvent::Revision(event) => {
                let owners = apply_event(&mut self.revisions, event, |_, _| true, now.elapsed);
                self.enqueue_owners(owners, about);
            }
            WatchEvent::Run(event, _) => {
                if let Event::Apply(_, run) | Event::InitApply(_, run) = &event {
                    self.questions.asked(run);
                }
                let differ = |known: &Run, new: &mut Run| runs_differ(known, new, now.wall);
                let owners = apply_event(&mut self.runs, event, differ, now.elapsed);
                let owners = owners.into_iter().map(|owner| self.workload_of(owner));
                self.enqueue_owners(owners.collect(), about);
            }
            WatchEvent::Template(event) => self.apply_template(event, about, now.elapsed),
            WatchEvent::Node(event) => self.apply_node(event, about, now),
            WatchEvent::Eviction(event) => {
                let pods = self.evictions.apply_event(event);
                let pods = pods.iter().filter_map(|key| self.pods.get(key));
                about.extend(pods.filter_map(|pod| Some(self.workload_of_pod(pod)?.0.clone())));
            }
            WatchEvent::EvictionsUnavailable => self.evictions.set_unavailable(),
        }
    }

    /// Returns the workload that controls a pod.
    pub(crate) fn workload_of_pod(&self, pod: &Pod) -> Option<(&NamespacedName, &Workload)> {
        let key = self.by_uid.get(pod.controller.as_ref()?)?;
        Some((key, self.workloads.get(key)?))
    }

    /// Returns the owner of a revision in its place: runs of lifecycle hooks belong to revisions.
    fn workload_of(&self, owner: Owner) -> Owner {
        let Owner::Uid(uid) = &owner else { return owner };
        if self.by_uid.contains_key(uid) {
            return owner;
        }
        let mut revisions = self.revisions.iter().map(|(_, owned)| owned);
        let workload = revisions.find(|owned| owned.revision.uid == *uid);
        let workload = workload.and_then(|owned| owned.owner.clone());
        workload.map_or(owner, Owner::Uid)
    }

    /// Returns the runs of a workload: its own, and those of its revisions.
    pub fn runs_of<'i>(&'i self, uid: &'i str) -> impl Iterator<Item = &'i Run> {
        let revisions = self.revisions.owned_by(uid);
        let of_revisions = revisions.flat_map(|owned| self.runs.owned_by(&owned.revision.uid));
        self.runs.owned_by(uid).chain(of_revisions)
    }

    /// Adds the owning workloads. An object without an owner concerns all workloads of its namespace, because
    /// they may adopt it.
    fn enqueue_owners(&self, owners: BTreeSet<Owner>, about: &mut BTreeSet<NamespacedName>) {
        for owner in owners {
            match owner {
                Owner::Uid(uid) => about.extend(self.by_uid.get(&uid).cloned()),
                Owner::NoneIn(namespace) => about.extend(self.workloads.orphan_keys_in(&namespace).cloned()),
            }
        }
    }

    fn apply_workload(
        &mut self,
        event: Event<Workload>,
        about: &mut BTreeSet<NamespacedName>,
        now: Duration,
    ) {
        match event {
            Event::Init => self.workloads.begin_list(),
            Event::InitApply(key, workload) | Event::Apply(key, workload) => {
                self.by_uid.insert(workload.uid.clone(), key.clone());
                if self.workloads.observe(key.clone(), workload).1 {
                    about.insert(key);
                }
            }
            Event::Delete(key, uid) => {
                self.workloads.forget(&key, &uid, now);
                self.by_uid.remove(&uid);
                about.insert(key);
            }
            Event::InitDone => {
                for (key, gone) in self.workloads.end_list(now) {
                    self.by_uid.remove(&gone.uid);
                    about.insert(key);
                }
            }
        }
    }

    fn apply_template(
        &mut self,
        event: Event<Template>,
        about: &mut BTreeSet<NamespacedName>,
        now: Duration,
    ) {
        for (namespace, name) in self.templates.apply_event(event, now) {
            let here = self.workloads.orphan_keys_in(&namespace);
            let uses = |key: &&NamespacedName| {
                self.workloads
                    .get(key)
                    .is_some_and(|workload| workload.uses(&name))
            };
            about.extend(here.filter(uses).cloned());
        }
    }

    fn apply_node(&mut self, event: Event<NodeFacts>, about: &mut BTreeSet<NamespacedName>, now: Now) {
        let is_list = matches!(event, Event::InitDone);
        let changed = self.nodes.apply_event(event, now);
        if is_list || !changed.is_empty() {
            let bound = self.pods.iter().filter_map(|(_, pod)| pod.node.as_deref());
            self.nodes.bound_to(bound, now.monotonic);
        }
        if changed.is_empty() {
            return;
        }
        let on_them = |pod: &Pod| pod.node.as_ref().is_some_and(|node| changed.contains(node));
        let pods = self.pods.iter().filter(|(_, pod)| on_them(pod));
        let owners = pods.filter_map(|(_, pod)| pod.controller.as_ref());
        about.extend(owners.filter_map(|uid| self.by_uid.get(uid)).cloned());
    }
}

/// Whether a pod changed. Ignores the resource version: a write that conflicts because of it is retried with
/// the new one.
fn pods_differ(known: &Pod, new: &mut Pod) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let differ = known != new;
    new.resource_version = version;
    differ
}

/// Whether a run changed. Ignores the resource version, as for pods, and a take-up deadline that a
/// measurement moved in time: a timer covers that.
fn runs_differ(known: &Run, new: &mut Run, now: Timestamp) -> bool {
    let version = std::mem::replace(&mut new.resource_version, known.resource_version.clone());
    let at = new.not_taken_up_at;
    if known.not_taken_up_at.is_some_and(|known| known > now) && at.is_some() {
        new.not_taken_up_at = known.not_taken_up_at;
    }
    let differ = known != new;
    (new.resource_version, new.not_taken_up_at) = (version, at);
    differ
}

impl Workload {
    /// Whether one of its hooks or its notice uses this HookTemplate.
    fn uses(&self, template: &str) -> bool {
        self.object.as_ref().is_ok_and(|object| uses(object, template))
    }
}

fn uses(object: &GameDeployment, template: &str) -> bool {
    let spec = &object.spec;
    let strategies = [
        &spec.pre_delete_update_strategy,
        &spec.pre_inplace_update_strategy,
        &spec.post_inplace_update_strategy,
    ];
    let strategies = strategies.into_iter().flatten();
    let mut hooks = strategies.flat_map(|strategy| [&strategy.hook, &strategy.notice].into_iter().flatten());
    let update = spec.update_strategy.as_ref();
    let canary = update.and_then(|update| update.canary.as_ref());
    let steps = canary
        .and_then(|canary| canary.steps.as_ref())
        .into_iter()
        .flatten();
    let named = |hook: &HookStep| hook.template_name == template;
    let of_rollouts = spec.lifecycle_hooks.iter().flatten();
    hooks.any(named)
        || steps.filter_map(|step| step.hook.as_ref()).any(named)
        || of_rollouts.filter_map(|hook| hook.hook.as_ref()).any(named)
}

/// Owner of a changed object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Uid(String),
    NoneIn(String),
}

impl Owner {
    fn of<T: StoredObject>(value: &T, namespace: &str) -> Self {
        value.owner().map_or_else(
            || Self::NoneIn(namespace.to_owned()),
            |uid| Self::Uid(uid.to_owned()),
        )
    }
}

/// Applies an event to a store. Returns the owners of the objects that changed according to `differ`.
fn apply_event<T: StoredObject>(
    store: &mut Store<T>,
    event: Event<T>,
    differ: impl Fn(&T, &mut T) -> bool,
    now: Duration,
) -> BTreeSet<Owner> {
    let mut owners = BTreeSet::new();
    match event {
        Event::Init => store.begin_list(),
        Event::InitApply(key, mut value) | Event::Apply(key, mut value) => {
            let owner = Owner::of(&value, &key.0);
            let differs = store.get(&key).is_none_or(|known| differ(known, &mut value));
            let (before, news) = store.observe(key.clone(), value);
            if news && differs {
                owners.extend(before.map(|before| Owner::of(&before, &key.0)));
                owners.insert(owner);
            }
        }
        Event::Delete(key, uid) => {
            let gone = store.forget(&key, &uid, now);
            owners.extend(gone.map(|gone| Owner::of(&gone, &key.0)));
        }
        Event::InitDone => {
            let gone = store.end_list(now);
            owners.extend(gone.iter().map(|(key, gone)| Owner::of(gone, &key.0)));
        }
    }
    owners
}
