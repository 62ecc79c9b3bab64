//! Stage of a rollout, from the recorded status alone: the pods and the cache may be behind.

use shared_api::GameDeploymentStatus;
use shared_api::game_deployment::LifecycleHookStatus;

use crate::facts::Facts;

/// Stage of a rollout with lifecycle hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No hook is due: there are none, or the rollout has ended.
    Ended,
    /// The template is not recorded, or its revision is not adopted or not the newest yet. The recorded hooks stay as
    /// they are.
    Unsettled,
    /// Pods of the revision exist, but the workload has not recorded any revision: they were adopted. No hook
    /// runs for them.
    Adopted,
    /// The rollout is not recorded yet. Nothing is done for it before.
    New,
    /// The rollout is recorded.
    UnderWay,
    /// The rollout is aborted, and its pods go back.
    RolledBack,
}

impl Stage {
    pub(super) fn of(facts: &Facts<'_>, status: &GameDeploymentStatus) -> Self {
        let history = &facts.history;
        if history.rollback.is_some() {
            return Self::RolledBack;
        }
        if facts.workload.lifecycle_hooks.is_empty() {
            return Self::Ended;
        }
        // The HookRuns of a revision are known once it is adopted.
        let is_adopted = history.update.orphan.is_none();
        if history.unrecorded.is_some() || !is_newest(facts) || !is_adopted {
            return Self::Unsettled;
        }
        let target = history.update.name.as_str();
        let is_recorded = status
            .update_revision
            .as_deref()
            .is_none_or(|known| known == target);
        let mut entries = recorded(facts, status).peekable();
        let has_entries = is_recorded && entries.peek().is_some();
        let is_passed = entries.all(|entry| entry.phase.is_passed());
        if is_first(facts, status) {
            let is_begun = !facts.pods.is_empty() && status.lifecycle_hooks.is_empty();
            return match (has_entries, is_begun) {
                (true, _) => Self::UnderWay,
                (false, false) => Self::New,
                (false, true) => Self::Adopted,
            };
        }
        let is_complete = history.is_updated(&history.current.name);
        match (is_recorded, has_entries) {
            // The last complete rollout was the one to this revision.
            (true, _) if is_complete && is_passed => Self::Ended,
            (true, true) => Self::UnderWay,
            (true, false) | (false, _) => Self::New,
        }
    }
}

/// Whether the workload has completed no rollout. Pods at another revision were adopted, unless a rollout with hooks
/// was recorded.
pub(super) fn is_first(facts: &Facts<'_>, status: &GameDeploymentStatus) -> bool {
    let canary = status.canary.as_ref();
    status.current_revision.is_none()
        && canary.is_none_or(|canary| canary.revision.is_none())
        && (facts.history.is_updated(&facts.history.current.name) || !status.lifecycle_hooks.is_empty())
}

/// Whether no other revision has a higher number. A revision that an older template reuses gets its number
/// first.
fn is_newest(facts: &Facts<'_>) -> bool {
    let update = facts.history.update;
    let mut others = facts.history.revisions();
    others.all(|other| other.number < update.number || facts.history.is_updated(&other.name))
}

/// Returns the recorded entries of hooks that the spec still has, for the current revision.
pub(super) fn recorded<'s>(
    facts: &Facts<'_>,
    status: &'s GameDeploymentStatus,
) -> impl Iterator<Item = &'s LifecycleHookStatus> {
    let target = &facts.history.spec.name;
    let hooks = &facts.workload.lifecycle_hooks;
    let is_current = move |entry: &&LifecycleHookStatus| {
        entry.revision == *target && hooks.iter().any(|hook| hook.name == entry.name)
    };
    status.lifecycle_hooks.iter().filter(is_current)
}
