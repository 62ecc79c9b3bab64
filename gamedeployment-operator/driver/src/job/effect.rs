//! Results of a single write.

use gamedeployment_core::plan::Action;

use crate::request::{CallError, Kind, Object};

/// Result of a write that updates the driver's state.
#[derive(Debug)]
pub(crate) enum Effect {
    /// New state of an object.
    Object(Object),
    /// Deletion of the object of this name and UID.
    Gone(Kind, String, String),
    /// A dry run accepted a pod of this revision.
    Accepted(String),
    /// The API server did not confirm that this node is gone.
    NodeNotGone(String),
    /// The outcome of a write to an object of this name is unknown.
    Uncertain(Kind, String),
    /// The write succeeded and leaves nothing to remember.
    Nothing,
}

/// Failed write, and the effect it has on the cache nevertheless.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: CallError,
    pub(crate) effect: Option<Effect>,
    /// Whether another object has the name of a new revision.
    pub(crate) collision: bool,
}

impl Failure {
    pub(crate) fn new(error: CallError, effect: Option<Effect>) -> Self {
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
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// `None` for an object that is being created.
    pub(crate) uid: Option<String>,
}

impl Target {
    /// Returns the target of an action for the workload of this name and UID.
    pub(crate) fn of(action: &Action, workload: (&str, &str)) -> Self {
        let target = |kind, name: &str, uid: Option<&str>| Self {
            kind,
            name: name.to_owned(),
            uid: uid.map(str::to_owned),
        };
        match action {
            Action::CreateRevision(new) => target(Kind::Revision, &new.name, None),
            Action::AdoptRevision(at) | Action::RenumberRevision(at, _) | Action::DeleteRevision(at) => {
                target(Kind::Revision, &at.name, Some(&at.uid))
            }
            Action::CreatePod(new) | Action::TryPod(new, _) => target(Kind::Pod, &new.name, None),
            Action::Adopt(at)
            | Action::Release(at)
            | Action::Mark(at, _)
            | Action::Unmark(at)
            | Action::PutIn(at, _) => target(Kind::Pod, &at.name, Some(&at.uid)),
            Action::DeletePod(delete) => target(Kind::Pod, &delete.pod().name, Some(&delete.pod().uid)),
            Action::TakeOut(update, _) | Action::WriteUpdate(update, _) => {
                target(Kind::Pod, &update.pod().name, Some(&update.pod().uid))
            }
            Action::Confirm(confirmed) => {
                target(Kind::Pod, &confirmed.pod().name, Some(&confirmed.pod().uid))
            }
            Action::CreateRun(new) => {
                let name = new.run.metadata.name.as_deref().unwrap_or_default();
                target(Kind::Run, name, None)
            }
            Action::DeleteRun(at) => target(Kind::Run, &at.name, Some(&at.uid)),
            Action::ResetRetry(_) | Action::Pause => target(Kind::Workload, workload.0, Some(workload.1)),
        }
    }

    /// Returns the effect of a failed write on the cache.
    pub(crate) fn after(&self, error: &CallError) -> Option<Effect> {
        let uncertain = || Effect::Uncertain(self.kind, self.name.clone());
        match (error, &self.uid) {
            (CallError::Gone, Some(uid)) => Some(Effect::Gone(self.kind, self.name.clone(), uid.clone())),
            // The write may have succeeded, or the cached object is outdated.
            (CallError::Unknown(_), _) | (CallError::Conflict, Some(_)) => Some(uncertain()),
            // A run of that name exists; the next decision depends on its content.
            (CallError::Conflict, None) if self.kind == Kind::Run => Some(uncertain()),
            (CallError::Gone | CallError::Conflict, None)
            | (CallError::Refused(_) | CallError::Lapsed, _) => None,
        }
    }
}
