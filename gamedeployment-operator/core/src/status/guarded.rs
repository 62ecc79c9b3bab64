//! Condition that says whether the removal guard is in effect for the pods.

use shared_api::names::namespace::REMOVAL_GUARD_ENABLED;
use shared_api::names::pod::REMOVAL_GUARD;
use shared_api::reason::{WorkloadCondition, WorkloadReason};

use super::condition::{ConditionStatus, Conditions};
use super::name_list::join_names;
use crate::facts::Facts;
use crate::guard_check::{self, GuardCheck};
use crate::plural::form;
use crate::user_text::bounded;
use crate::workload::DisruptionPolicy;

const KIND: WorkloadCondition = WorkloadCondition::RemovalsGuarded;

/// Sets the condition of a workload with the policy `Ask`. Until the first check after the start of the operator, it
/// stays as it is.
pub(super) fn removals_guarded(facts: &Facts<'_>, conditions: &mut Conditions<'_>) {
    let workload = facts.workload;
    match workload.disruption.policy {
        DisruptionPolicy::Unguarded => return,
        DisruptionPolicy::Ask => {}
    }
    let (status, reason, message) = if !guard_check::is_expected(workload) {
        let message = "the pods are not guarded, because no hook runs before their deletion; set \
                       spec.preDeleteUpdateStrategy.hook";
        let reason = WorkloadReason::RemovalsNotGuarded;
        (ConditionStatus::False, reason, message.to_owned())
    } else if let Some(message) = unlabelled(facts) {
        (
            ConditionStatus::False,
            WorkloadReason::RemovalsNotGuarded,
            message,
        )
    } else if let Some(check) = facts.view.guard_check {
        found(check, &workload.namespace)
    } else {
        // A missing hook that has been added since is no longer the reason.
        let known = conditions.known(KIND);
        let generation = facts.view.object.metadata.generation;
        if known.is_some_and(|known| known.status != "False" || known.observed_generation == generation) {
            conditions.keep(KIND);
        }
        return;
    };
    conditions.set_status(KIND, status, reason, message);
}

/// Returns which pods have no label, if a write is rejected. Otherwise, the label of these pods is about to be set.
fn unlabelled(facts: &Facts<'_>) -> Option<String> {
    facts.view.write_errors?;
    let unlabelled = facts.pods.iter().filter(|pod| !guard_check::is_labelled(pod));
    let mut names: Vec<&str> = unlabelled.map(|pod| pod.pod.name.as_str()).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| {
        format!(
            "{} {} not guarded, because the label {REMOVAL_GUARD} could not be set; see the conditions ScaleBlocked \
             and UpdateBlocked",
            join_names(&names),
            form(names.len(), "is", "are")
        )
    })
}

fn found(check: &GuardCheck, namespace: &str) -> (ConditionStatus, WorkloadReason, String) {
    match check {
        GuardCheck::Guarded => (
            ConditionStatus::True,
            WorkloadReason::RemovalsGuarded,
            "evictions and deletions of the pods by others are denied until their PreDelete hooks have succeeded"
                .to_owned(),
        ),
        GuardCheck::NotGuarded => (
            ConditionStatus::False,
            WorkloadReason::RemovalsNotGuarded,
            format!(
                "the removal guard does not review evictions and deletions of the pods, so kubectl drain and kubectl \
                 delete pod run no hooks; install hookgate-admission with the removal guard, and run: kubectl label \
                 namespace {namespace} {REMOVAL_GUARD}={REMOVAL_GUARD_ENABLED} --overwrite"
            ),
        ),
        GuardCheck::Incomplete(why) => (
            ConditionStatus::False,
            WorkloadReason::RemovalsNotGuarded,
            format!(
                "the removal guard does not review all evictions and deletions of the pods: {}; restore the \
                 ValidatingWebhookConfiguration of hookgate-admission",
                bounded(why)
            ),
        ),
        GuardCheck::Failed(error) => (
            ConditionStatus::Unknown,
            WorkloadReason::GuardNotChecked,
            format!(
                "failed to check the removal guard: {}; the check is repeated every minute",
                bounded(error)
            ),
        ),
    }
}

/// Returns whether the pods are guarded; `None` without the condition.
pub(super) fn gauge(conditions: &Conditions<'_>) -> Option<bool> {
    let condition = conditions.new_condition(KIND)?;
    Some(condition.status == "True")
}
