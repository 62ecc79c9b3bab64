//! What decisions need to know of the cluster besides the workload's own objects.

use jiff::SignedDuration;
use shared_api::HookTemplateSpec;

use crate::gate::Run;

/// What is known of a node that pods are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// It is there, or nodes are not watched.
    There,
    /// The watch does not show it, but the watch is interrupted or has not been read whole: nobody knows.
    Unsure,
    /// A healthy watch has not shown it for this long.
    Absent(SignedDuration),
}

/// A HookTemplate as it was found.
#[derive(Debug, Clone, Copy)]
pub enum FoundTemplate<'a> {
    /// There is none of this name.
    Missing,
    /// There is none of this name, but one whose name is nearly the same.
    Misspelt(&'a str),
    /// There is one, and it cannot be read.
    Unreadable(&'a str),
    /// There is one, with this spec.
    Found(&'a HookTemplateSpec),
}

/// The surroundings of a workload, as its operator knows them.
pub trait Cluster {
    /// The HookTemplate of this name in the workload's namespace.
    fn template(&self, name: &str) -> FoundTemplate<'_>;
    /// What is wrong with the HookTemplate of this name, by hook-operator.
    fn template_problem(&self, _name: &str) -> Option<&str> {
        None
    }
    /// What the watch shows of the node of this name. It is a cache: absence here opens nothing by itself.
    fn node(&self, name: &str) -> Node;
    /// What deleting a pod on this node costs, where the node says it.
    fn node_cost(&self, name: &str) -> Option<f64>;
    /// For how long this process has known the run's verdict, where it saw it arrive.
    fn verdict_seen_for(&self, _run: &Run) -> Option<SignedDuration> {
        None
    }
    /// Whether any HookRun has this name.
    fn has_run(&self, namespace: &str, name: &str) -> bool;
    /// Whether any pod of the workload's namespace has this name.
    fn has_pod(&self, _name: &str) -> bool {
        false
    }
}
