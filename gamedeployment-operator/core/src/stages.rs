//! Stages of the decision on each pod. Each is built from the one before: the gate assesses only chosen pods,
//! and only assessed pods get a slot or an action.

use std::ptr;

use crate::facts::{Facts, PodFacts};
use crate::gate::{GateState, Intent};

/// A pod after [`scale_down`](crate::scale_down) and [`rollout`](crate::rollout) have chosen. Every active
/// pod is one of these.
pub struct SelectedPod<'a> {
    /// Facts about the pod.
    pub facts: &'a PodFacts<'a>,
    /// Chosen operation, if any.
    pub selection: Option<Selection>,
}

/// Operation chosen for a pod.
pub struct Selection {
    /// Intent, for which it needs a matching verdict.
    pub intent: Intent,
    /// Whether `replicas` requires the deletion.
    pub surplus: bool,
}

/// A chosen pod with its gate state.
pub struct AssessedPod<'a> {
    /// Facts about the pod.
    pub facts: &'a PodFacts<'a>,
    /// Chosen operation.
    pub intent: Intent,
    /// Whether `replicas` requires the deletion.
    pub surplus: bool,
    /// State of the gate.
    pub gate_state: GateState<'a>,
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
    /// Whether the budget allows running its hook or acting on it.
    pub granted: bool,
}

impl SelectedPod<'_> {
    /// Whether nothing was chosen for it.
    pub fn stays(&self) -> bool {
        self.selection.is_none()
    }
}

impl<'a> GrantedPod<'a> {
    /// Converts an assessed pod that has no slot yet.
    pub fn waiting(asked: AssessedPod<'a>) -> Self {
        Self {
            facts: asked.facts,
            intent: asked.intent,
            surplus: asked.surplus,
            gate_state: asked.gate_state,
            granted: false,
        }
    }
}

/// Returns the pods for which nothing was chosen.
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
