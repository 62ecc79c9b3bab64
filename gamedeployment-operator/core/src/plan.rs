//! The output of a decision. Actions are data that carry their preconditions and are independent of one
//! another: any of them may fail or be repeated without harm. The status is written after them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use shared_api::GameDeploymentStatus;
use shared_api::json_text::JsonText;
use shared_api::reason::WorkloadReason;

mod gated_write;
mod metadata_patch;
mod write_kind;

pub use gated_write::GatedWrite;
pub use metadata_patch::MetadataPatch;
pub use write_kind::WriteKind;

use crate::first_idle::Searches;
use crate::gate::{NewRun, PodRef, Question, Run};
use crate::guard_check::PlannedCheck;
use crate::hook_kind::HookKind;
use crate::revision::Revision;

/// Actions and status of one decision.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Actions, in any order.
    pub actions: Vec<Action>,
    /// The new status, if it changed. Whether it is written depends on the results of the actions, which may
    /// change it again.
    pub status: Option<Box<GameDeploymentStatus>>,
    /// Time of the next decision if no event arrives.
    pub wake: Option<Timestamp>,
    /// Events that need a person's attention.
    pub warnings: Vec<Warning>,
    /// Names of the pods whose hook may run, or that may be acted on, within the budget. Filled only while a
    /// write is rejected.
    pub granted: BTreeSet<String>,
    /// Metrics of the workload; `None` if the decision ended before they were known.
    pub gauges: Option<Gauges>,
    /// Check of the removal guard.
    pub guard_check: PlannedCheck,
}

/// Actions of one stage of a decision.
#[derive(Debug, Default, PartialEq)]
pub struct PartialPlan {
    /// Actions in execution order.
    pub actions: Vec<Action>,
    /// Time of the next decision if no event arrives.
    pub wake: Option<Timestamp>,
}

impl PartialPlan {
    /// Wakes at this time, or earlier.
    pub fn wake_at(&mut self, at: Timestamp) {
        self.wake = earlier(self.wake, Some(at));
    }
}

impl From<Vec<Action>> for PartialPlan {
    fn from(actions: Vec<Action>) -> Self {
        Self { actions, wake: None }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Limits on the work done for one workload before the next decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Creations of pods.
    pub creations: usize,
    /// Other writes, except removals of runs.
    pub changes: usize,
    /// Number of obsolete runs that triggers their removal. They are also removed when nothing else is left
    /// to do.
    pub removals: usize,
}

impl Default for PlanLimits {
    /// Creations double with each successful batch, so ten batches reach the maximum. The changes take the
    /// API server about a second.
    fn default() -> Self {
        Self {
            creations: 512,
            changes: 128,
            removals: 200,
        }
    }
}

/// One write.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Record a new revision.
    CreateRevision(NewRevision),
    /// Adopt a revision that has no controller.
    AdoptRevision(RevisionRef),
    /// Make an older revision the newest, for a rollback.
    RenumberRevision(RevisionRef, i64),
    /// Delete a revision that nothing uses.
    DeleteRevision(RevisionRef),
    /// Adopt a pod that has no controller.
    AdoptPod(PodRef),
    /// Release a pod that no longer matches the selector.
    ReleasePod(PodRef),
    /// Create a pod.
    CreatePod(Box<NewPod>),
    /// Create a pod of this revision as a dry run.
    DryRunPod(Box<NewPod>, String),
    /// Record on a pod that it was selected, with the intent and the time, and set the labels for its selection.
    /// Also notes the text as a question.
    RecordSelection(PodRef, String, MetadataPatch),
    /// Remove the selection record from a pod, and restore its former labels.
    ClearSelection(PodRef, MetadataPatch),
    /// Correct the labels of a pod whose selection does not change, or restore the former ones of a pod whose update
    /// in place is cancelled.
    SetDrainingLabels(PodRef, MetadataPatch),
    /// Note on a pod the question of its next HookRun, and set its labels before an update in place.
    NoteQuestion(PodRef, Question, MetadataPatch),
    /// Set the label of guarded pods, or remove it.
    SetGuardLabel(PodRef, bool),
    /// Set annotations that keep autoscalers from removing the pod's node, or remove them.
    SetAutoscalerAnnotations(PodRef, MetadataPatch),
    /// Remove withdrawn removal requests from a pod: replace the annotation by this text, or remove it.
    WithdrawRequests(PodRef, Option<String>),
    /// Change or delete a pod, as its gate approved.
    Gated(GatedWrite),
    /// Put a pod into service and record which update of it is finished, if any.
    SetReady(PodRef, Option<Finished>),
    /// Create a HookRun.
    CreateRun(Box<NewRun>),
    /// Delete a HookRun that nothing depends on.
    DeleteRun(RunRef),
    /// Set `terminate` of a HookRun, which ends it without a verdict.
    TerminateRun(RunVersion),
    /// Reset `retry` of these hooks to false.
    ResetRetry(Vec<HookKind>),
    /// Set `updateStrategy.paused` to true, for a canary step.
    Pause,
    /// Add the finalizer [`ASK_BEFORE_REMOVAL`](shared_api::names::workload::ASK_BEFORE_REMOVAL) to the workload.
    AddFinalizer,
    /// Remove this finalizer.
    RemoveFinalizer(FinalizerRemoval),
}

/// Reason why the finalizer of a workload is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinalizerRemoval {
    /// No hook runs for the pods, because they are not guarded.
    Unasked,
    /// No pod is left. A list of the pods with this selector must confirm it.
    NoPods(String),
}

/// A ControllerRevision to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRevision {
    /// `metadata.name`.
    pub name: String,
    /// Revision number in the history.
    pub number: i64,
    /// Serialized template data.
    pub data: JsonText,
    /// The template's labels.
    pub labels: BTreeMap<String, String>,
}

/// A ControllerRevision at one resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionRef {
    /// `metadata.name`.
    pub name: String,
    /// UID, a precondition.
    pub uid: String,
    /// Resource version, a precondition.
    pub resource_version: String,
}

impl RevisionRef {
    /// Refers to the cached version.
    pub fn of(revision: &Revision) -> Self {
        Self {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
            resource_version: revision.resource_version.clone(),
        }
    }
}

/// A HookRun at one resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunVersion {
    /// `metadata.name`.
    pub name: String,
    /// UID, a precondition.
    pub uid: String,
    /// Resource version, a precondition.
    pub resource_version: String,
}

/// A HookRun to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRef {
    /// `metadata.name`.
    pub name: String,
    /// UID, a precondition.
    pub uid: String,
    /// Resource version, a precondition if the workload does not own the run: another client may be giving it an owner.
    pub resource_version: Option<String>,
    /// Whether the run has ended and its pod is gone, so that it can affect no pod any more.
    pub is_history: bool,
    /// Warning to emit once it is deleted: its verdict does not count, for a reason that users should know.
    pub stale_warning: Option<Box<Warning>>,
}

impl RunRef {
    /// Refers to the cached version of a run without an owner. The pod, or the rollout if there is none, needs its name.
    pub fn without_owner(run: &Run, pod: Option<PodRef>) -> Self {
        let warning = Warning {
            pod,
            reason: WorkloadReason::HookRunEdited,
            message: format!(
                "HookRun {} has no owner (for example, after a restore from backup), so it does not count; deleting \
                 it and rerunning the hook. If this recurs, find out what removes metadata.ownerReferences",
                run.name
            ),
        };
        Self {
            name: run.name.clone(),
            uid: run.uid.clone(),
            resource_version: Some(run.resource_version.clone()),
            is_history: false,
            stale_warning: Some(Box::new(warning)),
        }
    }
}

/// A finished in-place update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The revision that the pod was updated to.
    pub revision: String,
    /// Identifies this update in the condition of a pod that cannot be taken out of service; otherwise empty.
    pub mark: String,
}

/// A pod to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPod {
    /// `metadata.name`.
    pub name: String,
    /// The whole object, including fields that this version does not know.
    pub manifest: Value,
}

/// Changes that an update writes to a pod.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PodChange {
    /// Images by container.
    pub images: BTreeMap<String, String>,
    /// Labels; `None` removes the label.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations; `None` removes the annotation.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// An event that needs a person's attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The pod that it is about; `None` for the workload.
    pub pod: Option<PodRef>,
    /// The reason of the event.
    pub reason: WorkloadReason,
    /// Describes what happened and what to do.
    pub message: String,
}

/// Reported state of the workload, separate from the actions.
#[derive(Debug, Default, PartialEq)]
pub struct StatusReport {
    /// The new status, if it changed.
    pub status: Option<Box<GameDeploymentStatus>>,
    /// Events that need a person's attention.
    pub warnings: Vec<Warning>,
    /// Metrics of the workload.
    pub gauges: Option<Gauges>,
    /// Time at which the report changes without an event.
    pub wake: Option<Timestamp>,
}

/// Metrics of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Pods that wait for a hook, in the order of [`HookKind::ALL`]; `None` for a hook that is neither
    /// configured nor waited for.
    pub hooks: [Option<HookWaits>; 3],
    /// Pods selected for deletion.
    pub chosen: PodGroup,
    /// Pods that are being deleted but still exist.
    pub ending: PodGroup,
    /// Pods with a valid removal request.
    pub removals: PodGroup,
    /// Whether the removal guard is in effect; `None` with the policy `Unguarded`, and before the first check.
    pub guarded: Option<bool>,
    /// Progress of the update.
    pub rollout: Rollout,
    /// Searches for idle pods.
    pub first_idle: Searches,
}

/// Pods that wait for one hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookWaits {
    /// The hook has no verdict yet.
    pub asking: PodGroup,
    /// The hook did not succeed.
    pub refused: PodGroup,
    /// The hook cannot run.
    pub blocked: PodGroup,
    /// The hook runs, but keeps failing with errors or cannot succeed.
    pub erroring: PodGroup,
}

/// A group of pods in the same state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// Number of pods.
    pub pods: usize,
    /// Time when the first of them joined the group, if known.
    pub since: Option<Timestamp>,
}

impl PodGroup {
    /// Adds a pod.
    pub fn join(&mut self, since: Option<Timestamp>) {
        self.pods += 1;
        self.since = match (self.since, since) {
            (Some(first), Some(since)) => Some(first.min(since)),
            (first, since) => first.or(since),
        };
    }
}

/// Progress of an update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Old pods to update now. Excludes pods held back by a partition, a canary step or a pause, and pods
    /// that someone else deletes.
    pub to_update: usize,
    /// Pods with an in-place update in progress.
    pub updating: usize,
}

impl Plan {
    /// Whether there is nothing to do and nothing to write.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.status.is_none() && self.warnings.is_empty()
    }

    /// Truncates the plan to the work allowed before the next decision. Call it only after
    /// [`WriteBackoff::remove_backed_off`](crate::write_backoff::WriteBackoff::remove_backed_off) has removed
    /// the actions in back-off: otherwise they would fill the plan and block everything else.
    ///
    /// Limits pod creations and other writes. While they run, the user may change the spec, and a deleted pod
    /// cannot be restored; pods that have become ready also wait to be put into service.
    ///
    /// Delays removals of obsolete runs, up to a limit, while there is other work: batched removals are
    /// cheap, and the API server is busy while a fleet is drained.
    pub fn limit(&mut self, limits: &PlanLimits) {
        let waits = |action: &Action| matches!(action, Action::DeleteRun(run) if run.is_history);
        let waiting = self.actions.iter().filter(|action| waits(action)).count();
        if waiting < limits.removals.min(self.actions.len()) {
            self.actions.retain(|action| !waits(action));
        }
        let (mut creations, mut changes) = (limits.creations, limits.changes);
        self.actions.retain(|action| {
            let left = match action {
                Action::CreatePod(_) => &mut creations,
                // One call removes many, and it is harmless.
                Action::DeleteRun(_) => return true,
                Action::CreateRevision(_)
                | Action::AdoptRevision(_)
                | Action::RenumberRevision(..)
                | Action::DeleteRevision(_)
                | Action::AdoptPod(_)
                | Action::ReleasePod(_)
                | Action::DryRunPod(..)
                | Action::RecordSelection(..)
                | Action::ClearSelection(..)
                | Action::SetDrainingLabels(..)
                | Action::SetGuardLabel(..)
                | Action::SetAutoscalerAnnotations(..)
                | Action::WithdrawRequests(..)
                | Action::NoteQuestion(..)
                | Action::Gated(_)
                | Action::SetReady(..)
                | Action::CreateRun(_)
                | Action::TerminateRun(_)
                | Action::ResetRetry(_)
                | Action::Pause
                | Action::AddFinalizer
                | Action::RemoveFinalizer(_) => &mut changes,
            };
            let stays = *left > 0;
            *left = left.saturating_sub(1);
            stays
        });
    }

    /// Appends the actions of the next stage.
    pub fn add(&mut self, part: impl Into<PartialPlan>) {
        let mut part = part.into();
        if self.actions.is_empty() {
            self.actions = part.actions;
        } else {
            self.actions.append(&mut part.actions);
        }
        self.wake = earlier(self.wake, part.wake);
    }

    /// Adds the report.
    #[must_use]
    pub fn reporting(mut self, report: StatusReport) -> Self {
        self.status = report.status;
        self.warnings = report.warnings;
        self.gauges = report.gauges;
        self.wake = earlier(self.wake, report.wake);
        self
    }
}

#[cfg(test)]
mod tests;
