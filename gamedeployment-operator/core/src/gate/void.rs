//! Reasons why a run is stale.

use shared_api::names::pod as names;
use shared_api::reason::WorkloadReason;

use super::{Question, Run, question};

/// Reason why a run is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Void {
    /// Text that follows "HookRun NAME does not count: ".
    pub why: String,
    /// Reason to report; `None` for routine causes.
    pub reason: Option<WorkloadReason>,
}

impl Void {
    pub(super) fn told(reason: WorkloadReason, why: String) -> Self {
        Self {
            why,
            reason: Some(reason),
        }
    }

    fn untold(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            reason: None,
        }
    }
}

impl Void {
    /// Whether the stale run stays: no new run is possible until its finalizers are removed.
    pub fn is_stuck(&self) -> bool {
        self.reason == Some(WorkloadReason::HookRunTerminating)
    }
}

impl std::fmt::Display for Void {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// Returns why a run is stale for this question, if it is. Does not check its age.
pub(super) fn of(run: &Run, question: &Question<'_>) -> Option<Void> {
    if run.terminating {
        let why = "it is being deleted and not gone; remove its finalizers";
        return Some(Void::told(WorkloadReason::HookRunTerminating, why.to_owned()));
    }
    let (pod, intent) = (question.pod, &question.intent);
    if run.pod_uid.as_deref() != Some(pod.uid.as_str()) {
        return Some(Void::untold("it does not name this pod"));
    }
    if run.revision != pod.revision() {
        let why = format!("the pod was at revision {}", run.revision);
        return Some(Void::untold(why));
    }
    if run.intent.as_deref() != Some(intent.text().as_str()) {
        let asked = run.intent.as_deref().unwrap_or("something else");
        return Some(Void::untold(format!("it was asked for {asked:?}")));
    }
    if let Some(void) = other_spec(run, &question.digest()) {
        return Some(void);
    }
    // A pod that was deselected and then selected again needs a new run.
    let chosen = pod.annotation(names::DELETING) == Some("true");
    if intent.deletes() && (!chosen || run.choice.as_deref() != pod.annotation(names::CHOSEN_FOR)) {
        return Some(Void::untold("it was asked when the pod was chosen before"));
    }
    let restarted = question::restarted(pod, &run.containers);
    restarted.map(|container| Void::untold(format!("container {container} has restarted since")))
}

/// Returns why a run's spec differs from the one with the digest `wanted`. Only the current spec counts, and
/// it must never have been edited. The annotation merely distinguishes an edited run from a changed hook.
fn other_spec(run: &Run, wanted: &str) -> Option<Void> {
    let edited = || {
        let why = "somebody has edited its spec: what was measured is not what the hook asks";
        Void::told(WorkloadReason::HookRunEdited, why.to_owned())
    };
    if run.spec_digest == wanted {
        return run.was_edited.then(edited);
    }
    let noted = run.noted_digest.as_deref() == Some(wanted);
    Some(if noted {
        edited()
    } else {
        Void::untold("the hook or the pod's arguments have changed")
    })
}
