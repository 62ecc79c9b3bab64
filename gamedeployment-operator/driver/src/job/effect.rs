//! What became known by one write.

use gamedeployment_core::plan::Action;

use crate::request::{CallError, Kind, Object};

/// What became known by writing.
#[derive(Debug)]
pub(crate) enum Effect {
    /// An object is so now.
    Object(Object),
    /// The object of this name and UID is gone.
    Gone(Kind, String, String),
    /// A pod of this revision would be taken.
    Accepted(String),
    /// Nobody has confirmed that this node is gone.
    NodeNotGone(String),
    /// Nobody knows whether an object of this name was made or changed.
    Uncertain(Kind, String),
    /// It was done, and nothing is to be remembered of it.
    Nothing,
}

/// A write that failed, and what is known of its object nevertheless.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: CallError,
    pub(crate) effect: Option<Effect>,
    /// Whether the name of a new revision was taken by something else.
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

/// The object that a write is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// None of one that is to be made.
    pub(crate) uid: Option<String>,
}

impl Target {
    /// The object of an action for the workload of this name and UID.
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

    /// What is known of the object after a write to it has failed.
    pub(crate) fn after(&self, error: &CallError) -> Option<Effect> {
        let uncertain = || Effect::Uncertain(self.kind, self.name.clone());
        match (error, &self.uid) {
            (CallError::Gone, Some(uid)) => Some(Effect::Gone(self.kind, self.name.clone(), uid.clone())),
            // It may have been done; or what is held is older than what is there.
            (CallError::Unknown(_), _) | (CallError::Conflict, Some(_)) => Some(uncertain()),
            // There is a run of that name: what it is decides the next decision.
            (CallError::Conflict, None) if self.kind == Kind::Run => Some(uncertain()),
            (CallError::Gone | CallError::Conflict, None)
            | (CallError::Refused(_) | CallError::Lapsed, _) => None,
        }
    }
}
