//! Kinds of writes.

use super::{Action, GatedWrite};

/// Kind of a write: the key of its back-off, and a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteKind {
    /// Adds the finalizer of a workload with guarded pods.
    AddFinalizer,
    /// Makes a pod the workload's own.
    AdoptPod,
    /// Makes a ControllerRevision the workload's own.
    AdoptRevision,
    /// Records that a pod's `PostInplace` hook succeeded.
    ConfirmPod,
    /// Creates a HookRun.
    CreateRun,
    /// Creates a pod.
    CreatePod,
    /// Creates a ControllerRevision.
    CreateRevision,
    /// Deletes a HookRun.
    DeleteRun,
    /// Deletes a pod.
    DeletePod,
    /// Deletes a ControllerRevision.
    DeleteRevision,
    /// Records that a pod is selected for deletion.
    RecordSelection,
    /// Notes on a pod which hook runs for it, and sets its labels before an update in place.
    NoteQuestion,
    /// Sets `paused`.
    Pause,
    /// Puts a pod back into service.
    SetReady,
    /// Removes the workload as the owner of a pod.
    ReleasePod,
    /// Removes the finalizer of a workload with guarded pods.
    RemoveFinalizer,
    /// Changes the number of a ControllerRevision.
    RenumberRevision,
    /// Reports to an Eviction (`lifecycle.k8s.io`).
    ReportEviction,
    /// Sets `retry` back to false.
    ResetRetry,
    /// Writes the status.
    Status,
    /// Takes a pod out of service.
    SetNotReady,
    /// Terminates a HookRun.
    TerminateRun,
    /// Creates a pod as a dry run.
    DryRunPod,
    /// Removes the record that a pod is selected for deletion.
    ClearSelection,
    /// Corrects the labels of a pod that is selected for deletion or an update, or of one that no longer is.
    SetDrainingLabels,
    /// Sets or removes the label of guarded pods.
    SetGuardLabel,
    /// Sets or removes the annotations that keep autoscalers from removing a pod's node.
    SetAutoscalerAnnotations,
    /// Removes withdrawn removal requests from a pod.
    WithdrawRequests,
    /// Updates a pod in place.
    WriteUpdate,
}

impl WriteKind {
    /// Returns the word in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddFinalizer => "add_finalizer",
            Self::AdoptPod => "adopt_pod",
            Self::AdoptRevision => "adopt_revision",
            Self::ConfirmPod => "confirm_pod",
            Self::CreateRun => "create_hook_run",
            Self::CreatePod => "create_pod",
            Self::CreateRevision => "create_revision",
            Self::DeleteRun => "delete_hook_run",
            Self::DeletePod => "delete_pod",
            Self::DeleteRevision => "delete_revision",
            Self::RecordSelection => "mark_pod",
            Self::NoteQuestion => "note_question",
            Self::Pause => "pause",
            Self::SetReady => "put_in_pod",
            Self::ReleasePod => "release_pod",
            Self::RemoveFinalizer => "remove_finalizer",
            Self::RenumberRevision => "renumber_revision",
            Self::ReportEviction => "report_eviction",
            Self::ResetRetry => "reset_retry",
            Self::Status => "status",
            Self::SetNotReady => "take_out_pod",
            Self::TerminateRun => "terminate_hook_run",
            Self::DryRunPod => "try_pod",
            Self::ClearSelection => "unmark_pod",
            Self::SetDrainingLabels => "label_draining_pod",
            Self::SetGuardLabel => "label_pod",
            Self::SetAutoscalerAnnotations => "annotate_pod",
            Self::WithdrawRequests => "withdraw_requests",
            Self::WriteUpdate => "update_pod",
        }
    }
}

impl Action {
    /// Returns the kind of the write.
    pub fn kind(&self) -> WriteKind {
        match self {
            Self::CreateRevision(_) => WriteKind::CreateRevision,
            Self::AdoptRevision(_) => WriteKind::AdoptRevision,
            Self::RenumberRevision(..) => WriteKind::RenumberRevision,
            Self::DeleteRevision(_) => WriteKind::DeleteRevision,
            Self::AdoptPod(_) => WriteKind::AdoptPod,
            Self::ReleasePod(_) => WriteKind::ReleasePod,
            Self::CreatePod(_) => WriteKind::CreatePod,
            Self::DryRunPod(..) => WriteKind::DryRunPod,
            Self::RecordSelection(..) => WriteKind::RecordSelection,
            Self::ClearSelection(..) => WriteKind::ClearSelection,
            Self::SetDrainingLabels(..) => WriteKind::SetDrainingLabels,
            Self::SetGuardLabel(..) => WriteKind::SetGuardLabel,
            Self::SetAutoscalerAnnotations(..) => WriteKind::SetAutoscalerAnnotations,
            Self::WithdrawRequests(..) => WriteKind::WithdrawRequests,
            Self::NoteQuestion(..) => WriteKind::NoteQuestion,
            Self::Gated(GatedWrite::DeletePod(_)) => WriteKind::DeletePod,
            Self::Gated(GatedWrite::SetNotReady(..)) => WriteKind::SetNotReady,
            Self::Gated(GatedWrite::WriteUpdate(..)) => WriteKind::WriteUpdate,
            Self::Gated(GatedWrite::Confirm(_)) => WriteKind::ConfirmPod,
            Self::SetReady(..) => WriteKind::SetReady,
            Self::CreateRun(_) => WriteKind::CreateRun,
            Self::DeleteRun(_) => WriteKind::DeleteRun,
            Self::TerminateRun(_) => WriteKind::TerminateRun,
            Self::ResetRetry(_) => WriteKind::ResetRetry,
            Self::Pause => WriteKind::Pause,
            Self::AddFinalizer => WriteKind::AddFinalizer,
            Self::RemoveFinalizer(_) => WriteKind::RemoveFinalizer,
        }
    }

    /// Returns whether the action concerns the number of pods.
    pub fn scales(&self) -> bool {
        match self {
            Self::AdoptPod(_)
            | Self::ReleasePod(_)
            | Self::CreatePod(_)
            | Self::RecordSelection(..)
            | Self::ClearSelection(..)
            | Self::AddFinalizer
            | Self::RemoveFinalizer(_)
            | Self::Gated(GatedWrite::DeletePod(_)) => true,
            Self::CreateRun(run) => run.is_for_deletion(),
            Self::SetDrainingLabels(_, patch) => patch.is_for_deletion,
            Self::NoteQuestion(_, question, _) => question.is_of_deletion,
            Self::CreateRevision(_)
            | Self::AdoptRevision(_)
            | Self::RenumberRevision(..)
            | Self::DeleteRevision(_)
            | Self::DryRunPod(..)
            | Self::Gated(
                GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..) | GatedWrite::Confirm(_),
            )
            | Self::SetReady(..)
            | Self::SetGuardLabel(..)
            | Self::SetAutoscalerAnnotations(..)
            | Self::WithdrawRequests(..)
            | Self::DeleteRun(_)
            | Self::TerminateRun(_)
            | Self::ResetRetry(_)
            | Self::Pause => false,
        }
    }

    /// Name of its object; `None` for the workload.
    pub fn object(&self) -> Option<&str> {
        match self {
            Self::CreateRevision(revision) => Some(&revision.name),
            Self::AdoptRevision(revision)
            | Self::RenumberRevision(revision, _)
            | Self::DeleteRevision(revision) => Some(&revision.name),
            Self::CreatePod(pod) => Some(&pod.name),
            Self::DryRunPod(_, revision) => Some(revision),
            Self::AdoptPod(pod)
            | Self::ReleasePod(pod)
            | Self::RecordSelection(pod, ..)
            | Self::ClearSelection(pod, _)
            | Self::SetDrainingLabels(pod, _)
            | Self::SetGuardLabel(pod, _)
            | Self::SetAutoscalerAnnotations(pod, _)
            | Self::WithdrawRequests(pod, _)
            | Self::NoteQuestion(pod, ..)
            | Self::SetReady(pod, _) => Some(&pod.name),
            Self::Gated(write) => Some(&write.pod().name),
            Self::CreateRun(run) => run.metadata.name.as_deref(),
            Self::DeleteRun(run) => Some(&run.name),
            Self::TerminateRun(run) => Some(&run.name),
            Self::ResetRetry(_) | Self::Pause | Self::AddFinalizer | Self::RemoveFinalizer(_) => None,
        }
    }
}
