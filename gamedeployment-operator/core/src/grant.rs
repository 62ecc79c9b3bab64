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
use crate::stages::{Asked, AskedPod, ChosenPod, Granted, GrantedPod};
use crate::trial;

/// Puts the question of every pod that something is to be done to.
#[must_use]
pub fn ask<'a>(facts: &Facts<'a>, gate: &Gate<'a>, chosen: Vec<ChosenPod<'a>>) -> Vec<AskedPod<'a>> {
    let ask = |chosen: ChosenPod<'a>| {
        let pod = chosen.facts;
        let decided = chosen.decided.map(|choice| {
            let modified = modified(&facts.history, pod, &choice.intent);
            let standing = gate.assess(pod.pod, &choice.intent, &modified);
            Asked { choice, standing }
        });
        AskedPod { facts: pod, decided }
    };
    chosen.into_iter().map(ask).collect()
}

/// Hands out the slots. `confirming` available pods are waiting for their `PostInplace` hook: updates go on when these
/// are well.
#[must_use]
pub fn grant<'a>(facts: &Facts<'_>, asked: Vec<AskedPod<'a>>, confirming: usize) -> Vec<GrantedPod<'a>> {
    let mut slots = Slots::new(
        asked.iter().map(|pod| pod.facts.service),
        facts.workload.replicas,
        facts.workload.max_unavailable,
    );
    let ungranted = |pod: AskedPod<'a>| GrantedPod {
        facts: pod.facts,
        decided: pod.decided.map(|asked| Granted {
            asked,
            granted: false,
        }),
    };
    let mut pods: Vec<GrantedPod<'a>> = asked.into_iter().map(ungranted).collect();
    for turn in [Turn::Surplus, Turn::Named] {
        for (pod, decided) in of(&mut pods, turn, Lacks::Slot) {
            decided.granted = slots.take(pod.service);
        }
    }
    let mut kept = vec![Service::Available; confirming];
    for turn in [Turn::Surplus, Turn::Named] {
        for lacks in [Lacks::Verdict, Lacks::Question] {
            for (pod, decided) in of(&mut pods, turn, lacks) {
                decided.granted = slots.has(pod.service);
                kept.extend(decided.granted.then_some(pod.service));
            }
        }
    }
    let unproven =
        |pod: &&GrantedPod<'_>| !pod.facts.old && pod.facts.service == Service::Interrupted && pod.stays();
    kept.extend(pods.iter().filter(unproven).map(|pod| pod.facts.service));
    for service in kept {
        slots.reserve(service);
    }
    let held = facts.hold.is_some();
    for lacks in [Lacks::Slot, Lacks::Verdict, Lacks::Question] {
        for (pod, decided) in of(&mut pods, Turn::Update, lacks) {
            let waits = held && trial::is_concerned(pod, &decided.asked.choice.intent);
            decided.granted = !waits && slots.take(pod.service);
        }
    }
    pods
}

/// The pods whose turn it is and that lack just this.
fn of<'s, 'a>(
    pods: &'s mut [GrantedPod<'a>],
    turn: Turn,
    lacks: Lacks,
) -> impl Iterator<Item = (&'a PodFacts<'a>, &'s mut Granted<'a>)> {
    let decided = pods
        .iter_mut()
        .filter_map(|pod| Some((pod.facts, pod.decided.as_mut()?)));
    decided.filter(move |(_, decided)| {
        Turn::of(&decided.asked) == Some(turn) && Lacks::of(&decided.asked) == Some(lacks)
    })
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
    fn of(asked: &Asked<'_>) -> Option<Self> {
        match &asked.standing {
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
    fn of(asked: &Asked<'_>) -> Option<Self> {
        match &asked.choice.intent {
            Intent::Delete | Intent::Recreate(_) if asked.choice.surplus => Some(Self::Surplus),
            Intent::Delete => Some(Self::Named),
            Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_) => Some(Self::Update),
            Intent::Confirm(_) => None,
        }
    }
}
