//! Removal of the finalizer [`ASK_BEFORE_REMOVAL`] from a GameDeployment that is being deleted. The garbage collector
//! would delete its pods at once, without running their hooks. `kubectl replace` removes it: no manifest has it.
//!
//! The removal is denied while the GameDeployment has pods, and allowed if the same update changes the policy.

use serde::Deserialize;
use serde_json::value::RawValue;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;

use super::{KeepingWorkload, is_by_operator, read_part};
use crate::review::{AdmissionDecision, AdmissionRequest};
use crate::validate::ValidatedKind;

/// GameDeployment, as far as its status counts its pods.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CountedWorkload {
    status: Option<CountedStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CountedStatus {
    replicas: Option<i64>,
}

/// Returns the denial of an update that removes the finalizer too early; `None` for all other requests. The objects are
/// read from their texts, because objects that are being deleted are not validated. `operators`: users of
/// gamedeployment-operator.
pub fn judge(
    head: &AdmissionRequest,
    object: &RawValue,
    old_object: &RawValue,
    operators: &[String],
) -> Option<AdmissionDecision> {
    let is_workload = ValidatedKind::of(&head.kind) == Some(ValidatedKind::GameDeployment);
    let user = head.user_info.username.as_deref().unwrap_or_default();
    if !is_workload || head.operation != "UPDATE" || !head.is_whole() || is_by_operator(user, operators) {
        return None;
    }
    let old: KeepingWorkload = read_part(old_object).ok()?;
    if !old.is_terminating() || !old.has_finalizer() {
        return None;
    }
    let new: KeepingWorkload = read_part(object).ok()?;
    if new.has_finalizer() || !new.runs_hooks() || has_no_pods(old_object) {
        return None;
    }
    Some(AdmissionDecision::Forbidden(format!(
        "the finalizer {ASK_BEFORE_REMOVAL} of GameDeployment {} must not be removed while its pods are being \
         deleted, because they would be deleted without running their hooks; to do that, set spec.disruption.policy \
         to Unguarded",
        head.name()
    )))
}

/// Returns whether the status says that no pods are left.
fn has_no_pods(workload: &RawValue) -> bool {
    let counted: CountedWorkload = read_part(workload).unwrap_or_default();
    counted.status.and_then(|status| status.replicas) == Some(0)
}

#[cfg(test)]
mod tests;
