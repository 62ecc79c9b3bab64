//! Selection of the pods to delete, as surplus, because the user named them, or because their removal is requested.
//!
//! A selection is durable: it is written to the pod, and later decisions continue with it. When `replicas`
//! rises again, the pods selected last are deselected first.

use jiff::Timestamp;

use crate::facts::{Facts, PodFacts, RecordedSelection};
use crate::first_idle::{self, Search};
use crate::gate::{Gate, Intent};
use crate::scale::ScaleDiff;
use crate::stages::{SelectedPod, Selection};

/// Selects the pods to delete. Pods are in deletion order. Also returns the search for idle pods, if there is one.
#[must_use]
pub fn select<'a>(
    facts: &'a Facts<'a>,
    gate: &Gate<'a>,
    diff: ScaleDiff,
) -> (Vec<SelectedPod<'a>>, Option<Search<'a>>) {
    let undecided = |facts| SelectedPod {
        facts,
        selection: None,
    };
    let mut pods: Vec<SelectedPod<'a>> = facts.pods.iter().map(undecided).collect();
    let mut left = diff;
    for pod in pods.iter_mut().filter(|pod| pod.facts.named_by.is_some()) {
        left.take(pod, Intent::Delete);
    }
    if first_idle::applies(facts, &pods, left) {
        let search = first_idle::search(facts, gate, &mut pods, left);
        return (pods, Some(search));
    }
    take_in_order(facts, &mut pods, left);
    (pods, None)
}

/// Selects the first pods in deletion order.
fn take_in_order(facts: &Facts<'_>, pods: &mut [SelectedPod<'_>], mut left: ScaleDiff) {
    let replaced = replacement(facts);
    let replaced = replaced.as_ref();
    // Pods selected before, the oldest selection first.
    let before = pods.iter_mut().filter(|pod| was_selected(pod, replaced));
    let mut before: Vec<_> = before.collect();
    before.sort_by_key(|pod| selected_since(pod.facts));
    for pod in before {
        if left.delete > 0 {
            left.take(pod, removal(pod.facts, replaced));
        }
    }
    for old in [true, false] {
        for pod in pods.iter_mut().filter(|pod| pod.stays() && pod.facts.old == old) {
            if if old { left.delete_old } else { left.delete } > 0 {
                left.take(pod, removal(pod.facts, replaced));
            }
        }
    }
    // Old pods go if there are not enough updated ones.
    for pod in pods.iter_mut().filter(|pod| pod.stays()) {
        if left.delete > 0 {
            left.take(pod, removal(pod.facts, replaced));
        }
    }
}

/// Time at which the recorded selection was made, if known.
pub(crate) fn selected_since(pod: &PodFacts<'_>) -> Option<Timestamp> {
    pod.recorded_selection
        .as_ref()
        .and_then(|recorded| recorded.since)
}

/// Intent for old surplus pods if only PreInplace is configured. With a surge their successors may exist
/// already, so the update makes them surplus and that hook is responsible.
fn replacement(facts: &Facts<'_>) -> Option<Intent> {
    let workload = facts.workload;
    let only_updates = workload.pre_delete.step.is_none() && workload.pre_in_place.step.is_some();
    only_updates.then(|| Intent::Recreate(facts.history.update.name.clone()))
}

/// Intent for a surplus pod.
fn removal(pod: &PodFacts<'_>, replaced: Option<&Intent>) -> Intent {
    let replaced = replaced.filter(|_| pod.old);
    replaced.cloned().unwrap_or(Intent::Delete)
}

/// Whether an earlier decision selected the pod for deletion and this one has not selected it yet. A pod that was
/// selected only because it was named does not count: named pods are selected first.
pub(crate) fn was_selected(pod: &SelectedPod<'_>, replaced: Option<&Intent>) -> bool {
    let to_go = |recorded: &RecordedSelection| {
        let mut intents = [Intent::Delete, removal(pod.facts, replaced)].into_iter();
        !recorded.is_replaced && intents.any(|intent| recorded.intent == intent.text())
    };
    pod.stays() && pod.facts.recorded_selection.as_ref().is_some_and(to_go)
}

impl ScaleDiff {
    /// Selects a pod and counts it against the deletions that `replicas` requires, while any are left.
    pub(crate) fn take(&mut self, pod: &mut SelectedPod<'_>, intent: Intent) {
        let surplus = self.delete > 0;
        pod.selection = Some(Selection {
            intent,
            surplus,
            assessment: None,
        });
        self.delete = self.delete.saturating_sub(1);
        if pod.facts.old {
            self.delete_old = self.delete_old.saturating_sub(1);
        }
        self.delete_old = self.delete_old.min(self.delete);
    }
}

#[cfg(test)]
mod tests;
