//! Removal requests of pods. A pod with a valid request is deleted and replaced like a pod that `podsToDelete` names,
//! gated by the same hook.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared_api::names::pod::{REMOVAL_GUARD_ASK, REMOVAL_REQUESTED};
use shared_api::removal_request::{InvalidRequests, RemovalRequest, RemovalRequests};

use crate::facts::{Facts, PodFacts};
use crate::gate::PodRef;
use crate::plan::Action;
use crate::pod::Pod;
use crate::workload::{DisruptionPolicy, Workload};

/// Removal requests of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// At least one request is valid.
    Requested(Vec<RemovalRequest>),
    /// The annotation is not valid, and is ignored: a pod must not be deleted because of a text that
    /// cannot be parsed.
    Invalid(InvalidRequests),
}

impl Removal {
    /// Returns the requests of a pod that have not expired; `None` without any.
    #[must_use]
    pub fn of(pod: &Pod, workload: &Workload, now: Timestamp) -> Option<Self> {
        match workload.disruption.policy {
            DisruptionPolicy::Unguarded => return None,
            DisruptionPolicy::Ask => {}
        }
        let mut requests = match RemovalRequests::parse(pod.annotation(REMOVAL_REQUESTED)?) {
            Ok(requests) => requests,
            Err(invalid) => return Some(Self::Invalid(invalid)),
        };
        requests.drop_expired(now, workload.disruption.request_expiration);
        let requests: Vec<RemovalRequest> = requests.iter().cloned().collect();
        (!requests.is_empty()).then_some(Self::Requested(requests))
    }

    /// Returns the valid requests.
    #[must_use]
    pub fn requests(&self) -> &[RemovalRequest] {
        match self {
            Self::Requested(requests) => requests,
            Self::Invalid(_) => &[],
        }
    }
}

/// Sets the label of guarded pods where the policy demands it, and removes it elsewhere. A pod to which the plan writes
/// anyway is left to the next decision, because two writes cannot use the same resource version.
#[must_use]
pub fn label_pods(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    let is_guarded = facts.workload.disruption.policy == DisruptionPolicy::Ask;
    let value = is_guarded.then_some(REMOVAL_GUARD_ASK);
    let is_wrong = |pod: &&PodFacts<'_>| !pod.unread && pod.pod.guard_label() != value;
    let wrong: Vec<&PodFacts<'_>> = facts.pods.iter().filter(is_wrong).collect();
    if wrong.is_empty() {
        return Vec::new();
    }
    let written: BTreeSet<&str> = planned.iter().filter_map(Action::object).collect();
    let free = wrong
        .into_iter()
        .filter(|pod| !written.contains(pod.pod.name.as_str()));
    free.map(|pod| Action::SetGuardLabel(PodRef::of(pod.pod), is_guarded))
        .collect()
}

/// Returns the time at which the next request expires.
#[must_use]
pub fn next_expiration(facts: &Facts<'_>) -> Option<Timestamp> {
    let valid_for = facts.workload.disruption.request_expiration;
    let removals = facts.pods.iter().filter_map(|pod| pod.removal.as_deref());
    removals
        .flat_map(Removal::requests)
        .map(|request| request.expires(valid_for))
        .min()
}

#[cfg(test)]
mod tests;
