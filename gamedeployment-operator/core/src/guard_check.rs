//! Check of the removal guard. The policy `Ask` keeps pods only where the guard is in effect. To check that it is, the
//! operator sends a dry run that removes the guard's label from a pod. The guard must deny it, and confirm that it
//! reviews all removals.

use crate::facts::{Facts, PodFacts};
use crate::gate::PodRef;
use crate::hook_kind::HookKind;
use crate::plan::Action;
use crate::workload::{DisruptionPolicy, Workload};
use shared_api::names::pod::REMOVAL_GUARD_ASK;

/// Maximum number of pods to choose from, so that one that changes all the time does not prevent the check.
const MAX_PODS: usize = 5;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardCheck {
    /// The guard denied the removal of its label, and reviews all removals.
    Guarded,
    /// The removal of the label was allowed: the guard is not in effect.
    NotGuarded,
    /// The guard denied the removal of its label, but does not review all removals, for this reason.
    Incomplete(String),
    /// The check failed with this error.
    Failed(String),
}

/// Returns whether the guard must be in effect for a workload: its policy is `Ask`, and it has a `PreDelete` hook.
#[must_use]
pub fn is_expected(workload: &Workload) -> bool {
    workload.disruption.policy == DisruptionPolicy::Ask && workload.hook(HookKind::PreDelete).step.is_some()
}

/// Check of the guard, as far as a decision permits it.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum PlannedCheck {
    /// There is no pod with which the guard can be checked. The last result stays.
    #[default]
    Postponed,
    /// No pod should be guarded. The last result no longer applies.
    Unneeded,
    /// The guard can be checked with each of these pods; there is at least one.
    With(Vec<PodRef>),
}

/// Returns the pods with which the guard can be checked. A pod to which the plan writes is left out: its resource
/// version, a precondition of the check, is about to change.
#[must_use]
pub fn plan(facts: &Facts<'_>, planned: &[Action]) -> PlannedCheck {
    if !is_expected(facts.workload) {
        return PlannedCheck::Unneeded;
    }
    let labelled = facts.unwritten(planned, |pod| is_labelled(pod).then_some(pod));
    let pods: Vec<PodRef> = labelled
        .into_iter()
        .take(MAX_PODS)
        .map(|pod| PodRef::of(pod.pod))
        .collect();
    if pods.is_empty() {
        PlannedCheck::Postponed
    } else {
        PlannedCheck::With(pods)
    }
}

/// Returns whether a pod has the label by which the guard selects pods.
#[must_use]
pub fn is_labelled(pod: &PodFacts<'_>) -> bool {
    pod.pod.guard_label() == Some(REMOVAL_GUARD_ASK)
}

#[cfg(test)]
mod tests;
