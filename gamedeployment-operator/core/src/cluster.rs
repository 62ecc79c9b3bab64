//! Cluster state that decisions need in addition to the workload's own objects.

use jiff::{SignedDuration, Timestamp};
use shared_api::HookTemplateSpec;

use crate::gate::Run;
use crate::pod::Pod;
use crate::unusable_template::UnusableTemplate;

/// State of a node that pods are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// Nodes are not watched.
    Unwatched,
    /// A healthy watch shows the node, and its condition Ready has been True for
    /// [`NODE_SETTLE_TIME`](crate::gate::NODE_SETTLE_TIME).
    Ready,
    /// A healthy watch shows the node, and its condition Ready has been True for this long, as far as known: its
    /// kubelet may have been silent before, and may not have reported its pods yet.
    JustReady(SignedDuration),
    /// A healthy watch shows the node, and its condition Ready is not True: its kubelet may be silent while
    /// its containers run.
    NotReady,
    /// Unknown: the watch is interrupted or its initial list is incomplete.
    Unsure,
    /// A healthy watch has not shown it for this long.
    Absent(SignedDuration),
}

/// Keys of the taints that autoscalers set before they remove a node: Cluster Autoscaler, Karpenter, and older versions
/// of Karpenter.
pub const REMOVAL_TAINTS: [&str; 3] = [
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
];

/// State of a node that decides whether its pods must leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeDisruption<'a> {
    /// Whether the node is cordoned or has one of the [`REMOVAL_TAINTS`].
    pub is_cordoned: bool,
    /// Time since which neither has been the case; `None` if it is, or if this process has not seen that change.
    pub schedulable_since: Option<Timestamp>,
    /// Its taints with the effect `NoExecute`.
    pub taints: &'a [Taint],
}

/// Taint of a node with the effect `NoExecute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
    /// Time at which it was added. Not every client sets it.
    pub added: Option<Timestamp>,
}

/// Requests of an Eviction (`lifecycle.k8s.io`) whose active responder is this operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionRequests {
    /// Requesters that have not withdrawn; at least one.
    pub requesters: Vec<String>,
    /// Time since which the operator is the active responder.
    pub since: Option<Timestamp>,
}

/// Result of a HookTemplate lookup.
#[derive(Debug, Clone, Copy)]
pub enum FoundTemplate<'a> {
    /// No template has this name.
    Missing,
    /// No template has this name, but a similar name exists.
    Misspelt(&'a str),
    /// The template exists, but no hook can use it.
    Unusable(&'a UnusableTemplate),
    /// The template exists and has this spec.
    Found(&'a HookTemplateSpec),
}

/// Notice whose creation the API server rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedNotice<'a> {
    /// Time since the first rejection.
    pub lasts: SignedDuration,
    /// Last answer of the API server.
    pub answer: &'a str,
}

/// Surroundings of a workload, as cached by the operator.
pub trait Cluster {
    /// Looks up a HookTemplate by name in the workload's namespace.
    fn template(&self, name: &str) -> FoundTemplate<'_>;
    /// Returns the problem that hook-operator reports for this HookTemplate.
    fn template_problem(&self, _name: &str) -> Option<&str> {
        None
    }
    /// Returns the cached state of a node. Absence from the cache alone opens no gate.
    fn node(&self, name: &str) -> Node;
    /// Returns the time of the node's transition to Ready, by the clock of its kubelet. A direct read that shows
    /// another one has found a node that was not Ready meanwhile.
    fn node_ready_since(&self, _name: &str) -> Option<Timestamp> {
        None
    }
    /// Returns the state of a node that decides whether its pods must leave it; `None` if nodes are not watched, or if
    /// the watch does not show the node.
    fn node_disruption(&self, _name: &str) -> Option<NodeDisruption<'_>> {
        None
    }
    /// Returns the requests of the Eviction of a pod with this UID, if the operator is its active responder.
    fn eviction_requests(&self, _pod_uid: &str) -> Option<&EvictionRequests> {
        None
    }
    /// Returns whether the API server serves Evictions, and the operator responds to them.
    fn serves_evictions(&self) -> bool {
        false
    }
    /// Returns the deletion cost that the node sets for its pods.
    fn node_cost(&self, name: &str) -> Option<f64>;
    /// Time since this process saw the run's verdict arrive, if it did.
    fn verdict_seen_for(&self, _run: &Run) -> Option<SignedDuration> {
        None
    }
    /// Whether this process noted the question that the pod shows, and has seen no run for it. Any other question may
    /// have led to a verdict that someone is about to act on.
    fn is_new_question(&self, pod: &Pod) -> bool;
    /// Whether a HookRun of this name exists.
    fn has_run(&self, namespace: &str, name: &str) -> bool;
    /// Returns the rejection of the workload's notice of this name; `None` if this process has not tried to create it,
    /// or if the API server has not rejected that.
    fn rejected_notice(&self, _name: &str) -> Option<RejectedNotice<'_>> {
        None
    }
    /// Returns the HookRun of this name in the workload's namespace if it [lacks its owner](Run::lacks_owner).
    fn run_without_owner(&self, _name: &str) -> Option<&Run> {
        None
    }
    /// Whether a pod of this name exists in the workload's namespace.
    fn has_pod(&self, _name: &str) -> bool {
        false
    }
}
