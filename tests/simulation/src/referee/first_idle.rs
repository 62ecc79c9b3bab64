//! Checks the selection policy `FirstIdle`. Scouts are created only while there are too many pods, one for each pod,
//! and none replaces another without a cause. At rest, none is left over, every pod too many is selected or searched
//! for, and no busy pod is selected in place of an idle one.
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

use super::removal::has_valid_request;
use super::{Acted, Referee};
use crate::endpoint::Behaviour;
use crate::games::Seen;
use crate::objects::{PodObject, RunObject, is_deleting};
use crate::server::Server;
use crate::world::{FLEET, World};

/// Intent of scouts, as documented.
pub(super) const INTENT: &str = "scout";
/// Maximum number of scouts of a pod while nothing else happens: one, and another if time alone has changed something.
const MOST: usize = 2;

/// Scouts that were created since something else happened, by the UID of the pod.
#[derive(Debug, Default, Clone)]
pub(super) struct Scouted {
    /// Number of changes by anyone but the operators until then.
    foreign: u64,
    counts: BTreeMap<String, usize>,
}

fn is_of_scout(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    let kind = labels.and_then(|labels| labels.get(label::TYPE));
    kind.is_some_and(|kind| kind == hook_kind::SCOUT)
}

/// Whether a run is a scout.
pub fn is_scout(run: &RunObject) -> bool {
    is_of_scout(&run.api.metadata)
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
fn is_given_up(run: &RunObject) -> bool {
    run.read.terminating || run.read.phase.is_final() && !run.read.is_measured_success()
}

impl Referee {
    /// Records a change of something that scouts may depend on, other than the pods, the nodes and the workload.
    pub fn something_else_happens(&mut self) {
        self.scouted.counts.clear();
    }

    /// Checks the creation of a scout. Every other write but the removal of a run may be a reason for a new one.
    pub(super) fn follow_search(&mut self, action: &Action, acted: &Acted<'_>) {
        let new = match action {
            Action::CreateRun(new) if is_of_scout(&new.metadata) => new,
            Action::DeleteRun(_) => return,
            _ => return self.something_else_happens(),
        };
        let seen = acted.seen;
        assert!(
            is_search(seen),
            "a scout without a search: {} pods: {new:#?} {:#?}",
            seen.active,
            seen.object().spec
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
        let pod = new.metadata.labels.as_ref().unwrap()[label::POD_UID].clone();
        let count = self.scouted.counts.entry(pod).or_default();
        *count += 1;
        assert!(
            *count <= MOST,
            "scout {count} of a pod, and nothing has happened since the first: {new:#?}"
        );
    }

    /// Checks that a new scout is the only one of its pod. Another one may exist until it is deleted if it is about
    /// another revision, another instance id or another hook, and those of people are ignored.
    pub fn check_only_scout(&self, run: &RunObject, server: &Server) {
        if !is_scout(run) {
            return;
        }
        let mut others = server.runs.iter().filter(|other| {
            is_scout(other) && other.id.uid != run.id.uid && self.asked.contains_key(&other.id.uid)
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

    /// Checks, while nothing happens, the scouts and the status of a search. `missing`: number of pods too many that
    /// are not selected.
    pub(super) fn check_search(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
        missing: usize,
    ) {
        let object = self.server.workloads.get(FLEET).unwrap();
        let own = |run: &&Rc<RunObject>| run.id.owner.as_deref() == Some(object.uid()) && is_scout(run);
        let scouts: Vec<_> = self.server.runs.iter().filter(own).collect();
        let left: Vec<_> = scouts.iter().filter(|scout| !scout.read.terminating).collect();
        let is_search =
            is_first_idle(&object.api.spec) && !self.is_deleting() && pods.len() > wanted.replicas;
        assert!(
            is_search || left.is_empty() && status.first_idle.is_none(),
            "a search goes on without an end: {}",
            self.describe()
        );
        let about: BTreeSet<_> = left
            .iter()
            .filter_map(|scout| scout.read.pod_uid.as_ref())
            .collect();
        let exists = |uid: &&String| pods.iter().any(|pod| pod.id.uid == **uid);
        assert!(
            about.len() == left.len() && about.iter().all(exists),
            "scouts are left over: {}",
            self.describe()
        );
        let running = left.iter().filter(|scout| !scout.read.phase.is_final()).count();
        let search = status.first_idle.unwrap_or_default();
        let reported = search.candidates.min(search.needed);
        assert!(
            missing <= running && missing <= usize::try_from(reported).unwrap(),
            "{missing} pods too many are neither selected nor searched for, with {running} candidates: {}",
            self.describe()
        );
        if is_search {
            self.check_idle_first(wanted, status, pods, &scouts);
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
        let nodes = self.nodes_at_rest();
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
                || has_valid_request(pod, spec, &nodes, self.now);
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
