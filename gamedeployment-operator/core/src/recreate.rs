//! Updates of type `Recreate`: pods of two revisions never run side by side.

use crate::facts::Facts;
use crate::lifecycle::{HookProgress, Lifecycle};
use crate::pod::Pod;
use crate::scale::ScaleDiff;
use crate::workload::UpdateType;

/// Phase of an update of type `Recreate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recreate {
    /// No old pod may be deleted, or none any more. A missing one is created at the current revision, if all others
    /// have it.
    Stopped,
    /// Old pods are being deleted, and nothing is created.
    Deleting,
    /// No old pod is left. New pods are created as far as the hooks of the rollout allow it.
    Creating,
}

impl Recreate {
    /// Returns the phase; `None` for other types of update.
    pub fn of(facts: &Facts<'_>, lifecycle: &Lifecycle) -> Option<Self> {
        if facts.workload.update != UpdateType::Recreate {
            return None;
        }
        let is_begun = match lifecycle.progress {
            HookProgress::NotBegun => false,
            HookProgress::Aborted | HookProgress::UnderWay | HookProgress::Passed => {
                facts.history.unrecorded.is_none()
            }
        };
        let is_aborted = lifecycle.progress == HookProgress::Aborted;
        Some(match (is_begun, old_left(facts) > 0) {
            (false, _) => Self::Stopped,
            (true, true) if facts.workload.paused || is_aborted => Self::Stopped,
            (true, true) => Self::Deleting,
            // Aborted before a pod was deleted, and all are lost.
            (true, false) if is_aborted && is_another(facts) && !has_created(facts) => Self::Stopped,
            (true, false) => Self::Creating,
        })
    }

    /// Returns how many pods stay at old revisions, so that no more are deleted or created than allowed.
    pub fn partition(self, lifecycle: &Lifecycle, replicas: usize) -> usize {
        match self {
            Self::Stopped => replicas,
            Self::Deleting => 0,
            Self::Creating => lifecycle.partition(0, replicas),
        }
    }

    /// Removes the creations that must wait.
    pub fn limit(self, facts: &Facts<'_>, diff: &mut ScaleDiff) {
        let missing = diff.create_old + diff.create_updated;
        (diff.create_old, diff.create_updated) = match self {
            Self::Stopped if is_at_current(facts) => (missing, 0),
            Self::Stopped | Self::Deleting => (0, 0),
            // The revision is recorded before the first of its pods.
            Self::Creating if is_another(facts) && recorded(facts) != Some(&facts.history.update.name) => {
                (0, 0)
            }
            // On the way back, before the last pod was deleted: the pods that are left lack nothing but company.
            Self::Creating if is_back(facts) => (diff.create_old, diff.create_updated),
            Self::Creating => (0, diff.create_updated),
        };
    }

    /// Returns the revision to record, before a hook of Mid or a new pod can change data that old pods use.
    pub fn record(self, facts: &Facts<'_>, is_complete: bool) -> Option<String> {
        match self {
            _ if is_complete => None,
            Self::Creating if is_another(facts) => Some(facts.history.update.name.clone()),
            Self::Stopped | Self::Deleting | Self::Creating => recorded(facts).cloned(),
        }
    }
}

/// Whether the update goes to another than the last complete revision.
fn is_another(facts: &Facts<'_>) -> bool {
    !facts.history.is_updated(&facts.history.current.name)
}

/// Whether pods of the update revision run or have run.
fn has_created(facts: &Facts<'_>) -> bool {
    recorded(facts).is_some() || running(facts).next().is_some()
}

fn recorded<'f>(facts: &'f Facts<'_>) -> Option<&'f String> {
    facts.view.object.status.as_ref()?.recreating_revision.as_ref()
}

/// Whether an update of type `Recreate` has deleted all old pods.
pub fn has_recreated(facts: &Facts<'_>) -> bool {
    facts.workload.update == UpdateType::Recreate && old_left(facts) == 0
}

/// Number of old pods that may still run, terminating ones and those about to be adopted included.
pub fn old_left(facts: &Facts<'_>) -> usize {
    running(facts)
        .filter(|pod| !facts.history.is_updated(pod.revision()))
        .count()
}

/// Whether missing pods may be created at the current revision: all that run have it, or none runs, and no update has
/// deleted them.
fn is_at_current(facts: &Facts<'_>) -> bool {
    let history = &facts.history;
    let current = history.current;
    // Without a recorded revision for the template, every pod counts as updated.
    let is_target = history.unrecorded.is_none() && history.is_updated(&current.name);
    let mut pods = running(facts).peekable();
    if pods.peek().is_none() {
        return recorded(facts).is_none();
    }
    pods.all(|pod| {
        let revision = pod.revision();
        revision == current.name || is_target && history.is_updated(revision)
    })
}

/// Whether the update goes back to the current revision, which pods still have.
fn is_back(facts: &Facts<'_>) -> bool {
    !is_another(facts) && recorded(facts).is_none() && running(facts).next().is_some() && is_at_current(facts)
}

fn running<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Pod> {
    let workload = facts.workload;
    let pods = facts.view.pods.iter().copied();
    pods.filter(move |pod| {
        let is_own = match pod.controller.as_deref() {
            Some(uid) => uid == workload.uid,
            None => workload.selector.matches(&pod.labels),
        };
        is_own && !pod.is_finished()
    })
}
