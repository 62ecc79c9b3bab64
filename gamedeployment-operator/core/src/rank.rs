//! Deletion order of pods.

use std::cmp::Ordering;

use jiff::Timestamp;
use shared_api::names::pod::DELETION_COST;

use crate::cluster::Cluster;
use crate::pod::{Pod, PodPhase};

/// Sort key of a pod; lower goes first. A total order: no two pods are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank<'a> {
    scheduled: bool,
    phase: PodPhase,
    ready: bool,
    node_cost: Cost,
    pod_cost: Cost,
    not_approved: bool,
    /// The most recently ready pod goes first, and unready pods before all.
    ready_since: Option<std::cmp::Reverse<Timestamp>>,
    fewer_restarts: std::cmp::Reverse<i32>,
    created: std::cmp::Reverse<Option<Timestamp>>,
    name: &'a str,
}

/// Effect of deletion costs on the order, from the annotation `pod-deletion-cost-sort-method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CostOrder {
    /// The user has not chosen an order: lower costs go first and pods without a cost last, as in the
    /// original operator.
    #[default]
    Unset,
    /// Same as `Unset`, but chosen by the user.
    Ascending,
    /// Higher costs go first and pods without a cost last.
    Descending,
    /// Lower costs go first and a missing cost counts as 0, as in Kubernetes.
    Kubernetes,
}

impl CostOrder {
    /// Parses the annotation.
    pub fn read(text: Option<&str>) -> Self {
        match text {
            None => Self::Unset,
            Some("descend") => Self::Descending,
            Some("kubernetes") => Self::Kubernetes,
            Some(_) => Self::Ascending,
        }
    }
}

/// Returns the pod's deletion cost, if it is set to a number.
pub fn cost_of(pod: &Pod) -> Option<f64> {
    pod.annotation(DELETION_COST)
        .and_then(|text| text.trim().parse().ok())
}

/// A number with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost(f64);

impl Cost {
    fn new(cost: Option<f64>, order: CostOrder) -> Self {
        let cost = cost.filter(|cost| !cost.is_nan());
        Self(match order {
            CostOrder::Unset | CostOrder::Ascending => cost.unwrap_or(f64::INFINITY),
            CostOrder::Descending => cost.map_or(f64::INFINITY, |cost| -cost),
            CostOrder::Kubernetes => cost.unwrap_or(0.0),
        })
    }

    fn cmp(self, other: Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<'a> Rank<'a> {
    /// Computes the rank of a pod. `approved`: its hook has already succeeded.
    pub fn new(pod: &'a Pod, cluster: &dyn Cluster, approved: bool, order: CostOrder) -> Self {
        let node_cost = pod.node.as_deref().and_then(|node| cluster.node_cost(node));
        Self {
            scheduled: pod.node.is_some(),
            phase: pod.phase,
            ready: pod.is_ready(),
            // Node costs are always ascending, as in the original operator.
            node_cost: Cost::new(node_cost, CostOrder::Ascending),
            pod_cost: Cost::new(cost_of(pod), order),
            not_approved: !approved,
            ready_since: pod.ready_since.map(std::cmp::Reverse),
            fewer_restarts: std::cmp::Reverse(
                pod.containers
                    .iter()
                    .map(|container| container.restarts)
                    .max()
                    .unwrap_or(0),
            ),
            created: std::cmp::Reverse(pod.created),
            name: &pod.name,
        }
    }
}

impl Eq for Rank<'_> {}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.scheduled
            .cmp(&other.scheduled)
            .then(self.phase.cmp(&other.phase))
            .then(self.ready.cmp(&other.ready))
            .then(self.node_cost.cmp(other.node_cost))
            .then(self.pod_cost.cmp(other.pod_cost))
            .then(self.not_approved.cmp(&other.not_approved))
            .then(self.ready_since.cmp(&other.ready_since))
            .then(self.fewer_restarts.cmp(&other.fewer_restarts))
            .then(self.created.cmp(&other.created))
            .then_with(|| self.name.cmp(other.name))
    }
}

#[cfg(test)]
mod tests;
