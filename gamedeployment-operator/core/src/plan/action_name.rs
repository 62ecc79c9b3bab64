//! Names of actions in metrics, traces and recorded rejections.

use super::{Action, GatedWrite};

impl Action {
    /// Name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateRevision(_) => CREATE_REVISION,
            Self::AdoptRevision(_) => "adopt_revision",
            Self::RenumberRevision(..) => "renumber_revision",
            Self::DeleteRevision(_) => "delete_revision",
            Self::AdoptPod(_) => "adopt_pod",
            Self::ReleasePod(_) => "release_pod",
            Self::CreatePod(_) => CREATE_POD,
            Self::DryRunPod(..) => DRY_RUN_POD,
            Self::RecordSelection(..) => "mark_pod",
            Self::ClearSelection(_) => "unmark_pod",
            Self::NoteQuestion(..) => "note_question",
            Self::Gated(GatedWrite::DeletePod(_)) => "delete_pod",
            Self::Gated(GatedWrite::SetNotReady(..)) => "take_out_pod",
            Self::Gated(GatedWrite::WriteUpdate(..)) => "update_pod",
            Self::Gated(GatedWrite::Confirm(_)) => "confirm_pod",
            Self::SetReady(..) => "put_in_pod",
            Self::CreateRun(_) => "create_hook_run",
            Self::DeleteRun(_) => DELETE_RUN,
            Self::TerminateRun(_) => "terminate_hook_run",
            Self::ResetRetry(_) => "reset_retry",
            Self::Pause => "pause",
        }
    }

    /// Returns whether the action concerns the number of pods.
    pub fn scales(&self) -> bool {
        match self {
            Self::AdoptPod(_)
            | Self::ReleasePod(_)
            | Self::CreatePod(_)
            | Self::RecordSelection(..)
            | Self::ClearSelection(_)
            | Self::Gated(GatedWrite::DeletePod(_)) => true,
            Self::CreateRun(run) => run.is_for_deletion(),
            Self::NoteQuestion(_, question) => question.is_of_deletion,
            Self::CreateRevision(_)
            | Self::AdoptRevision(_)
            | Self::RenumberRevision(..)
            | Self::DeleteRevision(_)
            | Self::DryRunPod(..)
            | Self::Gated(
                GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..) | GatedWrite::Confirm(_),
            )
            | Self::SetReady(..)
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
            | Self::RecordSelection(pod, _)
            | Self::ClearSelection(pod)
            | Self::NoteQuestion(pod, _)
            | Self::SetReady(pod, _) => Some(&pod.name),
            Self::Gated(write) => Some(&write.pod().name),
            Self::CreateRun(run) => run.metadata.name.as_deref(),
            Self::DeleteRun(run) => Some(&run.name),
            Self::TerminateRun(run) => Some(&run.name),
            Self::ResetRetry(_) | Self::Pause => None,
        }
    }
}

/// Creation of a ControllerRevision.
pub const CREATE_REVISION: &str = "create_revision";
/// Creation of a pod.
pub const CREATE_POD: &str = "create_pod";
/// Dry-run creation of a pod.
pub const DRY_RUN_POD: &str = "try_pod";
/// Deletion of a HookRun.
pub const DELETE_RUN: &str = "delete_hook_run";
/// Write of the status.
pub const STATUS: &str = "status";
