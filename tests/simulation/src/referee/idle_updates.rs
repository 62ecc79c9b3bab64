//! Checks updates with the selection policy `FirstIdle`. Scouts are created only for old pods, with a hook that runs
//! before the update, and not while it is paused. At rest, no idle pod waits for its update while a slot is free, or
//! while only busy pods have the slots, and no other pod waits unless idle pods are searched for.

use std::rc::Rc;

use gamedeployment_core::hook_kind::HookKind;
use gamedeployment_core::workload::{UpdateType, Workload};
use shared_api::names::pod as names;
use shared_api::{GameDeploymentSpec, GameDeploymentStatus};

use super::first_idle::{is_given_up, scouted_hook};
use super::has_hook;
use super::notices::is_notice;
use super::removal::has_valid_request;
use super::rollback::{in_force, targets};
use crate::endpoint::Behaviour;
use crate::games::Seen;
use crate::objects::{PodObject, RunObject};
use crate::setup::strategy_of;
use crate::world::{FLEET, World};

/// Returns the hooks whose scouts look for idle pods to update; none if idle pods are not updated first.
pub(super) fn hooks_of_update(spec: &GameDeploymentSpec) -> Vec<HookKind> {
    let strategy = spec.update_strategy.as_ref();
    let policy = strategy.and_then(|strategy| strategy.selection_policy.as_deref());
    if policy != Some("FirstIdle") {
        return Vec::new();
    }
    let in_place = strategy.and_then(|strategy| strategy.in_place_update_strategy.as_ref());
    let fallback = in_place.and_then(|in_place| in_place.fallback.as_deref());
    let type_ = strategy.and_then(|strategy| strategy.type_.as_deref());
    let (order, most) = match type_.unwrap_or("RollingUpdate") {
        "RollingUpdate" => ([HookKind::PreDelete, HookKind::PreInplace], 1),
        "InplaceUpdate" if fallback == Some("Recreate") => ([HookKind::PreInplace, HookKind::PreDelete], 2),
        "InplaceUpdate" => ([HookKind::PreInplace, HookKind::PreDelete], 1),
        _ => return Vec::new(),
    };
    let set = order.into_iter().filter(|kind| has_hook(spec, *kind));
    set.take(most).collect()
}

/// Whether a decision may have searched for idle pods to update, with this hook and among pods of this revision.
pub(super) fn may_search(seen: &Seen, hook: HookKind, revision: &str) -> bool {
    let object = seen.object();
    let strategy = object.spec.update_strategy.as_ref();
    let is_paused = strategy.is_some_and(|strategy| strategy.paused == Some(true));
    let status = object.status.as_ref();
    // A pause by a canary step does not apply to a rollback.
    let is_rollback = status.is_some_and(|status| status.rollback.is_some());
    // The aborted revision may be lost.
    let is_uncertain = is_rollback && in_force(seen).is_none();
    object.metadata.deletion_timestamp.is_none()
        && hooks_of_update(&object.spec).contains(&hook)
        && (!is_paused || is_rollback)
        && (is_uncertain || !targets(seen).contains(&revision))
}

/// Returns the minimum number of pods that stay at old revisions.
fn to_keep(wanted: &Workload, status: &GameDeploymentStatus) -> usize {
    if wanted.steps.is_empty() && status.rollback.is_none() {
        wanted.partition.partition(wanted.replicas)
    } else {
        0
    }
}

/// Whether a run has found its pod busy, or can no longer find it idle.
fn is_busy(run: &RunObject) -> bool {
    let results = run.api.status.iter().flat_map(|status| &status.metric_results);
    let mut negative =
        results.filter(|result| result.failed > 0 || result.inconclusive > 0 || result.error > 0);
    is_given_up(run) || negative.next().is_some()
}

/// Returns the mode of the game, which cannot be changed in place.
fn mode_of(template: &serde_json::Value) -> Option<&str> {
    template["spec"]["containers"][0]["env"][0]["value"].as_str()
}

impl World {
    /// Returns the hooks whose scouts may exist, while nothing happens, because pods wait for their update.
    pub(super) fn hooks_of_search(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
    ) -> Vec<HookKind> {
        let is_old = |pod: &&&Rc<PodObject>| self.is_old(status, pod.read.revision());
        let has_update = pods.iter().filter(is_old).count() > to_keep(wanted, status);
        let is_paused = wanted.paused && status.rollback.is_none();
        // An updated pod without a success of its hook stops the update.
        let is_stopped = self.own_runs().any(|run| {
            let is_refused = run.read.phase.is_final() && !run.read.is_measured_success();
            run.read.kind == Some(HookKind::PostInplace) && is_refused && !run.read.terminating
        });
        if !has_update || is_paused || is_stopped || self.is_deleting() {
            return Vec::new();
        }
        let object = self.server.workloads.get(FLEET);
        object.map_or_else(Vec::new, |object| hooks_of_update(&object.api.spec))
    }

    /// Returns the HookRuns of a pod without its scouts.
    fn runs_before_change(&self, pod: &PodObject) -> impl Iterator<Item = &Rc<RunObject>> {
        let uid = pod.id.uid.clone();
        self.own_runs()
            .filter(move |run| run.read.kind.is_some() && run.read.pod_uid.as_ref() == Some(&uid))
    }

    /// Whether a pod is deleted regardless of the update: it is selected for deletion, or its deletion is requested.
    fn leaves(&self, wanted: &Workload, pod: &PodObject) -> bool {
        let spec = &self.server.workloads.get(FLEET).unwrap().api.spec;
        let intent = pod.read.annotation(names::CHOSEN_FOR).unwrap_or_default();
        intent.starts_with("delete@")
            || wanted.pods_to_delete.contains(&pod.id.name)
            || has_valid_request(pod, spec, &self.known_at_rest(), self.now)
    }

    /// Whether a pod has served for as long as the spec requires.
    fn is_available_at_rest(&self, pod: &PodObject) -> bool {
        let spec = &self.server.workloads.get(FLEET).unwrap().api.spec;
        self.serves(pod, spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    /// Returns a lower bound of the number of pods that could be updated now. Slots that busy pods have count as free,
    /// because idle ones take them.
    fn free_slots(&self, wanted: &Workload, status: &GameDeploymentStatus, pods: &[&Rc<PodObject>]) -> usize {
        let serves = |pod: &PodObject| self.is_available_at_rest(pod);
        let available = pods.iter().filter(|pod| serves(pod)).count();
        let serving = pods.iter().filter(|pod| self.may_serve(pod)).count();
        let floor = wanted.replicas.saturating_sub(wanted.max_unavailable);
        let has_slot = |pod: &&&Rc<PodObject>| {
            let may_yield = serves(pod) && self.is_old(status, pod.read.revision());
            let keeps = self
                .runs_before_change(pod)
                .any(|run| !is_busy(run) || !may_yield);
            // An updated pod must first become available. An old pod that does not serve goes first.
            keeps || !serves(pod) || self.leaves(wanted, pod)
        };
        let taken = pods.iter().filter(has_slot).count();
        let search = status.first_idle.as_ref().and_then(|searches| searches.scale);
        let missing = search.map_or(0, |search| usize::try_from(search.needed).unwrap());
        available.min(serving).saturating_sub(floor + taken + missing)
    }

    /// Whether old pods may wait for their update although no hook runs for them: no slot is free, or idle pods are
    /// searched for.
    pub(super) fn waits_for_idle(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
    ) -> bool {
        let is_old = |run: &&Rc<RunObject>| {
            let mut pods = pods.iter();
            let pod = pods.find(|pod| run.read.pod_uid.as_ref() == Some(&pod.id.uid));
            pod.is_some_and(|pod| self.is_old(status, pod.read.revision()))
        };
        let is_running = |run: &Rc<RunObject>| {
            let ends = run.read.terminating || run.read.phase.is_final();
            !ends && !is_notice(&run.api.metadata)
        };
        let search = status.first_idle.as_ref().and_then(|searches| searches.update);
        !self.hooks_of_search(wanted, status, pods).is_empty()
            && search.is_some()
            && (self.own_runs().filter(is_old).any(is_running) || self.free_slots(wanted, status, pods) == 0)
    }

    /// Checks, while nothing happens and only hooks hold up the update, that no idle pod waits for it while a slot is
    /// free, or while only busy pods have the slots.
    pub(super) fn check_idle_updates(
        &self,
        wanted: &Workload,
        status: &GameDeploymentStatus,
        pods: &[&Rc<PodObject>],
    ) {
        let hooks = self.hooks_of_search(wanted, status, pods);
        if hooks.is_empty() || self.waits_for_more_than_hooks(wanted, status) {
            return;
        }
        let is_old = |pod: &&&Rc<PodObject>| self.is_old(status, pod.read.revision());
        let to_update = |pod: &&&Rc<PodObject>| {
            is_old(pod) && self.is_available_at_rest(pod) && !self.leaves(wanted, pod)
        };
        let (old, left) = (
            pods.iter().filter(is_old).count(),
            pods.iter().filter(to_update).count(),
        );
        let partition = to_keep(wanted, status);
        let replaced = old.min(wanted.replicas).saturating_sub(partition);
        let surge = if wanted.update == UpdateType::Rolling {
            wanted.max_surge.min(replaced)
        } else {
            0
        };
        let is_surplus = pods.len() > wanted.replicas + surge;
        let slots = self.free_slots(wanted, status, pods);
        if is_surplus || left <= partition || slots == 0 {
            return;
        }
        let candidates = wanted.update_selection.candidates(pods.len());
        let limits = (slots, candidates.unwrap_or_default().max(slots));
        let mut idle = pods
            .iter()
            .filter(to_update)
            .filter(|pod| self.could_be_found(wanted, pod, limits));
        if let Some(idle) = idle.next() {
            panic!(
                "{} is idle and waits for its update, with {slots} slots for it: {}",
                idle.id.name,
                self.describe()
            );
        }
    }

    /// Whether anything but hooks may hold up the update, or hooks are about to be rerun.
    fn waits_for_more_than_hooks(&self, wanted: &Workload, status: &GameDeploymentStatus) -> bool {
        let mut spec = self.server.workloads.get(FLEET).unwrap().api.spec.clone();
        let is_retried = HookKind::ALL.into_iter().any(|kind| {
            let strategy = strategy_of(&mut spec, kind).as_ref();
            strategy.is_some_and(|strategy| strategy.retry == Some(true))
        });
        let mut conditions = status.conditions.iter();
        let is_blocked = conditions.any(|known| known.type_ == "HooksResolved" && known.status != "True");
        let is_blocked = is_blocked || self.says("ScaleBlocked", "WriteFailed");
        is_retried || is_blocked || status.rollback.is_some() || !wanted.lifecycle_hooks.is_empty()
    }

    /// Whether a pod is idle, and its hook could have found that out: it can run, it has not failed, and other
    /// candidates have not taken all places.
    fn could_be_found(
        &self,
        wanted: &Workload,
        pod: &PodObject,
        (slots, candidates): (usize, usize),
    ) -> bool {
        let object = self.server.workloads.get(FLEET).unwrap();
        let is_own = |run: &RunObject| run.id.owner.as_deref() == Some(object.uid());
        let about: Vec<_> = self
            .server
            .runs
            .iter()
            .filter(|run| run.read.pod_uid.as_ref() == Some(&pod.id.uid))
            .collect();
        let is_excluded = about.iter().any(|run| is_given_up(run) || !is_own(run));
        let has_succeeded = about.iter().any(|run| run.read.is_measured_success());
        // Twice as many scouts as free slots run before any of them has measured something.
        let scouts = self.own_runs().filter(|run| {
            let ends = run.read.terminating || run.read.phase.is_final();
            scouted_hook(&run.api.metadata).is_some() && !ends
        });
        let (busy, unmeasured): (Vec<_>, Vec<_>) = scouts.partition(|scout| is_busy(scout));
        let is_searched = unmeasured.len() >= 2 * slots || busy.len() + unmeasured.len() >= candidates;
        let now = serde_json::to_value(&pod.api).unwrap();
        let can_change = wanted.update != UpdateType::InPlace
            || mode_of(&now) == mode_of(&object.api.spec.template.value());
        self.behaviours.get(&pod.id.uid) == Some(&Behaviour::YES)
            && pod.read.annotation(names::DELETING).is_none()
            && can_change
            && !is_excluded
            && (has_succeeded || !is_searched)
    }
}
