//! Stages of the decision on each active pod. Each is built from the one before: only selected pods are
//! assessed at the gate for deletion or update, and only assessed pods get a slot or are deleted or updated.

use std::ptr;

use crate::facts::{Facts, PodFacts};
use crate::gate::{GateState, Intent, ScoutState};

/// A pod after the selection by [`scale_down`](crate::scale_down) and [`rollout`](crate::rollout). Every
/// active pod is one of these.
pub struct SelectedPod<'a> {
    /// Facts about the pod.
    pub facts: &'a PodFacts<'a>,
    /// Operation that it is selected for, if any.
    pub selection: Option<Selection<'a>>,
}

/// Operation that a pod is selected for.
pub struct Selection<'a> {
    /// Intent, for which it needs a matching verdict.
    pub intent: Intent,
    /// Whether `replicas` requires the deletion.
    pub surplus: bool,
    /// Assessment of the pod, if the selection depends on it. Boxed, because most pods are not selected.
    pub assessment: Option<Box<Assessment<'a>>>,
}

/// Assessment of a pod at the gate, made by the selection.
pub struct Assessment<'a> {
    /// State of the gate.
    pub gate_state: GateState<'a>,
    /// State of its scout, if the pod is only a candidate: it gets a slot only if it is idle, or if too few others may
    /// turn out to be.
    pub scout: Option<ScoutState<'a>>,
}

/// A selected pod with its gate state.
pub struct AssessedPod<'a> {
    /// Facts about the pod.
    pub facts: &'a PodFacts<'a>,
    /// Chosen operation.
    pub intent: Intent,
    /// Whether `replicas` requires the deletion.
    pub surplus: bool,
    /// State of the gate.
    pub gate_state: GateState<'a>,
    /// State of its scout, if the pod is a candidate for the update.
    pub scout: Option<ScoutState<'a>>,
}

/// An assessed pod after the budget has been distributed.
pub struct GrantedPod<'a> {
    /// Facts about the pod.
    pub facts: &'a PodFacts<'a>,
    /// Chosen operation.
    pub intent: Intent,
    /// Whether `replicas` requires the deletion.
    pub surplus: bool,
    /// State of the gate.
    pub gate_state: GateState<'a>,
    /// State of its scout, if the pod is a candidate for the update.
    pub scout: Option<ScoutState<'a>>,
    /// Whether the budget allows running its hook or acting on it.
    pub granted: bool,
}

impl SelectedPod<'_> {
    /// Returns whether the pod is not selected.
    pub fn stays(&self) -> bool {
        self.selection.is_none()
    }
}

impl<'a> GrantedPod<'a> {
    /// Converts an assessed pod that has no slot yet.
    pub fn waiting(assessed: AssessedPod<'a>) -> Self {
        Self {
            facts: assessed.facts,
            intent: assessed.intent,
            surplus: assessed.surplus,
            gate_state: assessed.gate_state,
            scout: assessed.scout,
            granted: false,
        }
    }
}

/// Returns the pods that are not selected.
pub fn staying<'s, 'a>(
    facts: &'s Facts<'a>,
    decided: &'s [GrantedPod<'_>],
) -> impl Iterator<Item = &'s PodFacts<'a>> {
    let mut decided = decided.iter().peekable();
    let stays = move |pod: &&PodFacts<'_>| {
        let its = decided.next_if(|decided| ptr::addr_eq(decided.facts, *pod));
        its.is_none()
    };
    facts.pods.iter().filter(stays)
}
