//! Who is asked, and who is acted on, within the budget.
//!
//! A pod to be updated takes a slot when it is asked about, if it is available, and keeps it until it is acted on: no
//! more pods are put to the question than may be acted on. A pod whose hook has said no, or whose hook cannot be
//! asked, serves on and takes none, so it holds up nobody.
//!
//! A pod to be deleted serves while it is asked about, for hours perhaps: it takes a slot only when it goes. So no
//! other pod's deletion waits for its hook. Updates leave it its slot.
//!
//! A pod that is not available may come back by itself: it takes a slot as well. A new pod has to prove itself: until
//! it is available, nothing that serves is taken in its stead.

use crate::budget::Slots;
use crate::facts::{Facts, PodFacts, Service};
use crate::gate::{Gate, Intent, Standing};
use crate::history::History;
use crate::stages::{AskedPod, Choice, ChosenPod, GrantedPod, staying};
use crate::trial;

/// Puts the question of every pod that something is to be done to.
#[must_use]
pub fn ask<'a>(facts: &Facts<'a>, gate: &Gate<'a>, chosen: Vec<ChosenPod<'a>>) -> Vec<AskedPod<'a>> {
    let mut asked = Vec::with_capacity(chosen.iter().filter(|pod| !pod.stays()).count());
    asked.extend(chosen.into_iter().filter_map(|ChosenPod { facts: pod, choice }| {
        let Choice { intent, surplus } = choice?;
        let modified = modified(&facts.history, pod, &intent);
        Some(AskedPod {
            facts: pod,
            standing: gate.assess(pod.pod, &intent, &modified),
            intent,
            surplus,
        })
    }));
    asked
}

/// Hands out the slots. `confirming` available pods are waiting for their `PostInplace` hook: updates go on when these
/// are well.
#[must_use]
pub fn grant<'a>(facts: &Facts<'_>, asked: Vec<AskedPod<'a>>, confirming: usize) -> Vec<GrantedPod<'a>> {
    let mut slots = Slots::new(
        facts.pods.iter().map(|pod| pod.service),
        facts.workload.replicas,
        facts.workload.max_unavailable,
    );
    let mut pods: Vec<GrantedPod<'a>> = asked.into_iter().map(GrantedPod::waiting).collect();
    for turn in [Turn::Surplus, Turn::Named] {
        for pod in of(&mut pods, turn, Lacks::Slot) {
            pod.granted = slots.take(pod.facts.service);
        }
    }
    let mut kept = vec![Service::Available; confirming];
    for turn in [Turn::Surplus, Turn::Named] {
        for lacks in [Lacks::Verdict, Lacks::Question] {
            for pod in of(&mut pods, turn, lacks) {
                pod.granted = slots.has(pod.facts.service);
                kept.extend(pod.granted.then_some(pod.facts.service));
            }
        }
    }
    let unproven = |pod: &&PodFacts<'_>| !pod.old && pod.service == Service::Interrupted;
    kept.extend(staying(facts, &pods).filter(unproven).map(|pod| pod.service));
    for service in kept {
        slots.reserve(service);
    }
    let held = facts.hold.is_some();
    for lacks in [Lacks::Slot, Lacks::Verdict, Lacks::Question] {
        for pod in of(&mut pods, Turn::Update, lacks) {
            let waits = held && trial::is_concerned(pod);
            pod.granted = !waits && slots.take(pod.facts.service);
        }
    }
    pods
}

/// The pods whose turn it is and that lack just this.
fn of<'s, 'a>(
    pods: &'s mut [GrantedPod<'a>],
    turn: Turn,
    lacks: Lacks,
) -> impl Iterator<Item = &'s mut GrantedPod<'a>> {
    pods.iter_mut()
        .filter(move |pod| Turn::of(pod) == Some(turn) && Lacks::of(pod) == Some(lacks))
}

/// What a pod lacks to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    /// A slot.
    Slot,
    /// A slot and the verdict of the hook that is being asked.
    Verdict,
    /// A slot, and somebody who asks.
    Question,
}

impl Lacks {
    fn of(pod: &GrantedPod<'_>) -> Option<Self> {
        match &pod.standing {
            Standing::Open(_) | Standing::Used(_) => Some(Self::Slot),
            Standing::Asking(_) => Some(Self::Verdict),
            // It cannot be asked before somebody has acted.
            Standing::Stale(_, void) if void.is_stuck() => None,
            Standing::Unasked(_) | Standing::Stale(..) => Some(Self::Question),
            Standing::Refused(_) | Standing::Blocked(_) => None,
        }
    }
}

/// The containers that an intent changes.
fn modified(history: &History<'_>, pod: &PodFacts<'_>, intent: &Intent) -> Vec<String> {
    match intent {
        Intent::InPlace(_) | Intent::HotPatch(_) => history
            .change(pod.pod)
            .map(|change| change.images.keys().cloned().collect())
            .unwrap_or_default(),
        Intent::Delete | Intent::Recreate(_) | Intent::Confirm(_) => Vec::new(),
    }
}

/// Who takes slots first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Pods of which there are too many.
    Surplus,
    /// Pods that somebody named, and that will be replaced.
    Named,
    /// Pods to be updated.
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
