//! Updates of type `Recreate`: pods of two revisions never run side by side.

use crate::facts::Facts;
use crate::lifecycle::{HookProgress, Lifecycle};
use crate::pod::Pod;
use crate::revision::Revision;
use crate::scale::ScaleDiff;
use crate::workload::UpdateType;

/// Phase of an update of type `Recreate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recreate {
    /// No old pod may be deleted yet. A missing one is created at the current revision, if all others have it.
    NotBegun,
    /// Old pods are being deleted, and nothing is created.
    Deleting,
    /// No old pod is left. New pods are created as far as the hooks of the rollout allow it.
    Creating,
}

impl Recreate {
    /// Returns the phase; `None` for other types of update.
    pub fn of(facts: &Facts<'_>, lifecycle: &Lifecycle) -> Option<Self> {
        let workload = facts.workload;
        if workload.update != UpdateType::Recreate {
            return None;
        }
        let is_stopped = facts.history.unrecorded.is_some() || workload.paused && facts.old() > 0;
        Some(if is_stopped || lifecycle.progress == HookProgress::NotBegun {
            Self::NotBegun
        } else if old_left(facts) > 0 {
            Self::Deleting
        } else {
            Self::Creating
        })
    }

    /// Returns how many pods stay at old revisions, so that no more are deleted or created than allowed.
    pub fn partition(self, lifecycle: &Lifecycle, replicas: usize) -> usize {
        match self {
            Self::NotBegun => replicas,
            Self::Deleting => 0,
            Self::Creating => lifecycle.partition(0, replicas),
        }
    }

    /// Removes the creations that must wait. While the API server refuses pods of the template, no further pod is
    /// deleted, and missing ones are created at the current revision.
    pub fn limit(self, facts: &Facts<'_>, diff: &mut ScaleDiff) {
        let is_refused = facts.view.write_errors.is_some_and(|errors| errors.pod.is_some());
        let missing = diff.create_old + diff.create_updated;
        let at_current = || if is_at_current(facts) { missing } else { 0 };
        (diff.create_old, diff.create_updated) = match self {
            Self::NotBegun => (at_current(), 0),
            Self::Deleting if is_refused => (at_current(), 0),
            Self::Deleting => (0, 0),
            Self::Creating => (0, diff.create_updated),
        };
    }
}

/// Number of old pods that may still run, terminating ones included.
pub fn old_left(facts: &Facts<'_>) -> usize {
    running(facts)
        .filter(|pod| !facts.history.is_updated(pod.revision()))
        .count()
}

/// Whether missing pods may be created at the current revision: all that run have it.
///
/// If none runs, an update may have deleted them, and the hooks of Mid may have changed their data. This is so on the
/// way back to the current revision, and if the workload had a newer one since.
fn is_at_current(facts: &Facts<'_>) -> bool {
    let history = &facts.history;
    let current = history.current;
    let is_target = history.is_updated(&current.name);
    let mut pods = running(facts).peekable();
    if pods.peek().is_none() {
        let is_way_back = is_target && history.unrecorded.is_none();
        let is_newest = |other: &Revision| other.number <= current.number || history.is_updated(&other.name);
        return !is_way_back && history.revisions().all(is_newest);
    }
    pods.all(|pod| {
        let revision = pod.revision();
        revision == current.name || is_target && history.is_updated(revision)
    })
}

fn running<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Pod> {
    let uid = facts.workload.uid.as_str();
    let pods = facts.view.pods.iter().copied();
    pods.filter(move |pod| pod.controller.as_deref() == Some(uid) && !pod.is_finished())
}
