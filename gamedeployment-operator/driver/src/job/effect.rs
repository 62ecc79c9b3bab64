//! Results of a single write.

use gamedeployment_core::plan::Action;
use jiff::Timestamp;

use crate::expectations::UncertainObject;
use crate::request::{Object, ObjectKind, RequestError};

/// Result of a write or a direct read that updates the driver's state.
#[derive(Debug)]
pub(crate) enum Effect {
    /// New state of an object.
    Object(Object),
    /// Deletion of the object of this name and UID.
    Gone(ObjectKind, String, String),
    /// A dry run accepted a pod of this revision.
    Accepted(String),
    /// The API server did not confirm that this node is gone.
    NodeNotGone(String),
    /// A direct read did not find this node Ready since the time that the watch shows, but possibly since
    /// another one.
    NodeNotReady(String, Option<Timestamp>),
    /// The state of the object of this name is uncertain; a direct read must show it.
    Uncertain(UncertainObject),
    /// The write succeeded and leaves nothing to remember.
    Nothing,
}

/// Failed write, and the effect it has on the driver's state nevertheless.
#[derive(Debug)]
pub(crate) struct FailedWrite {
    pub(crate) error: RequestError,
    pub(crate) effect: Option<Effect>,
    /// Whether another object has the name of a new revision.
    pub(crate) collision: bool,
}

impl FailedWrite {
    pub(crate) fn new(error: RequestError, effect: Option<Effect>) -> Self {
        Self {
            error,
            effect,
            collision: false,
        }
    }
}

/// Object that a write targets.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: ObjectKind,
    pub(crate) name: String,
    /// `None` for an object that is being created.
    pub(crate) uid: Option<String>,
    /// Whether the write concerns the number of pods.
    pub(crate) scales: bool,
}

impl Target {
    /// Returns the target of an action for the workload of this name and UID.
    pub(crate) fn of(action: &Action, workload: (&str, &str)) -> Self {
        let target = |kind, name: &str, uid: Option<&str>| Self {
            kind,
            name: name.to_owned(),
            uid: uid.map(str::to_owned),
            scales: action.scales(),
        };
        match action {
            Action::CreateRevision(new) => target(ObjectKind::Revision, &new.name, None),
            Action::AdoptRevision(at) | Action::RenumberRevision(at, _) | Action::DeleteRevision(at) => {
                target(ObjectKind::Revision, &at.name, Some(&at.uid))
            }
            Action::CreatePod(new) | Action::DryRunPod(new, _) => target(ObjectKind::Pod, &new.name, None),
            Action::AdoptPod(at)
            | Action::ReleasePod(at)
            | Action::RecordSelection(at, ..)
            | Action::ClearSelection(at, _)
            | Action::SetDrainingLabels(at, _)
            | Action::SetGuardLabel(at, _)
            | Action::SetAutoscalerAnnotations(at, _)
            | Action::WithdrawRequests(at, _)
            | Action::NoteQuestion(at, ..)
            | Action::SetReady(at, _) => target(ObjectKind::Pod, &at.name, Some(&at.uid)),
            Action::Gated(write) => target(ObjectKind::Pod, &write.pod().name, Some(&write.pod().uid)),
            Action::CreateRun(new) => target(ObjectKind::Run, new.name(), None),
            Action::DeleteRun(at) => target(ObjectKind::Run, &at.name, Some(&at.uid)),
            Action::TerminateRun(at) => target(ObjectKind::Run, &at.name, Some(&at.uid)),
            Action::ResetRetry(_) | Action::Pause | Action::AddFinalizer | Action::RemoveFinalizer(_) => {
                target(ObjectKind::Workload, workload.0, Some(workload.1))
            }
        }
    }

    /// Returns the effect that the object's state is uncertain.
    pub(crate) fn uncertain(&self) -> Effect {
        Effect::Uncertain(UncertainObject {
            kind: self.kind,
            name: self.name.clone(),
            scales: self.scales,
        })
    }

    /// Returns the effect of a failed write on the driver's state.
    pub(crate) fn after(&self, error: &RequestError) -> Option<Effect> {
        match (error, &self.uid) {
            (RequestError::Gone, Some(uid)) => Some(Effect::Gone(self.kind, self.name.clone(), uid.clone())),
            // The write may have succeeded, or the cached object is outdated.
            (RequestError::Unknown(_), _) | (RequestError::Conflict, Some(_)) => Some(self.uncertain()),
            // A run of that name exists; the next decision depends on its content.
            (RequestError::Conflict, None) if self.kind == ObjectKind::Run => Some(self.uncertain()),
            (RequestError::Gone | RequestError::Conflict, None)
            | (
                RequestError::Refused(_)
                | RequestError::Throttled(_)
                | RequestError::Lapsed
                | RequestError::NotStored
                | RequestError::Repeated,
                _,
            ) => None,
        }
    }
}
