//! Deletion of a namespace: it deletes all pods without running their hooks, because no HookRun can be created in a
//! terminating namespace. It is denied while the namespace has guarded pods whose hooks would have to run.
//!
//! [`lookup`] looks up the pods and their workloads. It lists only guarded pods that have a node and have not ended.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use shared_api::names::pod::REMOVAL_GUARD;

use super::{GuardedPod, KeepingWorkload, OwnerReference};
use crate::review::AdmissionDecision;

pub mod lookup;

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
    /// Names of their GameDeployments.
    workloads: BTreeSet<String>,
    /// First of these that has no finalizer yet: its deletion would not run the hooks either.
    without_finalizer: Option<String>,
    /// Whether all of them were counted.
    is_complete: bool,
}

impl KeptPods {
    /// Adds pods of a GameDeployment.
    fn add(&mut self, pods: &[&GuardedPod], name: &str, workload: &KeepingWorkload) {
        if let (0, Some(pod)) = (self.count, pods.first()) {
            self.first.clone_from(&pod.metadata.name);
        }
        self.count += pods.len();
        self.workloads.insert(name.to_owned());
        if !workload.is_terminating() && !workload.has_finalizer() {
            self.without_finalizer.get_or_insert_with(|| name.to_owned());
        }
    }

    /// Returns the result of a check that has ended. One pod is enough for a denial, even if the check failed later.
    fn after(self, checked: Result<(), String>) -> Result<Self, String> {
        if self.count > 0 {
            return Ok(self);
        }
        checked.map(|()| self)
    }

    /// Returns the remedy: these pods must be deleted before the namespace, each after its hook.
    fn remedy(&self, namespace: &str) -> String {
        if let Some(name) = &self.without_finalizer {
            return format!(
                "gamedeployment-operator has not set the finalizer of GameDeployment {name} yet, and its deletion \
                 would not run the hooks without it. Scale it to 0, and wait until its pods are gone: kubectl scale \
                 gamedeployment {name} --replicas 0 -n {namespace}"
            );
        }
        let names: Vec<&str> = self.workloads.iter().map(String::as_str).collect();
        // GameDeployments that were not read may have no finalizer yet.
        let which = if self.is_complete {
            "--all".to_owned()
        } else {
            names.join(" ")
        };
        format!("Delete the GameDeployments first: kubectl delete gamedeployments {which} -n {namespace}")
    }
}

impl fmt::Display for KeptPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            first,
            is_complete,
            ..
        } = self;
        let at_least = if *is_complete { "" } else { "at least " };
        if *count == 1 {
            return write!(
                f,
                "{at_least}1 guarded pod, {first}, which would be deleted without running its PreDelete hook"
            );
        }
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
            Ok(kept) => format!("namespace {name} has {kept}. {}", kept.remedy(name)),
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
