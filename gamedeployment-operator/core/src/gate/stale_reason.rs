//! Reasons why a run is stale.

use shared_api::Phase;
use shared_api::names::pod as names;
use shared_api::reason::WorkloadReason;

use super::{Flaw, HookRequest, Run, hook_request, question};
use crate::pod::Pod;
use crate::spec_digest::SpecDigest;

/// Reason why a run is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleReason {
    /// Text that follows "HookRun NAME does not count: ".
    pub why: String,
    /// Reason to report; `None` for routine causes.
    pub reason: Option<WorkloadReason>,
}

impl StaleReason {
    pub(super) fn reported(reason: WorkloadReason, why: String) -> Self {
        Self {
            why,
            reason: Some(reason),
        }
    }

    fn routine(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            reason: None,
        }
    }
}

impl StaleReason {
    /// Whether the stale run stays: no new run is possible until its finalizers are removed.
    pub fn is_stuck(&self) -> bool {
        self.reason == Some(WorkloadReason::HookRunTerminating)
    }
}

impl std::fmt::Display for StaleReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// Returns why a run that has lost its owner does not count. Its verdict was for the workload that owned it.
pub(super) fn without_owner(run: &Run) -> StaleReason {
    if run.terminating {
        return terminating();
    }
    StaleReason::routine("it has no owner")
}

/// Returns why a run that a finalizer keeps does not count.
fn terminating() -> StaleReason {
    let why = "it is stuck terminating";
    StaleReason::reported(WorkloadReason::HookRunTerminating, why.to_owned())
}

/// Returns why a run is stale for this request, if it is. Does not check its age.
pub(super) fn of(run: &Run, hook_request: &HookRequest<'_>) -> Option<StaleReason> {
    if run.terminating {
        return Some(terminating());
    }
    let (pod, intent) = (hook_request.pod, &hook_request.intent);
    if run.pod_uid.as_deref() != Some(pod.uid.as_str()) {
        return Some(StaleReason::routine("it was created for another pod"));
    }
    if run.revision != pod.revision() {
        let why = format!("it was created for revision {} of the pod", run.revision);
        return Some(StaleReason::routine(why));
    }
    if run.intent.as_deref() != Some(intent.text().as_str()) {
        let intent = run.intent.as_deref().unwrap_or("something else");
        return Some(StaleReason::routine(format!(
            "it was created for another action ({intent:?})"
        )));
    }
    if let Some(stale_reason) = other_spec(run, hook_request.digest()) {
        return Some(stale_reason);
    }
    // A pod that was deselected and then selected again needs a new run.
    let chosen = pod.annotation(names::DELETING) == Some("true");
    if intent.deletes() && (!chosen || run.selection.as_deref() != pod.annotation(names::CHOSEN_FOR)) {
        return Some(StaleReason::routine(
            "it was created for an earlier selection of the pod",
        ));
    }
    // A failure that an older operator recorded names no question. It opens no gate, so it is kept until a retry.
    // A success that lacks a measurement did not fail, and is replaced.
    let is_unmeasured = run.phase == Phase::Successful && run.flaw == Some(Flaw::Unmeasured);
    let is_older_failure = run.question.is_none() && run.is_unsuccessful() && !is_unmeasured;
    if run.question.as_deref() != question::on(pod) && !is_older_failure {
        return Some(other_question(pod));
    }
    let restarted = hook_request::restarted(pod, &run.containers);
    restarted.map(|container| StaleReason::routine(format!("container {container} has restarted since")))
}

/// Returns why a run with another question than that on the pod does not count.
fn other_question(pod: &Pod) -> StaleReason {
    if question::on(pod).is_some() {
        return StaleReason::routine("a newer HookRun exists for the pod");
    }
    let why = format!(
        "the pod has lost annotation {}, which the operator relies on; find out what removed it",
        names::QUESTION
    );
    StaleReason::reported(WorkloadReason::HookRunEdited, why)
}

/// Returns why a run's spec does not count as the one with the digest `wanted`, if so. The current spec must
/// have that digest and must never have been edited. The annotation only distinguishes an edited run from a
/// changed hook.
fn other_spec(run: &Run, wanted: SpecDigest) -> Option<StaleReason> {
    let edited = || {
        let why = "its spec differs from the one that the operator wrote: it was edited, or a mutating admission \
                   webhook changed it";
        StaleReason::reported(WorkloadReason::HookRunEdited, why.to_owned())
    };
    if run.spec_digest == wanted {
        return run.is_edited.then(edited);
    }
    let noted = run.noted_digest == Some(wanted);
    Some(if noted {
        edited()
    } else {
        StaleReason::routine("the hook or the pod's arguments have changed")
    })
}
