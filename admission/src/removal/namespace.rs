//! Deletion of a namespace: it deletes all pods without running their hooks, because no HookRun can be created in a
//! terminating namespace. It is denied while the namespace has guarded pods whose hooks would have to run.
//!
//! [`lookup`] looks up the pods and their workloads. It lists only guarded pods that have a node and have not ended.

use std::fmt;

use serde::Deserialize;
use shared_api::names::pod::REMOVAL_GUARD;

use super::{GuardedPod, OwnerReference};
use crate::review::AdmissionDecision;

pub mod lookup;

/// Number of pods after which no more are counted.
const ENOUGH: usize = 500;

/// Fields of a namespace on which its deletion depends.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NamespaceObject {
    metadata: NamespaceMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NamespaceMetadata {
    deletion_timestamp: Option<String>,
}

impl NamespaceObject {
    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// Returns the GameDeployment that decides whether the hook of a listed pod would have to run; `None` if it would not,
/// because the pod is terminating, its hooks are skipped, or no GameDeployment controls it.
fn keeper(pod: &GuardedPod) -> Option<&OwnerReference> {
    if pod.is_terminating() || pod.skips_hooks() {
        return None;
    }
    pod.controller()
}

/// Guarded pods that would be deleted without running their hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptPods {
    count: usize,
    /// Name of the first one.
    first: String,
    /// Whether there may be more than were counted.
    has_more: bool,
}

impl KeptPods {
    /// Adds a pod.
    fn add(&mut self, pod: &GuardedPod) {
        if self.count == 0 {
            self.first.clone_from(&pod.metadata.name);
        }
        self.count += 1;
    }

    /// Ends the count after the last page of the list, or after enough pods. Returns whether it has ended.
    fn ends_after(&mut self, is_last: bool) -> bool {
        self.has_more = !is_last;
        is_last || self.count >= ENOUGH
    }
}

impl fmt::Display for KeptPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            first,
            has_more,
        } = self;
        if *count == 1 {
            return write!(
                f,
                "1 guarded pod, {first}, which would be deleted without running its PreDelete hook"
            );
        }
        let at_least = if *has_more { "at least " } else { "" };
        write!(
            f,
            "{at_least}{count} guarded pods, for example {first}, which would be deleted without running their \
             PreDelete hooks"
        )
    }
}

/// Deletion of a namespace that is not terminating.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceDeletion {
    name: String,
}

impl NamespaceDeletion {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }

    /// Decides, given the pods that were found, or the reason why they are not known. The deletion is then denied.
    pub fn decide(&self, found: &Result<KeptPods, String>) -> AdmissionDecision {
        let name = &self.name;
        let why = match found {
            Ok(kept) if kept.count == 0 => return AdmissionDecision::Allowed(Vec::new()),
            Ok(kept) => format!(
                "namespace {name} has {kept}. Delete the GameDeployments first: kubectl delete gamedeployments --all \
                 -n {name}"
            ),
            Err(why) => format!(
                "failed to check whether namespace {name} has guarded pods ({why}); run the command again"
            ),
        };
        AdmissionDecision::Forbidden(format!(
            "{why}; to delete the namespace without running the hooks: kubectl label namespace {name} \
             {REMOVAL_GUARD}=Disabled --overwrite"
        ))
    }
}

#[cfg(test)]
mod tests;
