//! Distribution of the budget: pods whose hook runs and pods that are acted on.
//!
//! An available pod to update takes a slot when its hook runs and keeps it until it is acted on: no more
//! hooks run than pods may be acted on. A pod whose hook failed or cannot run stays in service and takes no
//! slot, so it blocks no other pod.
//!
//! A pod to delete stays in service while its hook runs, perhaps for hours, and takes a slot only when it is
//! deleted. So no deletion waits for another pod's hook. Updates leave a slot for it, unless only a removal request
//! selected it: anybody who evicts pods could stop an update otherwise.
//!
//! An unavailable pod that may recover by itself takes a slot as well. A new pod must prove itself: until it
//! is available, no serving pod is taken in its place.

use crate::dry_run;
use crate::facts::{Facts, NamedBy, PodFacts, Service};
use crate::first_idle::update::{self, UpdateSearch};
use crate::gate::{Gate, GateState, Intent};
use crate::stages::{AssessedPod, Assessment, GrantedPod, SelectedPod, Selection, staying};

/// Assesses every pod selected for deletion or update at the gate.
#[must_use]
pub fn assess<'a>(
    facts: &Facts<'a>,
    gate: &Gate<'a>,
    selected: Vec<SelectedPod<'a>>,
) -> Vec<AssessedPod<'a>> {
    let mut assessed = Vec::with_capacity(selected.iter().filter(|pod| !pod.stays()).count());
    assessed.extend(selected.into_iter().filter_map(
        |SelectedPod {
             facts: pod,
             selection,
         }| {
            let Selection {
                intent,
                surplus,
                assessment,
            } = selection?;
            let assess = || Assessment {
                gate_state: gate.assess(pod.pod, &intent, &facts.history.modified(pod.pod, &intent)),
                scout: None,
            };
            let Assessment { gate_state, scout } = assessment.map_or_else(assess, |made| *made);
            Some(AssessedPod {
                facts: pod,
                gate_state,
                intent,
                surplus,
                scout,
            })
        },
    ));
    assessed
}

/// Distributes the slots. `reserved` available pods are not selected for deletion or update, but each keeps a slot from
/// the updates: it waits for its `PostInplace` hook, or is a surplus pod that must still be found.
///
/// At most `open` candidates for the update get a slot. Also returns the search for idle ones among them.
#[must_use]
pub fn grant<'a>(
    facts: &Facts<'a>,
    assessed: Vec<AssessedPod<'a>>,
    reserved: usize,
    open: usize,
) -> (Vec<GrantedPod<'a>>, Option<UpdateSearch<'a>>) {
    let mut slots = facts.budget();
    let mut pods: Vec<GrantedPod<'a>> = assessed.into_iter().map(GrantedPod::waiting).collect();
    for turn in [Turn::Surplus, Turn::Named] {
        for pod in of(&mut pods, turn, MissingRequirement::Slot) {
            pod.granted = slots.take(pod.facts.service);
        }
    }
    let mut kept = vec![Service::Available; reserved];
    for turn in [Turn::Surplus, Turn::Named] {
        for lacks in [MissingRequirement::Verdict, MissingRequirement::HookRun] {
            for pod in of(&mut pods, turn, lacks) {
                pod.granted = slots.has(pod.facts.service);
                let is_kept = pod.granted && (pod.surplus || pod.facts.named_by == Some(NamedBy::List));
                kept.extend(is_kept.then_some(pod.facts.service));
            }
        }
    }
    let unproven = |pod: &&PodFacts<'_>| !pod.old && pod.service == Service::Interrupted;
    kept.extend(staying(facts, &pods).filter(unproven).map(|pod| pod.service));
    for service in kept {
        slots.reserve(service);
    }
    let held = facts.recreation_block.is_some();
    for lacks in [
        MissingRequirement::Slot,
        MissingRequirement::Verdict,
        MissingRequirement::HookRun,
    ] {
        for pod in of(&mut pods, Turn::Update, lacks) {
            let waits = held && dry_run::recreates_serving_pod(pod);
            pod.granted = !waits && slots.take(pod.facts.service);
        }
    }
    update::grant(facts, pods, slots, open)
}

/// Returns the pods of this turn that lack exactly this.
fn of<'s, 'a>(
    pods: &'s mut [GrantedPod<'a>],
    turn: Turn,
    lacks: MissingRequirement,
) -> impl Iterator<Item = &'s mut GrantedPod<'a>> {
    pods.iter_mut()
        .filter(move |pod| Turn::of(pod) == Some(turn) && MissingRequirement::of(pod) == Some(lacks))
}

/// Requirements that a pod lacks before it can be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingRequirement {
    /// A slot.
    Slot,
    /// A slot and the verdict of a running hook.
    Verdict,
    /// A slot and a HookRun.
    HookRun,
}

impl MissingRequirement {
    fn of(pod: &GrantedPod<'_>) -> Option<Self> {
        if pod.scout.is_some() {
            // Idle pods take the slots that are left.
            return None;
        }
        match &pod.gate_state {
            GateState::Open(_) | GateState::Consumed(_) => Some(Self::Slot),
            GateState::Running(_) => Some(Self::Verdict),
            held if held.is_held() => None,
            // Keeps its turn while its hook waits for the notice, so that no other pod is notified instead.
            GateState::NotRun(_) if pod.facts.is_recorded_for(&pod.intent) => Some(Self::Verdict),
            GateState::NotRun(_) | GateState::Stale(..) => Some(Self::HookRun),
            GateState::Unsuccessful(_) | GateState::Blocked(_) => None,
        }
    }
}

/// Order in which pods take slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Surplus pods.
    Surplus,
    /// Pods that the user named or whose removal is requested, and that will be replaced.
    Named,
    /// Pods to update.
    Update,
}

impl Turn {
    fn of(pod: &GrantedPod<'_>) -> Option<Self> {
        match &pod.intent {
            Intent::Delete | Intent::Recreate(_) if pod.surplus => Some(Self::Surplus),
            Intent::Delete => Some(Self::Named),
            Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_) => Some(Self::Update),
            Intent::Confirm(_) => None,
        }
    }
}
