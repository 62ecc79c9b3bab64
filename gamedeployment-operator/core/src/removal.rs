//! Removal requests of pods. A pod with a valid request is deleted and replaced like a pod that `podsToDelete` names,
//! gated by the same hook. Requests of users and components are recorded on the pod; those of the pod's node and of its
//! Eviction are not.

use std::collections::BTreeSet;

use jiff::Timestamp;
use shared_api::names::pod::{REMOVAL_GUARD_ASK, REMOVAL_REQUESTED};
use shared_api::removal_request::{InvalidRequests, RemovalRequest, RemovalRequests, printable_requester};

use crate::cluster::{Cluster, EvictionRequests};
use crate::facts::Facts;
use crate::gate::PodRef;
use crate::guard_check;
use crate::plan::Action;
use crate::pod::Pod;
use crate::workload::{DisruptionPolicy, Workload};

mod by_node;

pub use by_node::NodeRequest;
use by_node::{PodOnNode, Support};

/// Removal requests of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Valid requests of the annotation, in the order in which they were recorded.
    pub recorded: Vec<RemovalRequest>,
    /// Reason why the annotation is not valid. It is then ignored: a pod must not be deleted because of a text that
    /// cannot be parsed.
    pub invalid: Option<InvalidRequests>,
    /// Request of the pod's node.
    pub by_node: Option<NodeRequest>,
    /// Requests of the pod's Eviction.
    pub by_eviction: Option<EvictionRequests>,
    /// Time at which the node will request the removal, because a toleration of the pod ends.
    pub tolerated_until: Option<Timestamp>,
    /// The other requests of the annotation, if the node withdraws some: see [`drop_withdrawn`].
    remaining: Option<RemovalRequests>,
}

impl Removal {
    /// Returns the valid requests of a pod; `None` if there are none, and nothing else needs attention.
    #[must_use]
    pub fn of(pod: &Pod, workload: &Workload, cluster: &dyn Cluster, now: Timestamp) -> Option<Self> {
        match workload.disruption.policy {
            DisruptionPolicy::Unguarded => return None,
            DisruptionPolicy::Ask => {}
        }
        let text = pod.annotation(REMOVAL_REQUESTED);
        let node = PodOnNode::find(pod, cluster, now);
        let node = node.as_ref();
        let by_node = node.and_then(|node| node.request(workload.disruption.on_cordon));
        let tolerated_until = node.and_then(PodOnNode::tolerated_until);
        let (mut requests, invalid) = match text.map(RemovalRequests::parse) {
            None => (RemovalRequests::default(), None),
            Some(Ok(requests)) => (requests, None),
            Some(Err(invalid)) => (RemovalRequests::default(), Some(invalid)),
        };
        requests.drop_expired(now, workload.disruption.request_expiration);
        let support = |request: &RemovalRequest| node.map_or(Support::Valid, |node| node.support(request));
        let is_withdrawn = |request: &RemovalRequest| support(request) == Support::Withdrawn;
        let remaining = requests.iter().any(is_withdrawn).then(|| {
            let mut remaining = requests.clone();
            remaining.retain(|request| !is_withdrawn(request));
            remaining
        });
        // Without a hook, the operator completes the Eviction instead, and the next responder evicts the pod.
        let responds = guard_check::is_expected(workload);
        let by_eviction = cluster.eviction_requests(&pod.uid).filter(|_| responds);
        let by_eviction = by_eviction.map(EvictionRequests::cleaned);
        // In the status, each requester of a pod is listed once.
        let is_listed = |requester: &str| {
            let by_eviction = by_eviction.iter().flat_map(|by| &by.requesters);
            by_eviction
                .chain(by_node.as_ref().map(|by| &by.requester))
                .any(|listed| listed == requester)
        };
        let is_valid =
            |request: &&RemovalRequest| !is_listed(&request.requester) && support(request) == Support::Valid;
        let removal = Self {
            recorded: requests.iter().filter(is_valid).cloned().collect(),
            invalid,
            by_node,
            by_eviction,
            tolerated_until,
            remaining,
        };
        removal.needs_attention().then_some(removal)
    }

    /// Returns whether at least one request is valid.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        !self.recorded.is_empty() || self.by_node.is_some() || self.by_eviction.is_some()
    }

    fn needs_attention(&self) -> bool {
        self.is_requested()
            || self.invalid.is_some()
            || self.tolerated_until.is_some()
            || self.remaining.is_some()
    }
}

impl EvictionRequests {
    /// Cuts the names of the requesters to the length of recorded ones, and lists each once.
    fn cleaned(&self) -> Self {
        let requesters: BTreeSet<String> = self
            .requesters
            .iter()
            .map(|name| printable_requester(name))
            .collect();
        Self {
            requesters: requesters.into_iter().collect(),
            since: self.since,
        }
    }
}

/// Sets the label of guarded pods where the policy demands it, and removes it elsewhere. A pod to which the plan writes
/// anyway is left to the next decision, because two writes cannot use the same resource version.
#[must_use]
pub fn label_pods(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    let is_guarded = facts.workload.disruption.policy == DisruptionPolicy::Ask;
    let value = is_guarded.then_some(REMOVAL_GUARD_ASK);
    facts.unwritten(planned, |pod| {
        let is_wrong = pod.pod.guard_label() != value;
        is_wrong.then(|| Action::SetGuardLabel(PodRef::of(pod.pod), is_guarded))
    })
}

/// Removes the withdrawn requests from the annotations of pods, so that they remain withdrawn, whatever happens to the
/// node or to the operator, and so that a repetition is recorded at once. Pods to which the plan writes anyway are left
/// to the next decision.
#[must_use]
pub fn drop_withdrawn(facts: &Facts<'_>, planned: &[Action]) -> Vec<Action> {
    facts.unwritten(planned, |pod| {
        let remaining = pod.removal.as_deref()?.remaining.as_ref()?;
        Some(Action::WithdrawRequests(
            PodRef::of(pod.pod),
            remaining.annotation(),
        ))
    })
}

/// Returns the time at which the next recorded request expires, or a node requests the removal of a pod because a
/// toleration ends. Requests of nodes do not expire.
#[must_use]
pub fn next_expiration(facts: &Facts<'_>) -> Option<Timestamp> {
    let valid_for = facts.workload.disruption.request_expiration;
    let removals = facts.pods.iter().filter_map(|pod| pod.removal.as_deref());
    let times = removals.flat_map(|removal| {
        let recorded = removal.recorded.iter();
        let ends = recorded.map(move |request| request.expires(valid_for));
        ends.chain(removal.tolerated_until)
    });
    times.min()
}

#[cfg(test)]
mod tests;
