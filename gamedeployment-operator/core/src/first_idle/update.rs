//! Updates with the selection policy `FirstIdle`: the pods whose hook succeeds first are updated first.
//!
//! An available pod whose hook has not run is a candidate, and has a [scout](crate::gate::scout) while slots are free.
//! Slots go to the candidates whose scouts have succeeded; then their own hooks run as with the other policy. A pod
//! that its own hook finds busy is a candidate again: it keeps its slot only until an idle one takes it.
//!
//! Candidates whose hook cannot succeed without intervention take slots only if too few others may turn out to be idle,
//! so that they are reported as with the other policy.

use std::cmp::Reverse;

use super::{Candidate, Scouts, SearchProgress, create, keep, possibly_idle};
use crate::budget::DisruptionBudget;
use crate::dry_run::recreates_serving_pod;
use crate::facts::{Facts, PodFacts};
use crate::gate::{GateState, Intent, Measured, Run, ScoutState};
use crate::plan::PartialPlan;
use crate::stages::GrantedPod;
use crate::workload::{SelectionPolicy, UpdateType};

/// Search for idle pods among those to update.
pub struct UpdateSearch<'a> {
    /// Candidates that have no slot, and those that got one and whose hook has not run.
    candidates: Vec<UpdateCandidate<'a>>,
    /// Pods that could be updated now if they were idle. Slots of busy pods count as free.
    needed: usize,
    /// Whether no candidate may be updated, idle or not.
    is_blocked: bool,
    /// Whether all slots are taken.
    waits_for_slot: bool,
}

impl UpdateSearch<'_> {
    /// Returns the names of the candidates that may be selected soon: no measurement has found them busy.
    pub fn prospects(&self) -> impl Iterator<Item = &str> {
        let is_prospect = |candidate: &&UpdateCandidate<'_>| match &candidate.candidate.state {
            ScoutState::Running(run) => run.measured == Measured::Positive,
            ScoutState::NotRun(_)
            | ScoutState::Idle(_)
            | ScoutState::Stale
            | ScoutState::WithoutOwner(_)
            | ScoutState::NeedsNoHook => true,
            ScoutState::Overdue(_) | ScoutState::Hopeless(_) => false,
        };
        let prospects = self.candidates.iter().filter(is_prospect);
        prospects.map(|candidate| candidate.candidate.pod.pod.name.as_str())
    }
}

/// A candidate for the update.
struct UpdateCandidate<'a> {
    candidate: Candidate<'a>,
    /// Its own HookRun, if that has found it busy.
    own: Option<&'a Run>,
    has_slot: bool,
    is_fallback: bool,
}

/// Returns whether idle pods may be updated before this one: the policy applies, and the pod is available.
#[must_use]
pub fn may_wait(facts: &Facts<'_>, pod: &PodFacts<'_>) -> bool {
    let has_policy = match facts.workload.update_selection {
        SelectionPolicy::Ranked => false,
        SelectionPolicy::FirstIdle { .. } => true,
    };
    let is_gradual = match facts.workload.update {
        UpdateType::Rolling | UpdateType::InPlace => true,
        UpdateType::HotPatch | UpdateType::OnDelete | UpdateType::Recreate => false,
    };
    has_policy && is_gradual && pod.is_available()
}

/// Returns whether the hook of a pod has not run yet, or has found the pod busy.
#[must_use]
pub fn waits(pod: &PodFacts<'_>, intent: &Intent, gate_state: &GateState<'_>) -> bool {
    let is_busy = |run: &Run| run.measured == Measured::Negative;
    match gate_state {
        // A pod whose selection is recorded keeps its turn until its hook has run.
        GateState::NotRun(_) => !pod.is_recorded_for(intent),
        // An expired or edited success is reported, and the hook runs again.
        GateState::Stale(run, stale_reason) => stale_reason.reason.is_none() && is_busy(run),
        GateState::Running(run) => is_busy(run),
        GateState::Open(_) | GateState::Consumed(_) | GateState::Unsuccessful(_) | GateState::Blocked(_) => {
            false
        }
    }
}

/// Slots and places that candidates can take.
struct Room {
    slots: DisruptionBudget,
    /// Number of further candidates that may be updated.
    open: usize,
}

impl Room {
    /// Number of candidates that could be updated now.
    fn left(&self) -> usize {
        self.open.min(self.slots.left())
    }

    /// Gives slots to pods in this order, at most `limit`. Returns the number of slots given.
    fn give(&mut self, pods: &mut [GrantedPod<'_>], order: &[usize], limit: usize) -> usize {
        let mut given = 0;
        for at in order {
            let pod = &mut pods[*at];
            if given < limit && self.open > 0 && !pod.granted && self.slots.take(pod.facts.service) {
                pod.granted = true;
                self.open -= 1;
                given += 1;
            }
        }
        given
    }
}

/// Gives the slots that are left to candidates, at most `open` of them. Returns the selected pods, and the search for
/// idle ones, unless all candidates get slots.
#[must_use]
pub fn grant<'a>(
    facts: &Facts<'_>,
    mut pods: Vec<GrantedPod<'a>>,
    slots: DisruptionBudget,
    open: usize,
) -> (Vec<GrantedPod<'a>>, Option<UpdateSearch<'a>>) {
    let all = (0..pods.len()).filter(|at| pods[*at].scout.is_some());
    // Nothing begins while the API server may reject the successors.
    let is_blocked = |pod: &GrantedPod<'_>| facts.recreation_block.is_some() && recreates_serving_pod(pod);
    let (blocked, mut candidates): (Vec<usize>, Vec<usize>) = all.partition(|at| is_blocked(&pods[*at]));
    // Pods that cannot be updated in place are the first to stay.
    candidates.sort_by_key(|at| is_fallback(facts, &pods[*at]));
    let mut room = Room { slots, open };
    if candidates.len() <= room.left() {
        room.give(&mut pods, &candidates, usize::MAX);
        if blocked.is_empty() {
            return (pods, None);
        }
    }
    let needed = give_in_order(facts, &mut pods, &candidates, &mut room);
    let mut found = Vec::with_capacity(blocked.len() + candidates.len());
    // Candidates without a slot are not selected. A selection that is recorded is cleared.
    pods.retain_mut(|pod| {
        let Some(candidate) = UpdateCandidate::of(facts, pod) else {
            return true;
        };
        let stays = candidate.has_slot || is_blocked(pod);
        if open > 0 || candidate.is_exchanged() {
            found.push(candidate);
        }
        stays
    });
    found.sort_by_key(|candidate| candidate.is_fallback);
    let search = (!found.is_empty()).then_some(UpdateSearch {
        candidates: found,
        needed,
        is_blocked: open == 0 || candidates.is_empty(),
        waits_for_slot: room.slots.left() == 0,
    });
    (pods, search)
}

/// Gives slots to candidates: to idle ones, to those that keep theirs although they are busy, and to those whose hook
/// cannot succeed. Returns how many more could be updated now if they were idle.
fn give_in_order(
    facts: &Facts<'_>,
    pods: &mut [GrantedPod<'_>],
    candidates: &[usize],
    room: &mut Room,
) -> usize {
    let of = |pods: &[GrantedPod<'_>], is: fn(&GrantedPod<'_>) -> bool| {
        let found = candidates.iter().copied().filter(|at| is(&pods[*at]));
        found.collect::<Vec<usize>>()
    };
    let mut idle = of(pods, |pod| success(pod).is_some());
    // The latest success is the most reliable. A pod whose hook is about to run keeps its turn.
    idle.sort_by_key(|at| {
        let pod = &pods[*at];
        let begins = facts.view.cluster.is_new_question(pod.facts.pod);
        let since = success(pod).and_then(|run| run.completed);
        (is_fallback(facts, pod), !begins, Reverse(since))
    });
    room.give(pods, &idle, usize::MAX);
    let left = candidates.iter().filter(|at| !pods[**at].granted).count();
    let needed = room.left().min(left);
    let busy = of(pods, is_busy);
    let kept = room.give(pods, &busy, usize::MAX);
    let scouts = candidates.iter().map(|at| &pods[*at]).filter(|pod| !pod.granted);
    let hopeful = hopeful(facts, scouts.filter_map(|pod| pod.scout.as_ref()), needed);
    let hopeless = of(pods, |pod| {
        let scout = pod.scout.as_ref();
        !is_busy(pod) && scout.is_some_and(|scout| scout.idle().is_none() && !scout.is_hopeful())
    });
    room.give(pods, &hopeless, needed.saturating_sub(kept + hopeful));
    needed
}

impl<'a> UpdateCandidate<'a> {
    fn of(facts: &Facts<'_>, pod: &mut GrantedPod<'a>) -> Option<Self> {
        let candidate = Candidate {
            pod: pod.facts,
            state: pod.scout.take()?,
        };
        Some(Self {
            candidate,
            own: pod.gate_state.run(),
            has_slot: pod.granted,
            is_fallback: is_fallback(facts, pod),
        })
    }

    /// Whether the pod has lost its slot, and its selection is not cleared yet.
    fn is_exchanged(&self) -> bool {
        self.own.is_some() && !self.has_slot && self.candidate.pod.recorded_selection.is_some()
    }
}

/// Whether the pod's own hook is running. It has then found the candidate busy, and the scout is out of date.
fn is_busy(pod: &GrantedPod<'_>) -> bool {
    pod.gate_state.run().is_some()
}

/// Whether the pod is recreated only because it cannot be updated in place.
fn is_fallback(facts: &Facts<'_>, pod: &GrantedPod<'_>) -> bool {
    facts.workload.update.is_in_place() && pod.intent.deletes()
}

/// Returns the scout that found the pod idle.
fn success<'a>(pod: &GrantedPod<'a>) -> Option<&'a Run> {
    let scout = pod.scout.as_ref().filter(|_| !is_busy(pod))?;
    scout.idle()
}

/// Number of candidates that may turn out to be idle: those whose scouts run, or will run now. Once as many scouts as
/// run at first bring no verdict, only those that run: the hooks of all pods may have the same trouble.
fn hopeful<'s, 'a: 's>(
    facts: &Facts<'_>,
    scouts: impl Iterator<Item = &'s ScoutState<'a>> + Clone,
    needed: usize,
) -> usize {
    let taken = scouts.clone().filter(|scout| scout.takes_place()).count();
    let without_verdict = scouts.clone().filter(|scout| brings_no_verdict(scout));
    let free = if without_verdict.count() < at_first(needed) {
        limit(facts, needed).saturating_sub(taken)
    } else {
        0
    };
    possibly_idle(scouts, free)
}

/// Number of scouts that run before any has measured something.
fn at_first(needed: usize) -> usize {
    2 * needed
}

/// Whether a scout is not measured, or its measurements bring no verdict.
fn brings_no_verdict(scout: &ScoutState<'_>) -> bool {
    match scout {
        ScoutState::Overdue(_) => true,
        ScoutState::Hopeless(Some(run)) => !run.phase.is_final(),
        ScoutState::NeedsNoHook
        | ScoutState::NotRun(_)
        | ScoutState::Running(_)
        | ScoutState::Idle(_)
        | ScoutState::Stale
        | ScoutState::WithoutOwner(_)
        | ScoutState::Hopeless(None) => false,
    }
}

/// Maximum number of scouts: never fewer than slots that may become free.
fn limit(facts: &Facts<'_>, needed: usize) -> usize {
    let workload = facts.workload;
    let slots = workload.max_unavailable.saturating_add(workload.max_surge);
    super::limit(workload.update_selection, facts, needed.max(slots))
}

/// Decides which scouts of candidates for the update are kept and which are created. `updated`: selected pods.
#[must_use]
pub fn plan_scouts<'a>(
    facts: &Facts<'_>,
    search: UpdateSearch<'a>,
    updated: &[GrantedPod<'_>],
    scouts: &mut Scouts<'a>,
) -> PartialPlan {
    let mut part = PartialPlan::default();
    let limit = limit(facts, search.needed);
    // Without its run, a pod whose selection is not cleared yet would no longer be known as busy.
    let exchanged = search
        .candidates
        .iter()
        .filter(|candidate| candidate.is_exchanged());
    let exchanged = exchanged.filter_map(|candidate| candidate.own);
    scouts.kept.extend(exchanged.map(|run| run.uid.as_str()));
    // The scout of a pod that its own hook has found busy is out of date.
    let searched = search
        .candidates
        .iter()
        .filter(|candidate| candidate.own.is_none());
    let states = searched.clone().map(|candidate| &candidate.candidate);
    let places = keep(facts, states.clone(), limit, scouts, &mut part);
    let (mut unmeasured, mut busy, mut troubled) = (0, 0, 0);
    for candidate in states {
        match &candidate.state {
            ScoutState::Running(run) if run.measured == Measured::Negative => busy += 1,
            ScoutState::Running(_)
            | ScoutState::Overdue(_)
            | ScoutState::Stale
            | ScoutState::WithoutOwner(_) => unmeasured += 1,
            ScoutState::Hopeless(Some(run)) => {
                busy += 1;
                troubled += usize::from(!run.phase.is_final());
            }
            ScoutState::NeedsNoHook
            | ScoutState::NotRun(_)
            | ScoutState::Idle(_)
            | ScoutState::Hopeless(None) => {}
        }
    }
    scouts.holds_update = search.needed > 0 && busy + unmeasured > 0;
    // The more pods are busy, the more candidates it takes to find an idle one.
    let wanted = if search.needed > 0 {
        at_first(search.needed) + busy
    } else {
        0
    };
    // Scouts that keep failing with errors go on as well.
    let free = places.saturating_sub(troubled);
    let missing = free.min(wanted.saturating_sub(unmeasured));
    let without_slot = searched.filter(|candidate| !candidate.has_slot);
    let without_slot = without_slot.map(|candidate| &candidate.candidate);
    let created = create(facts, without_slot, missing, &mut part);
    let is_selected = |pod: &&GrantedPod<'_>| match pod.intent {
        Intent::Recreate(_) | Intent::InPlace(_) => pod.granted && !pod.surplus,
        Intent::Delete | Intent::HotPatch(_) | Intent::Confirm(_) => false,
    };
    // A search that is blocked is reported only while it has scouts.
    let is_search = !search.is_blocked || places < limit;
    scouts.waits_for_slot = is_search && search.waits_for_slot && search.needed == 0;
    scouts.searches.update = is_search.then(|| SearchProgress {
        candidates: limit - places + created,
        selected: updated.iter().filter(is_selected).count(),
        needed: search.needed,
    });
    part
}

#[cfg(test)]
mod tests;
