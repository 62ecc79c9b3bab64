//! Selection policy `FirstIdle`: the pods whose hook succeeds first are selected for deletion first. For
//! updates, see [`update`].
//!
//! Before they are selected, pods are candidates, and each has a [scout](crate::gate::scout). A candidate whose scout
//! has succeeded is selected, and its `PreDelete` hook runs as with the other policy. If that hook then finds the pod
//! busy, the pod stays selected until another idle pod takes its place.
//!
//! Pods whose hook cannot succeed without intervention are selected last, in deletion order, so that they are
//! reported as with the other policy.

use std::collections::BTreeSet;

use crate::budget::DisruptionBudget;
use crate::facts::{Facts, PodFacts};
use crate::gate::{Gate, GateState, Intent, Measured, PodRef, ScoutState};
use crate::plan::{Action, PartialPlan, RunRef};
use crate::scale::ScaleDiff;
use crate::scale_down::{selected_since, was_selected};
use crate::stages::{GrantedPod, SelectedPod};
use crate::steps;
use crate::workload::SelectionPolicy;

pub mod update;

use update::UpdateSearch;

/// Search for idle pods among those that are not selected.
pub struct Search<'a> {
    candidates: Vec<Candidate<'a>>,
    /// UIDs of the HookRuns of busy pods whose places idle pods take.
    exchanged: Vec<&'a str>,
    /// Pods that must still be found.
    pub needed: usize,
    /// Number of these that will be old pods.
    pub needed_old: usize,
    /// Whether more candidates are wanted among the old pods and among the updated ones.
    wanted: Wanted,
}

/// A pod that may be selected.
struct Candidate<'a> {
    pod: &'a PodFacts<'a>,
    state: ScoutState<'a>,
}

/// Scouts that this decision leaves.
#[derive(Debug, Default)]
pub struct Scouts<'a> {
    /// UIDs of the runs that are kept.
    pub kept: Vec<&'a str>,
    /// Progress of the searches.
    pub searches: Searches,
    /// Whether candidates for the update wait for a slot, whether idle or not.
    pub waits_for_slot: bool,
    /// Whether the update would go on if more of the candidates were idle.
    pub holds_update: bool,
}

/// Progress of both searches; `None` while there is no such search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searches {
    /// Search for pods to delete.
    pub scale: Option<SearchProgress>,
    /// Search for pods to update.
    pub update: Option<SearchProgress>,
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// Pods that use up places for candidates.
    pub candidates: usize,
    /// Surplus pods that are selected, or pods that are selected for the update.
    pub selected: usize,
    /// Surplus pods that must still be found, or pods that could be updated now if they were idle.
    pub needed: usize,
}

/// Revisions at which candidates are wanted.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    old: bool,
    updated: bool,
}

/// Pods left to select, and the pods that are not selected.
struct Room {
    left: ScaleDiff,
    old: usize,
    updated: usize,
}

impl Room {
    fn new(pods: &[SelectedPod<'_>], left: ScaleDiff) -> Self {
        let staying = |old: bool| {
            let stays = |pod: &&SelectedPod<'_>| pod.stays() && pod.facts.old == old;
            pods.iter().filter(stays).count()
        };
        let (old, updated) = (staying(true), staying(false));
        Self { left, old, updated }
    }

    /// Number of pods left to select that will be old ones.
    fn needed_old(&self) -> usize {
        let too_few_updated = self.left.delete.saturating_sub(self.updated);
        self.left.delete_old.min(self.old).max(too_few_updated)
    }

    /// Returns the revisions at which a pod may be selected.
    fn wanted(&self) -> Wanted {
        Wanted {
            old: self.needed_old() > 0,
            updated: self.left.delete > self.needed_old(),
        }
    }

    fn take(&mut self, pod: &mut SelectedPod<'_>) {
        self.left.take(pod, Intent::Delete);
        let staying = if pod.facts.old {
            &mut self.old
        } else {
            &mut self.updated
        };
        *staying = staying.saturating_sub(1);
    }

    /// Selects the first of these pods, at most `limit`, for which `may` returns true.
    fn take_first(
        &mut self,
        pods: &mut [SelectedPod<'_>],
        states: &[(usize, ScoutState<'_>)],
        limit: usize,
        mut may: impl FnMut(&PodFacts<'_>, &ScoutState<'_>) -> bool,
    ) {
        let mut left = limit;
        for (at, state) in states {
            let pod = &mut pods[*at];
            if left > 0 && pod.stays() && self.wanted().includes(pod.facts) && may(pod.facts, state) {
                self.take(pod);
                left -= 1;
            }
        }
    }
}

impl Wanted {
    fn includes(self, pod: &PodFacts<'_>) -> bool {
        if pod.old { self.old } else { self.updated }
    }

    /// Whether only pods of the other revision are wanted.
    fn excludes(self, pod: &PodFacts<'_>) -> bool {
        self.old != self.updated && !self.includes(pod)
    }
}

/// Returns whether idle pods are selected first: some pods stay, and a hook finds out which ones are idle.
#[must_use]
pub fn applies(facts: &Facts<'_>, pods: &[SelectedPod<'_>], left: ScaleDiff) -> bool {
    let has_policy = match facts.workload.selection {
        SelectionPolicy::Ranked => false,
        SelectionPolicy::FirstIdle { .. } => facts.workload.pre_delete.step.is_some(),
    };
    has_policy && left.delete > 0 && left.delete < pods.iter().filter(|pod| pod.stays()).count()
}

/// Selects idle pods. Pods are in deletion order.
#[must_use]
pub fn search<'a>(
    facts: &Facts<'a>,
    gate: &Gate<'a>,
    pods: &mut [SelectedPod<'a>],
    left: ScaleDiff,
) -> Search<'a> {
    let mut room = Room::new(pods, left);
    let mut slots = facts.budget();
    // A busy pod takes no slot until it is idle.
    for pod in pods.iter().filter(|pod| !pod.stays()) {
        if !is_busy(&gate.assess(pod.facts.pod, &Intent::Delete, &[])) {
            slots.take(pod.facts.service);
        }
    }
    let (ready, held) = selected_before(gate, pods, &mut slots);
    for at in ready {
        if room.left.delete > 0 {
            room.take(&mut pods[at]);
        }
    }
    let states = pods.iter().enumerate().filter_map(|(at, pod)| {
        let is_candidate = pod.stays() && !was_selected(pod, None);
        Some((at, state(gate, pod.facts).filter(|_| is_candidate)?))
    });
    let states: Vec<(usize, ScoutState<'a>)> = states.collect();
    room.take_first(pods, &states, usize::MAX, |pod, state| {
        matches!(state, ScoutState::NeedsNoHook) && slots.take(pod.service)
    });
    room.take_first(pods, &states, usize::MAX, |pod, state| {
        state.idle().is_some() && slots.take(pod.service)
    });
    // A pod that can be deleted takes the place of one that cannot.
    let wanted = room.wanted();
    let mut exchanged = Vec::new();
    for (at, run) in held {
        if room.left.delete > 0 {
            room.take(&mut pods[at]);
        } else {
            exchanged.extend(run);
        }
    }
    let limit = limit(facts.workload.selection, facts, room.left.delete);
    for old in [true, false] {
        let needed = if old {
            room.needed_old()
        } else {
            room.left.delete - room.needed_old()
        };
        let short = needed.saturating_sub(hopeful(pods, &states, old, wanted, limit));
        room.take_first(pods, &states, short, |pod, state| {
            pod.old == old && !state.is_hopeful()
        });
    }
    let candidate = |(at, state): (usize, ScoutState<'a>)| Candidate {
        pod: pods[at].facts,
        state,
    };
    let candidates = states.into_iter().map(candidate).collect();
    Search {
        candidates,
        exchanged,
        needed: room.left.delete,
        needed_old: room.needed_old(),
        wanted,
    }
}

/// Maximum number of candidates: never fewer than the pods that must be found.
fn limit(policy: SelectionPolicy, facts: &Facts<'_>, needed: usize) -> usize {
    let limit = policy.candidates(facts.pods.len());
    limit.unwrap_or_default().max(needed)
}

/// Number of candidates among the old or the updated pods that may turn out to be idle: those whose scouts run, or will
/// run now.
fn hopeful(
    pods: &[SelectedPod<'_>],
    states: &[(usize, ScoutState<'_>)],
    old: bool,
    wanted: Wanted,
    limit: usize,
) -> usize {
    let staying = states
        .iter()
        .filter(|(at, _)| pods[*at].stays() && !wanted.excludes(pods[*at].facts));
    let taken = staying.clone().filter(|(_, state)| state.takes_place()).count();
    let of_revision = staying.filter(|(at, _)| pods[*at].facts.old == old);
    possibly_idle(of_revision.map(|(_, state)| state), limit.saturating_sub(taken))
}

/// Number of candidates with these scouts that may turn out to be idle, if `free` more scouts can be created.
fn possibly_idle<'s, 'a: 's>(scouts: impl Iterator<Item = &'s ScoutState<'a>>, free: usize) -> usize {
    let hopeful = scouts.filter(|scout| scout.is_hopeful());
    let (running, waiting): (Vec<_>, Vec<_>) = hopeful.partition(|scout| scout.takes_place());
    running.len() + waiting.len().min(free)
}

/// A selected pod that cannot be deleted now: its position, and the UID of the run that found it busy or that keeps it.
type Held<'a> = (usize, Option<&'a str>);

/// Returns the positions of the pods that were selected before, the oldest selection first: those that can be deleted
/// once their hook succeeds, and the others. These are busy, their hook needs a person, or the budget has no slot.
fn selected_before<'a>(
    gate: &Gate<'a>,
    pods: &[SelectedPod<'a>],
    slots: &mut DisruptionBudget,
) -> (Vec<usize>, Vec<Held<'a>>) {
    let mut before: Vec<usize> = (0..pods.len())
        .filter(|at| was_selected(&pods[*at], None))
        .collect();
    before.sort_by_key(|at| selected_since(pods[*at].facts));
    let (mut ready, mut held) = (Vec::new(), Vec::new());
    for at in before {
        let pod = pods[at].facts;
        let gate_state = gate.assess(pod.pod, &Intent::Delete, &[]);
        if is_busy(&gate_state) || !slots.take(pod.service) {
            held.push((at, gate_state.run().map(|run| run.uid.as_str())));
        } else {
            ready.push(at);
        }
    }
    (ready, held)
}

fn is_busy(gate_state: &GateState<'_>) -> bool {
    let has_negative = matches!(gate_state, GateState::Running(run) if run.measured == Measured::Negative);
    has_negative || gate_state.is_held()
}

fn state<'a>(gate: &Gate<'a>, pod: &PodFacts<'a>) -> Option<ScoutState<'a>> {
    if pod.unread {
        // Nothing can be done to it now.
        return Some(ScoutState::Hopeless(None));
    }
    gate.scout(pod.pod)
}

/// Decides which scouts are kept and which are created. All others are deleted, since nothing refers to them.
#[must_use]
pub fn plan_scouts<'a>(
    facts: &Facts<'_>,
    search: Option<Search<'a>>,
    update: Option<UpdateSearch<'a>>,
    selected: &[GrantedPod<'_>],
) -> (Scouts<'a>, PartialPlan) {
    let mut scouts = Scouts::default();
    let mut part = search.map_or_else(PartialPlan::default, |search| {
        plan_for_deletion(facts, search, selected, &mut scouts)
    });
    let mut more = update.map_or_else(PartialPlan::default, |search| {
        update::plan_scouts(facts, search, selected, &mut scouts)
    });
    // Both searches may need the same scout.
    let planned: BTreeSet<&str> = part.actions.iter().filter_map(Action::object).collect();
    more.actions
        .retain(|action| action.object().is_none_or(|name| !planned.contains(name)));
    part.actions.append(&mut more.actions);
    more.wake.into_iter().for_each(|at| part.wake_at(at));
    (scouts, part)
}

fn plan_for_deletion<'a>(
    facts: &Facts<'_>,
    search: Search<'a>,
    selected: &[GrantedPod<'_>],
    scouts: &mut Scouts<'a>,
) -> PartialPlan {
    let mut part = PartialPlan::default();
    let limit = limit(facts.workload.selection, facts, search.needed);
    // Pods that wait for their update remain candidates.
    let is_taken = |pod: &&GrantedPod<'_>| pod.granted || pod.intent == Intent::Delete;
    let taken = selected
        .iter()
        .filter(is_taken)
        .map(|pod| pod.facts.pod.name.as_str());
    let taken: BTreeSet<&str> = taken.collect();
    let (chosen, candidates): (Vec<_>, Vec<_>) = search
        .candidates
        .iter()
        .filter(|candidate| !search.wanted.excludes(candidate.pod))
        .partition(|candidate| taken.contains(candidate.pod.pod.name.as_str()));
    // Without its run, a pod whose selection is not cleared yet would no longer be known as busy.
    scouts.kept.extend(&search.exchanged);
    // A scout is kept until the selection of its pod is recorded.
    let unrecorded = chosen
        .iter()
        .filter(|chosen| !chosen.pod.is_recorded_for(&Intent::Delete));
    let idle = unrecorded.filter_map(|chosen| chosen.state.idle());
    scouts.kept.extend(idle.map(|run| run.uid.as_str()));
    let places = keep(facts, candidates.iter().copied(), limit, scouts, &mut part);
    let wanted = candidates
        .iter()
        .copied()
        .filter(|candidate| search.wanted.includes(candidate.pod));
    let created = create(facts, wanted, places, &mut part);
    scouts.searches.scale = Some(SearchProgress {
        candidates: limit - places + created,
        selected: selected.iter().filter(|pod| pod.surplus).count(),
        needed: search.needed,
    });
    part
}

/// Keeps the scouts of these candidates, as far as there are places. Candidates keep their places even if the order of
/// the pods has changed. Returns the number of places left.
fn keep<'c, 'a: 'c>(
    facts: &Facts<'_>,
    candidates: impl Iterator<Item = &'c Candidate<'a>>,
    limit: usize,
    scouts: &mut Scouts<'a>,
    part: &mut PartialPlan,
) -> usize {
    let mut places = limit;
    for candidate in candidates {
        // The pod may need no hook soon.
        for at in steps::wakes(facts, candidate.pod, true) {
            part.wake_at(at);
        }
        let has_place = candidate.state.takes_place() && places > 0;
        places -= usize::from(has_place);
        match &candidate.state {
            ScoutState::Running(run) | ScoutState::Overdue(run) if has_place => {
                scouts.kept.push(&run.uid);
                run.await_take_up(&facts.workload.namespace, facts.now, part);
            }
            ScoutState::Idle(run) | ScoutState::Hopeless(Some(run)) => scouts.kept.push(&run.uid),
            ScoutState::WithoutOwner(run) => {
                let run = RunRef::without_owner(run, Some(PodRef::of(candidate.pod.pod)));
                part.actions.push(Action::DeleteRun(RunRef {
                    stale_warning: None,
                    ..run
                }));
            }
            ScoutState::Running(_)
            | ScoutState::Overdue(_)
            | ScoutState::Stale
            | ScoutState::NeedsNoHook
            | ScoutState::NotRun(_)
            | ScoutState::Hopeless(None) => {}
        }
    }
    places
}

/// Creates the scouts of candidates that have none, at most `limit`. Returns the number of places that they take. While
/// failed HookRuns are deleted for a retry, they are created later.
fn create<'c, 'a: 'c>(
    facts: &Facts<'_>,
    candidates: impl Iterator<Item = &'c Candidate<'a>>,
    limit: usize,
    part: &mut PartialPlan,
) -> usize {
    let requests = candidates.filter_map(|candidate| match &candidate.state {
        ScoutState::NotRun(request) => Some(request),
        ScoutState::NeedsNoHook
        | ScoutState::Running(_)
        | ScoutState::Idle(_)
        | ScoutState::Stale
        | ScoutState::WithoutOwner(_)
        | ScoutState::Overdue(_)
        | ScoutState::Hopeless(_) => None,
    });
    let mut created = 0;
    for request in requests.take(limit) {
        created += 1;
        if !facts.is_clearing(request.hook()) {
            part.actions.push(Action::CreateRun(Box::new(request.new_run())));
        }
    }
    created
}

#[cfg(test)]
mod tests;
