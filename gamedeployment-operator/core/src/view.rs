//! Inputs of a decision.

use std::collections::BTreeSet;

use shared_api::GameDeployment;

use crate::cluster::Cluster;
use crate::gate::Run;
use crate::guard_check::GuardCheck;
use crate::pod::Pod;
use crate::revision::Revision;

/// The cached workload and its surroundings.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The workload.
    pub object: &'a GameDeployment,
    /// Pods that it owns, and pods in its namespace without a controller.
    pub pods: &'a [&'a Pod],
    /// ControllerRevisions that it owns, and those in its namespace without a controller.
    pub revisions: &'a [&'a Revision],
    /// HookRuns that it owns.
    pub runs: &'a [&'a Run],
    /// Revision of the last pod that the API server accepted in a dry run.
    pub accepted: Option<&'a str>,
    /// Writes that the API server rejected last time, if any.
    pub write_errors: Option<&'a WriteErrors>,
    /// Result of the last check of the removal guard, if there was one.
    pub guard_check: Option<&'a GuardCheck>,
    /// Surroundings of the workload.
    pub cluster: &'a dyn Cluster,
}

impl<'a> View<'a> {
    /// Returns an annotation of the workload.
    pub fn annotation(&self, name: &str) -> Option<&'a str> {
        let annotations = self.object.metadata.annotations.as_ref();
        annotations?.get(name).map(String::as_str)
    }
}

/// Rejected writes, and writes with an unknown outcome that reads cannot settle.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteErrors {
    /// Error of a write that concerns the number of pods.
    pub scaling: Option<String>,
    /// Error of recording a new revision.
    pub revision: Option<String>,
    /// Number of consecutive names for the new revision that were already taken.
    pub collisions: i32,
    /// Whether new pods are rejected.
    pub creating: bool,
    /// Error of a dry run of a pod at the update revision.
    pub pod: Option<String>,
    /// Error of any other write.
    pub updating: Option<String>,
    /// Pods in an uncertain state that cannot be read. Writes to them are not sent.
    pub unread_pods: BTreeSet<String>,
}
