//! What a decision asks for. Actions are data that carry their preconditions, and do not depend on one another: any
//! of them may fail or be repeated without harm. The status is written after them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use shared_api::GameDeploymentStatus;
use shared_api::reason::WorkloadReason;

mod naming;

pub use naming::{CREATE_POD, CREATE_REVISION, DELETE_RUN, STATUS, TRY_POD};

use crate::gate::{Confirmed, Delete, NewRun, PodRef, Update};
use crate::hook_kind::HookKind;
use crate::revision::Revision;

/// What is to be done now.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// In any order.
    pub actions: Vec<Action>,
    /// The status, if it is to change. Whether it is written depends on what comes of the actions: what they change,
    /// changes it again.
    pub status: Option<Box<GameDeploymentStatus>>,
    /// When to decide again though nothing happens.
    pub wake: Option<Timestamp>,
    /// What needs a person.
    pub warnings: Vec<Warning>,
    /// Where a write is refused: the pods that something is to be done to, though they are only asked now.
    pub asking: BTreeSet<String>,
    /// What metrics show of the workload; none where this decision did not come to that.
    pub gauges: Option<Gauges>,
}

/// What one stage of a decision asks for.
#[derive(Debug, Default, PartialEq)]
pub struct Part {
    /// In the order in which they are carried out.
    pub actions: Vec<Action>,
    /// When to decide again though nothing happens.
    pub wake: Option<Timestamp>,
}

impl Part {
    /// Wakes at this time, or earlier.
    pub fn wake_at(&mut self, at: Timestamp) {
        self.wake = earlier(self.wake, Some(at));
    }
}

impl From<Vec<Action>> for Part {
    fn from(actions: Vec<Action>) -> Self {
        Self { actions, wake: None }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// How much is done for one workload before it is decided on anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Creations of pods.
    pub creations: usize,
    /// Other writes, but for removals of runs.
    pub changes: usize,
    /// Runs of pods that are gone are removed when so many have gathered, or when there is nothing else to do.
    pub removals: usize,
}

impl Default for Limits {
    /// Creations double with each batch that succeeds, so that ten batches reach the most that are made; changes take
    /// the API server about a second.
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
    /// Become the controller of a revision that has none.
    AdoptRevision(RevisionRef),
    /// Make an older revision the newest: a rollback.
    RenumberRevision(RevisionRef, i64),
    /// Forget a revision that nothing uses.
    DeleteRevision(RevisionRef),
    /// Become the controller of a pod that has none.
    Adopt(PodRef),
    /// Stop being the controller of a pod that is not selected any more.
    Release(PodRef),
    /// Create a pod.
    CreatePod(Box<NewPod>),
    /// Have the API server say whether it would take a pod of this revision, without making one.
    TryPod(Box<NewPod>, String),
    /// Record on a pod that it was chosen, for what, and when.
    Mark(PodRef, String),
    /// Take the record of a choice off a pod.
    Unmark(PodRef),
    /// Delete a pod.
    DeletePod(Delete),
    /// Take a pod out of service for an update; it is out of it since then.
    TakeOut(Update, Timestamp),
    /// Write an update to a pod: images, metadata, revision.
    WriteUpdate(Update, Box<PodChange>),
    /// Put a pod into service, and say which update of it is finished, if one is.
    PutIn(PodRef, Option<Finished>),
    /// Record on a pod that its update was confirmed.
    Confirm(Confirmed),
    /// Ask: create the HookRun of a question.
    CreateRun(Box<NewRun>),
    /// Remove a HookRun that nothing rests on.
    DeleteRun(RunRef),
    /// Set `retry` of these hooks back to false.
    ResetRetry(Vec<HookKind>),
    /// Set `updateStrategy.paused` to true, for a canary step.
    Pause,
}

/// A ControllerRevision to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRevision {
    /// `metadata.name`.
    pub name: String,
    /// Its place in history.
    pub number: i64,
    /// What it holds.
    pub data: Value,
    /// The template's labels.
    pub labels: BTreeMap<String, String>,
}

/// A ControllerRevision in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionRef {
    /// `metadata.name`.
    pub name: String,
    /// UID: precondition.
    pub uid: String,
    /// Version: precondition.
    pub resource_version: String,
}

impl RevisionRef {
    /// The version that is known.
    pub fn of(revision: &Revision) -> Self {
        Self {
            name: revision.name.clone(),
            uid: revision.uid.clone(),
            resource_version: revision.resource_version.clone(),
        }
    }
}

/// A HookRun in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRef {
    /// `metadata.name`.
    pub name: String,
    /// UID: precondition.
    pub uid: String,
    /// Whether it has ended and its pod is gone: it can say nothing of any pod any more.
    pub is_history: bool,
    /// What people are told of it when it is gone: its verdict does not count, for a reason that they should know.
    pub void: Option<Box<Warning>>,
}

/// An update in place that is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The revision that the pod was updated to.
    pub revision: String,
    /// What names this update in the condition of a pod that cannot be taken out of service; else empty.
    pub mark: String,
}

/// A pod to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPod {
    /// `metadata.name`.
    pub name: String,
    /// The whole object: fields that this version does not know are kept.
    pub manifest: Value,
}

/// What an update writes to a pod.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PodChange {
    /// Images by container.
    pub images: BTreeMap<String, String>,
    /// Labels; none: the label is removed.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations; none: the annotation is removed.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// An event that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The pod that it is about; none: the workload.
    pub pod: Option<PodRef>,
    /// The reason of the event.
    pub reason: WorkloadReason,
    /// What happened, and what to do.
    pub message: String,
}

/// What a decision says of the workload, besides what is to be done.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    /// The status, if it is to change.
    pub status: Option<Box<GameDeploymentStatus>>,
    /// What needs a person.
    pub warnings: Vec<Warning>,
    /// What metrics show.
    pub gauges: Option<Gauges>,
    /// When it would be another one though nothing happens.
    pub wake: Option<Timestamp>,
}

/// What metrics show of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Pods that wait for a hook, in the order of [`HookKind::ALL`]; none of a hook that is not set and that nobody
    /// waits for.
    pub hooks: [Option<Waits>; 3],
    /// Pods that were chosen to be deleted.
    pub chosen: PodGroup,
    /// Pods that are being deleted and not gone yet.
    pub ending: PodGroup,
    /// Where the update stands.
    pub rollout: Rollout,
}

/// Pods that wait for one hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// The hook has no verdict yet.
    pub asking: PodGroup,
    /// The hook has no success.
    pub refused: PodGroup,
    /// The hook cannot be asked.
    pub blocked: PodGroup,
}

/// Pods of which the same is to be said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// How many there are.
    pub pods: usize,
    /// Since when the one that came first is among them, as far as that is known.
    pub since: Option<Timestamp>,
}

impl PodGroup {
    /// One more.
    pub fn join(&mut self, since: Option<Timestamp>) {
        self.pods += 1;
        self.since = match (self.since, since) {
            (Some(first), Some(since)) => Some(first.min(since)),
            (first, since) => first.or(since),
        };
    }
}

/// Where an update stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Old pods that are to be updated now. Those that a partition, a canary step or a pause keeps back are not, nor
    /// those that somebody else is to delete.
    pub to_update: usize,
    /// Pods in the midst of an update in place.
    pub updating: usize,
}

impl Plan {
    /// Nothing is to be done and nothing to be written.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.status.is_none() && self.warnings.is_empty()
    }

    /// Leaves as much as is to be done before it is decided anew. Not before
    /// [`Refusals::hold`](crate::refusals::Refusals::hold) has taken out what waits: else that would fill the plan, and
    /// keep all else from being done.
    ///
    /// So many creations of pods and so many writes to what there is: while they are made, the user may change their mind,
    /// and a pod that is gone cannot be brought back; and pods that have become ready wait to be put into service.
    ///
    /// Removals of runs that are history wait while there is something else to do, up to so many: many together cost
    /// little, and while a fleet is drained the API server has better things to do.
    pub fn limit(&mut self, limits: &Limits) {
        let waits = |action: &Action| matches!(action, Action::DeleteRun(run) if run.is_history);
        let waiting = self.actions.iter().filter(|action| waits(action)).count();
        if waiting < limits.removals.min(self.actions.len()) {
            self.actions.retain(|action| !waits(action));
        }
        let (mut creations, mut changes) = (limits.creations, limits.changes);
        self.actions.retain(|action| {
            let left = match action {
                Action::CreatePod(_) => &mut creations,
                // Many by one call, and nobody is harmed.
                Action::DeleteRun(_) => return true,
                _ => &mut changes,
            };
            let stays = *left > 0;
            *left = left.saturating_sub(1);
            stays
        });
    }

    /// What the next stage asks for is done after all that is there.
    pub fn add(&mut self, part: impl Into<Part>) {
        let mut part = part.into();
        if self.actions.is_empty() {
            self.actions = part.actions;
        } else {
            self.actions.append(&mut part.actions);
        }
        self.wake = earlier(self.wake, part.wake);
    }

    /// With what is reported.
    #[must_use]
    pub fn reporting(mut self, report: Report) -> Self {
        self.status = report.status;
        self.warnings = report.warnings;
        self.gauges = report.gauges;
        self.wake = earlier(self.wake, report.wake);
        self
    }
}

#[cfg(test)]
mod tests;
