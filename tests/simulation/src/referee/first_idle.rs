//! Checks the selection policy `FirstIdle`. Scouts are created only while there are surplus pods, or for old pods
//! during an update: one for each pod and purpose, and none replaces another without a cause. At rest, none is left
//! over, every surplus pod is selected or searched for, and no busy pod is selected in place of an idle one. For the
//! pods to update, see [`idle_updates`](super::idle_updates).
//!
//! A scout is recognized by its label, without the operator's code.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::plan::Action;
use gamedeployment_core::workload::Workload;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shared_api::names::pod as names;
use shared_api::names::{hook_kind, hook_run_annotation as annotation, hook_run_label as label};
use shared_api::{GameDeploymentSpec, GameDeploymentStatus};

use super::idle_updates::{hooks_of_update, may_search};
use super::removal::has_valid_request;
use super::{Acted, Referee};
use crate::endpoint::Behaviour;
use crate::games::Seen;
use crate::objects::{PodObject, RunObject, is_deleting};
use crate::server::Server;
use crate::world::{FLEET, World};

/// Intent of scouts, as documented.
const INTENT: &str = "scout";
/// Prefix of the names of scouts before an update in place, as documented.
const IN_PLACE: &str = "scout-inplace-hook-";
/// Maximum number of scouts of a pod for one purpose between two other changes: one, and another if the first one is
/// out of date by the passing of time alone.
const MOST: usize = 2;

/// Scouts that were created since anything else last changed, by their purpose and the UID of the pod.
#[derive(Debug, Default, Clone)]
pub(super) struct Scouted {
    /// Number of changes by anyone but the operators until then.
    foreign: u64,
    counts: BTreeMap<(bool, String), usize>,
}

/// Returns the hook that a scout runs; `None` if the run is no scout.
pub(super) fn scouted_hook(metadata: &ObjectMeta) -> Option<HookKind> {
    let kind = metadata.labels.as_ref()?.get(label::TYPE)?;
    match kind.as_str() {
        hook_kind::SCOUT => Some(HookKind::PreDelete),
        hook_kind::SCOUT_INPLACE => Some(HookKind::PreInplace),
        _ => None,
    }
}

/// Whether a scout is for an update in place.
fn is_before_update(metadata: &ObjectMeta) -> bool {
    let name = metadata.name.as_deref();
    name.is_some_and(|name| name.starts_with(IN_PLACE))
}

/// Whether a scout may be for a deletion: those before an update in place have other names.
fn may_be_for_deletion(metadata: &ObjectMeta) -> bool {
    scouted_hook(metadata) == Some(HookKind::PreDelete) && !is_before_update(metadata)
}

/// Whether a run is a scout.
pub fn is_scout(run: &RunObject) -> bool {
    scouted_hook(&run.api.metadata).is_some()
}

/// Whether a run is a scout that no decision on deletions could create.
pub fn is_scout_of_update(run: &RunObject, seen: &Seen) -> bool {
    is_scout(run) && !(may_be_for_deletion(&run.api.metadata) && is_search(seen))
}

/// Whether idle pods are deleted first.
pub(super) fn is_first_idle(spec: &GameDeploymentSpec) -> bool {
    let scale = spec.scale_strategy.as_ref();
    let policy = scale.and_then(|scale| scale.selection_policy.as_deref());
    let strategy = spec.pre_delete_update_strategy.as_ref();
    policy == Some("FirstIdle") && strategy.is_some_and(|strategy| strategy.hook.is_some())
}

/// Whether a decision may have searched for idle pods: there are too many pods, and not all of them must go.
fn is_search(seen: &Seen) -> bool {
    let object = seen.object();
    let replicas = usize::try_from(object.spec.replicas.unwrap_or(1)).unwrap();
    is_first_idle(&object.spec) && !is_deleting(object) && seen.active > replicas
}

/// Whether a selection that a decision clears is cleared while idle pods are searched for.
pub fn deselects(seen: &Seen) -> bool {
    is_search(seen)
}

/// Whether a run has ended without a measured success, or cannot end.
pub(super) fn is_given_up(run: &RunObject) -> bool {
    run.read.terminating || run.read.phase.is_final() && !run.read.is_measured_success()
}

impl Referee {
    /// Records a change of something that scouts may depend on, other than the pods, the nodes and the workload.
    pub fn something_else_happens(&mut self) {
        self.scouted.counts.clear();
    }

    /// Checks the creation of a scout. Every other write but the removal of a run may be a reason for a new one.
    pub(super) fn follow_search(&mut self, action: &Action, acted: &Acted<'_>) {
        let (new, hook) = match action {
            Action::CreateRun(new) => match scouted_hook(&new.metadata) {
                Some(hook) => (new, hook),
                None => return self.something_else_happens(),
            },
            Action::DeleteRun(_) => return,
            _ => return self.something_else_happens(),
        };
        let seen = acted.seen;
        let labels = new.metadata.labels.as_ref().unwrap();
        assert!(
            may_be_for_deletion(&new.metadata) && is_search(seen)
                || may_search(seen, hook, &labels[label::REVISION]),
            "a scout without a search: {} pods: {new:#?} {:#?} {:#?}",
            seen.active,
            seen.object().spec,
            seen.object().status
        );
        let notes = new.metadata.annotations.as_ref().unwrap();
        assert!(
            notes
                .get(annotation::INTENT)
                .is_some_and(|intent| intent == INTENT)
                && !notes.contains_key(annotation::CHOICE)
                && !notes.contains_key(annotation::QUESTION),
            "a scout that a gate may take for its run: {new:#?}"
        );
        if self.scouted.foreign != seen.foreign {
            self.scouted.foreign = seen.foreign;
            self.scouted.counts.clear();
        }
        // A decision on an earlier state may be reverted by the next one.
        if !acted.room.calm {
            return;
        }
        let pod = labels[label::POD_UID].clone();
        let purpose = is_before_update(&new.metadata);
        let count = self.scouted.counts.entry((purpose, pod)).or_default();
        *count += 1;
        assert!(
            *count <= MOST,
            "scout {count} of a pod, and nothing has happened since the first: {new:#?}"
        );
    }

    /// Checks that a new scout is the only one of its pod, its hook and its purpose. Another one may exist until it is
    /// deleted if it is about another revision, another instance id or another spec, and those of people are ignored.
    pub fn check_only_scout(&self, run: &RunObject, server: &Server) {
        let Some(hook) = scouted_hook(&run.api.metadata) else {
            return;
        };
        let mut others = server.runs.iter().filter(|other| {
            scouted_hook(&other.api.metadata) == Some(hook)
                && is_before_update(&other.api.metadata) == is_before_update(&run.api.metadata)
                && other.id.uid != run.id.uid
                && self.asked.contains_key(&other.id.uid)
        });
        let is_same = |other: &Rc<RunObject>| {
            let (other, run) = (&other.read, &run.read);
            (&other.pod_uid, &other.revision, &other.instance) == (&run.pod_uid, &run.revision, &run.instance)
        };
        let same = others.find(|other| {
            is_same(other)
                && other.api.spec == run.api.spec
                && !other.read.terminating
                && !self.edited.contains(&other.id.uid)
        });
        assert!(
            same.is_none(),
            "a second scout of a pod: {run:#?}\nbeside {same:#?}"
        );
    }
}

impl World {
    /// Whether idle pods are deleted first.
    pub(crate) fn deletes_idle_first(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| is_first_idle(&object.api.spec))
    }

    /// Whether idle pods are updated first.
    pub(crate) fn updates_idle_first(&self) -> bool {
        let object = self.server.workloads.get(FLEET);
        object.is_some_and(|object| !hooks_of_update(&object.api.spec).is_empty())
    }

    /// Returns the workload's runs.
    pub(super) fn own_runs(&self) -> impl Iterator<Item = &Rc<RunObject>> {
        let object = self.server.workloads.get(FLEET);
        let runs = self.server.runs.iter();
        runs.filter(move |run| object.is_some_and(|object| run.id.owner.as_deref() == Some(object.uid())))
    }

    /// Checks, while nothing happens, the scouts and the status of the searches. `missing`: number of surplus pods that
    /// are not selected.
    pub(super) fn check_search(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
        missing: usize,
    ) {
        let object = self.server.workloads.get(FLEET).unwrap();
        let is_search =
            is_first_idle(&object.api.spec) && !self.is_deleting() && pods.len() > wanted.replicas;
        let hooks = self.hooks_of_search(wanted, status, pods);
        let searches = status.first_idle.as_ref();
        let scale = searches.and_then(|searches| searches.scale);
        let update = searches.and_then(|searches| searches.update);
        assert!(
            (is_search || scale.is_none()) && (!hooks.is_empty() || update.is_none()),
            "a search goes on without an end: {}",
            self.describe()
        );
        assert!(
            searches.is_none() || scale.is_some() || update.is_some(),
            "a search for nothing is reported: {status:#?}"
        );
        self.check_scouts(status, pods, is_search, &hooks);
        let scouts: Vec<_> = self.own_runs().filter(|run| is_scout(run)).collect();
        let candidates = update.map_or(0, |update| usize::try_from(update.candidates).unwrap());
        assert!(
            candidates <= scouts.len(),
            "{candidates} candidates for the update, with {} scouts: {}",
            scouts.len(),
            self.describe()
        );
        let of_deletions = |scout: &&&Rc<RunObject>| {
            let (read, metadata) = (&scout.read, &scout.api.metadata);
            may_be_for_deletion(metadata) && !read.terminating && !read.phase.is_final()
        };
        let running = scouts.iter().filter(of_deletions).count();
        let search = scale.unwrap_or_default();
        let reported = search.candidates.min(search.needed);
        assert!(
            missing <= running && missing <= usize::try_from(reported).unwrap(),
            "{missing} surplus pods are neither selected nor searched for, with {running} candidates: {}",
            self.describe()
        );
        if is_search {
            self.check_idle_first(wanted, status, pods, &scouts);
        }
    }

    /// Checks that every remaining scout belongs to a pod that may still be selected, and is that pod's only scout for
    /// its purpose.
    fn check_scouts(
        &self,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
        is_search: bool,
        hooks: &[HookKind],
    ) {
        let mut about = BTreeSet::new();
        for scout in self.own_runs().filter(|run| !run.read.terminating) {
            let Some(hook) = scouted_hook(&scout.api.metadata) else {
                continue;
            };
            let pod = pods
                .iter()
                .find(|pod| scout.read.pod_uid.as_ref() == Some(&pod.id.uid));
            let is_needed = pod.is_some_and(|pod| {
                let is_old = self.is_old(status, pod.read.revision());
                let is_of_deletion = is_search && may_be_for_deletion(&scout.api.metadata);
                is_of_deletion || hooks.contains(&hook) && is_old
            });
            assert!(
                is_needed && about.insert((is_before_update(&scout.api.metadata), &scout.read.pod_uid)),
                "scout {} is left over: {}",
                scout.id.name,
                self.describe()
            );
        }
    }

    /// Checks that no surplus pod whose hook has failed stays selected while an idle pod could be selected in its
    /// place. Old pods that the update has left go first, so that pods are compared only where there are none.
    fn check_idle_first(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
        scouts: &[&Rc<RunObject>],
    ) {
        let spec = &self.server.workloads.get(FLEET).unwrap().api.spec;
        let known = self.known_at_rest();
        if pods.iter().any(|pod| self.is_old(status, pod.read.revision())) {
            return;
        }
        let has_failed = |pod: &PodObject| {
            let mut runs = self.server.runs.iter();
            runs.any(|run| {
                run.read.kind == Some(HookKind::PreDelete)
                    && run.read.pod_uid.as_ref() == Some(&pod.id.uid)
                    && is_given_up(run)
                    && !run.read.terminating
            })
        };
        let mut busy = pods.iter().filter(|pod| {
            let intent = pod.read.annotation(names::CHOSEN_FOR).unwrap_or_default();
            let is_named = wanted.pods_to_delete.contains(&pod.id.name)
                || has_valid_request(pod, spec, &known, self.now);
            intent.starts_with("delete@") && !is_named && has_failed(pod)
        });
        let has_reason = |pod: &PodObject| {
            let mut own = scouts
                .iter()
                .filter(|scout| scout.read.pod_uid.as_ref() == Some(&pod.id.uid));
            own.any(|scout| is_given_up(scout))
        };
        let mut idle = pods.iter().filter(|pod| {
            pod.read.annotation(names::DELETING).is_none()
                && self.behaviours.get(&pod.id.uid) == Some(&Behaviour::YES)
                && self.serves(pod, 0, self.now)
                && !has_reason(pod)
        });
        if let (Some(busy), Some(idle)) = (busy.next(), idle.next()) {
            panic!(
                "{} is selected and busy, and {} is idle: {}",
                busy.id.name,
                idle.id.name,
                self.describe()
            );
        }
    }
}
