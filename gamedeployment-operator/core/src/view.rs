//! Everything that a decision rests on.

use shared_api::GameDeployment;

use crate::cluster::Cluster;
use crate::gate::Run;
use crate::pod::Pod;
use crate::revision::Revision;

/// A workload as it is known, with what surrounds it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The workload.
    pub object: &'a GameDeployment,
    /// Pods that it owns, and pods of its namespace that have no controller.
    pub pods: &'a [&'a Pod],
    /// ControllerRevisions that it owns, and those of its namespace that have no controller.
    pub revisions: &'a [&'a Revision],
    /// HookRuns that it owns.
    pub runs: &'a [&'a Run],
    /// The revision of which the API server has accepted a pod in a dry run last.
    pub accepted: Option<&'a str>,
    /// What the API server refused last time, if it refused something.
    pub write_errors: Option<&'a WriteErrors>,
    /// The surroundings.
    pub cluster: &'a dyn Cluster,
}

/// Writes that were refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteErrors {
    /// About creating and deleting pods.
    pub scaling: Option<String>,
    /// About recording a new revision.
    pub revision: Option<String>,
    /// How many names of the new revision, one after the other, were taken by something else.
    pub collisions: i32,
    /// New pods are refused.
    pub creating: bool,
    /// About a pod of the update revision, in a dry run.
    pub pod: Option<String>,
    /// About anything else.
    pub updating: Option<String>,
}
