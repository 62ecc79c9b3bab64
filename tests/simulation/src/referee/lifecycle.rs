//! Checks that no pod gets a revision beyond the open point of its rollout: beyond the number of pods that a lifecycle
//! hook needs, this hook has said yes in this rollout, or has failed and may be ignored.

use std::collections::BTreeSet;

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::{Amount, FailurePolicy, Trigger, Workload};
use shared_api::GameDeploymentStatus;
use shared_api::names::hook_run_label as label;
use shared_api::names::pod as names;

use super::rollback::{in_force, targets};
use super::{Acted, Referee};
use crate::games::Seen;
use crate::objects::RunObject;

/// Rollout that a status records.
#[derive(Debug, Default, Clone)]
pub(super) struct Rollout {
    revision: Option<String>,
    /// UID of the workload.
    workload: String,
    /// Whether its pods go back.
    is_rolled_back: bool,
    /// Hooks that have said yes.
    pub(super) passed: BTreeSet<String>,
    /// Hooks of which an attempt has ended.
    pub(super) ended: BTreeSet<String>,
}

impl Referee {
    /// Follows a status that was written: another revision, or the end of a rollback, begins a rollout.
    pub fn follow_rollout(&mut self, seen: &Seen, new: &GameDeploymentStatus) {
        let is_rolled_back = new.rollback.is_some();
        let known = &mut self.rollout;
        let is_other = known.workload != seen.uid() || known.revision != new.update_revision;
        if is_other || known.is_rolled_back && !is_rolled_back {
            *known = Rollout {
                workload: seen.uid().to_owned(),
                revision: new.update_revision.clone(),
                ..Rollout::default()
            };
        }
        known.is_rolled_back = is_rolled_back;
    }

    /// Records the verdict of a lifecycle hook.
    pub fn lifecycle_hook_ended(&mut self, run: &RunObject, good: bool) {
        let labels = run.api.metadata.labels.as_ref();
        let Some(hook) = labels.and_then(|labels| labels.get(label::LIFECYCLE_HOOK)) else {
            return;
        };
        let is_of_rollout = self.rollout.revision.as_deref() == Some(&run.read.revision);
        if is_of_rollout {
            self.rollout.ended.insert(hook.clone());
            let counts = good && !self.edited.contains(&run.id.uid);
            self.rollout.passed.extend(counts.then(|| hook.clone()));
        }
    }

    /// Checks a write that gives a pod the target revision, with up-to-date caches.
    pub(super) fn check_point(&self, action: &Action, acted: &Acted<'_>, wanted: &Workload) {
        let seen = acted.seen;
        let Some(target) = gets(action).filter(|to| targets(seen).contains(to)) else {
            return;
        };
        let before = acted.before.as_ref().map(|pod| pod.read.revision());
        let status = seen.object().status.clone().unwrap_or_default();
        // The way back, adopted pods and a rollout that has ended have no points.
        let is_current = status.current_revision.as_deref() == Some(target);
        let is_recorded = status
            .lifecycle_hooks
            .iter()
            .any(|entry| entry.revision == target);
        // In the first rollout, the successor of a named pod has no other revision.
        let is_successor = status.current_revision.is_none() && !wanted.pods_to_delete.is_empty();
        if in_force(seen).is_some() || is_current || before == Some(target) || !is_recorded || is_successor {
            return;
        }
        let of_target = |revisions: &[String]| {
            let revisions = revisions.iter();
            revisions.filter(|revision| *revision == target).count()
        };
        let count = of_target(&acted.room.revisions) + 1;
        // The same holds for a pod whose removal is requested, until it is deleted.
        let is_first = status.current_revision.is_none();
        let leaving = if is_first {
            of_target(&acted.room.requested)
        } else {
            0
        };
        for hook in &wanted.lifecycle_hooks {
            let (passed, ended) = (&self.rollout.passed, &self.rollout.ended);
            let is_ignored = hook.failure_policy == FailurePolicy::Ignore && ended.contains(&hook.name);
            assert!(
                count <= limit(hook.trigger, wanted.replicas).saturating_add(leaving)
                    || passed.contains(&hook.name)
                    || is_ignored,
                "pod {count} gets {target} before hook {} has ended: {:?} {status:#?}",
                hook.name,
                self.rollout
            );
        }
    }
}

/// Returns the revision that a write gives a pod.
pub(super) fn gets(action: &Action) -> Option<&str> {
    match action {
        Action::CreatePod(new) => new.manifest["metadata"]["labels"][names::REVISION].as_str(),
        Action::Gated(GatedWrite::WriteUpdate(update, _)) => Some(update.to()),
        _ => None,
    }
}

/// Number of pods that may have the revision before a hook has ended: those that it needs. A hook that needs all pods
/// limits none, surge pods included.
fn limit(trigger: Trigger, replicas: usize) -> usize {
    let needs = match trigger {
        Trigger::Pre | Trigger::Mid => 0,
        Trigger::Progress(Amount::Count(count)) => count,
        Trigger::Progress(Amount::Percent(percent)) => {
            (replicas * usize::try_from(percent).unwrap()).div_ceil(100)
        }
        Trigger::Post => replicas,
    };
    if needs < replicas || needs == 0 {
        needs
    } else {
        usize::MAX
    }
}

/// Returns whether a decision was made for a workload with lifecycle hooks.
pub(super) fn has_lifecycle_hooks(seen: &Seen) -> bool {
    seen.object()
        .spec
        .lifecycle_hooks
        .as_ref()
        .is_some_and(|hooks| !hooks.is_empty())
}
