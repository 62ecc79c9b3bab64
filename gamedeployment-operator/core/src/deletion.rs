//! Deletion of a workload with guarded pods. A finalizer holds the workload until no pod is left; meanwhile its pods
//! are deleted like surplus pods, each after its hook has succeeded.
//!
//! The finalizer is set before the first pod is created: the API server adds none to an object that is being deleted.

use shared_api::GameDeployment;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use crate::plan::{Action, FinalizerRemoval};
use crate::pod::Pod;
use crate::view::View;
use crate::workload::{DisruptionPolicy, FieldError, Workload};

/// Finalizer of a deletion that orphans the pods.
const ORPHAN: &str = "orphan";

/// Whether the workload is being deleted.
#[must_use]
pub fn is_requested(object: &GameDeployment) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether the finalizer is set.
#[must_use]
pub fn has_finalizer(object: &GameDeployment) -> bool {
    has(object, ASK_BEFORE_REMOVAL)
}

/// Whether the hooks of the pods run before others may remove the pods.
#[must_use]
pub fn is_guarded(object: &GameDeployment) -> bool {
    DisruptionPolicy::read(object.spec.disruption.as_ref()) == Some(DisruptionPolicy::Ask)
}

/// Whether the deletion orphans the pods: the garbage collector removes their owner references.
#[must_use]
pub fn orphans_pods(object: &GameDeployment) -> bool {
    has(object, ORPHAN)
}

fn has(object: &GameDeployment, finalizer: &str) -> bool {
    let mut finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.any(|known| known == finalizer)
}

/// Returns why the finalizer of a workload that is being deleted can be removed; `None` if pods are left. `problems`:
/// those of its spec.
///
/// A deletion that orphans the pods waits for the garbage collector: until then, another deletion of the workload would
/// delete them.
#[must_use]
pub fn removal(view: &View<'_>, workload: &Workload, problems: &[FieldError]) -> Option<FinalizerRemoval> {
    match workload.disruption.policy {
        DisruptionPolicy::Unguarded => return Some(FinalizerRemoval::Unasked),
        DisruptionPolicy::Ask => {}
    }
    let is_own = |pod: &&&Pod| pod.is_active() && pod.controller.as_deref() == Some(workload.uid.as_str());
    if view.pods.iter().any(|pod| is_own(&pod)) {
        return None;
    }
    // An empty selector matches all pods of the namespace; those of other owners are ignored.
    let is_readable = problems.iter().all(FieldError::is_of_template);
    let selector = is_readable.then(|| workload.selector.to_string());
    Some(FinalizerRemoval::NoPods(selector.unwrap_or_default()))
}

/// Returns the write with which the finalizer follows the policy of a workload that is not being deleted.
#[must_use]
pub fn follow_policy(object: &GameDeployment, workload: &Workload) -> Option<Action> {
    match (workload.disruption.policy, has_finalizer(object)) {
        (DisruptionPolicy::Ask, false) => Some(Action::AddFinalizer),
        (DisruptionPolicy::Unguarded, true) => Some(Action::RemoveFinalizer(FinalizerRemoval::Unasked)),
        (DisruptionPolicy::Ask, true) | (DisruptionPolicy::Unguarded, false) => None,
    }
}

/// Whether the workload gets no pod before the finalizer is set.
#[must_use]
pub fn awaits_finalizer(object: &GameDeployment, workload: &Workload) -> bool {
    follow_policy(object, workload) == Some(Action::AddFinalizer)
}

#[cfg(test)]
mod tests;
