//! Removal requests of a pod's node: a taint that the pod does not tolerate, and a cordon.

use jiff::Timestamp;
use shared_api::removal_request::{
    RemovalRequest, RemovalType, TAINT_CONTROLLERS, UnrecordedType, node_requester,
};
use shared_api::time::Time;

use crate::cluster::{Cluster, NodeDisruption, Taint};
use crate::pod::{Pod, Tolerance};
use crate::workload::OnCordon;

/// Removal request of the pod's node. It is valid as long as its cause exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRequest {
    /// Requester: the node.
    pub requester: String,
    /// Kind of request.
    pub type_: UnrecordedType,
    /// Time at which its taint was added, if known.
    pub since: Option<Timestamp>,
}

/// Effect of a node on a recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// The request is valid.
    Valid,
    /// The node requests the removal itself.
    Replaced,
    /// The node was uncordoned after an eviction, or has no taint any more that would make its controller delete the
    /// pod.
    Withdrawn,
}

/// Node of a pod, as far as it concerns the removal of this pod.
pub(super) struct PodOnNode<'a> {
    name: &'a str,
    disruption: NodeDisruption<'a>,
    taints: TaintEffect,
    /// Whether the successor of the pod could be scheduled to the same node, and would have to leave it again.
    may_return: bool,
}

/// Effect of the taints of a node on a pod.
#[derive(Debug, Clone, Copy, Default)]
struct TaintEffect {
    /// Whether there is one that the pod does not, or no longer, tolerate.
    evicts: bool,
    /// Time at which the first of these was added, if known.
    since: Option<Timestamp>,
    /// Whether the pod tolerates one of them for a time whose end is unknown.
    has_unknown_end: bool,
    /// Time at which the next toleration ends.
    tolerated_until: Option<Timestamp>,
}

impl<'a> PodOnNode<'a> {
    /// Looks up the node of a pod; `None` if the watch does not show it.
    pub(super) fn find(pod: &'a Pod, cluster: &'a dyn Cluster, now: Timestamp) -> Option<Self> {
        let name = pod.node.as_deref()?;
        let disruption = cluster.node_disruption(name)?;
        Some(Self {
            name,
            disruption,
            taints: TaintEffect::of(disruption.taints, pod, now),
            may_return: pod.may_return,
        })
    }

    /// Returns the request of the node. A pod has at most one; a taint takes precedence over a cordon.
    pub(super) fn request(&self, on_cordon: OnCordon) -> Option<NodeRequest> {
        let request = |type_, since| NodeRequest {
            requester: node_requester(self.name),
            type_,
            since,
        };
        if self.taints.evicts {
            return Some(request(UnrecordedType::Taint, self.taints.since));
        }
        let must_leave = self.disruption.is_cordoned && !self.may_return;
        match on_cordon {
            OnCordon::Ask if must_leave => Some(request(UnrecordedType::Cordon, None)),
            OnCordon::Ask | OnCordon::Ignore => None,
        }
    }

    /// Returns how the node affects a recorded request.
    pub(super) fn support(&self, request: &RemovalRequest) -> Support {
        match request.type_ {
            RemovalType::Eviction => {
                let schedulable_since = self.disruption.schedulable_since.map(Time::from);
                let withdraws = |since| request.last_repetition() < since;
                if schedulable_since.is_some_and(withdraws) {
                    Support::Withdrawn
                } else {
                    Support::Valid
                }
            }
            RemovalType::Delete if TAINT_CONTROLLERS.contains(&request.requester.as_str()) => {
                if self.taints.evicts {
                    Support::Replaced
                } else if self.taints.has_unknown_end {
                    Support::Valid
                } else {
                    Support::Withdrawn
                }
            }
            RemovalType::Delete | RemovalType::Manual => Support::Valid,
        }
    }

    /// Returns the time at which the node will request the removal because a toleration ends.
    pub(super) fn tolerated_until(&self) -> Option<Timestamp> {
        self.taints.tolerated_until.filter(|_| !self.taints.evicts)
    }
}

impl TaintEffect {
    fn of(taints: &[Taint], pod: &Pod, now: Timestamp) -> Self {
        let mut effect = Self::default();
        for taint in taints {
            let evicts = match pod.tolerations.of(taint, pod.started.or(pod.created)) {
                Tolerance::Unlimited => false,
                Tolerance::Unknown => {
                    effect.has_unknown_end = true;
                    false
                }
                Tolerance::None => true,
                Tolerance::Until(end) => {
                    let is_over = end <= now;
                    let next = Some(end).filter(|_| !is_over);
                    effect.tolerated_until = earliest(effect.tolerated_until, next);
                    is_over
                }
            };
            if evicts {
                effect.evicts = true;
                effect.since = earliest(effect.since, taint.added);
            }
        }
        effect
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
