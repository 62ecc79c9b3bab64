//! What decisions need to know of the cluster besides the workload's own objects.

use crate::gate::FoundTemplate;

/// The surroundings of a workload, as its operator knows them.
pub trait Cluster {
    /// The HookTemplate of this name in the workload's namespace.
    fn template(&self, name: &str) -> FoundTemplate<'_>;
    /// Whether there is certainly no node of this name any more.
    fn node_is_gone(&self, name: &str) -> bool;
    /// What deleting a pod on this node costs, where the node says it.
    fn node_cost(&self, name: &str) -> Option<f64>;
    /// Whether any HookRun has this name.
    fn has_run(&self, namespace: &str, name: &str) -> bool;
    /// Whether any pod of the workload's namespace has this name.
    fn has_pod(&self, _name: &str) -> bool {
        false
    }
}
