//! Checks updates of type `Recreate`: pods of two revisions never run side by side, and no old pod is deleted for the
//! update before the hook in front of the rollout has ended.

use gamedeployment_core::plan::{Action, GatedWrite};
use gamedeployment_core::workload::{FailurePolicy, Trigger, Workload};

use super::rollback::targets;
use super::{Acted, Referee};
use crate::games::Seen;

impl Referee {
    /// Checks a write with up-to-date caches.
    pub(super) fn check_recreate(&self, action: &Action, acted: &Acted<'_>, wanted: &Workload) {
        match action {
            Action::CreatePod(new) => {
                let made = new.manifest["metadata"]["labels"]["controller-revision-hash"].as_str();
                let made = made.unwrap_or_default();
                let mut running = acted.room.running.iter();
                assert!(
                    running.all(|known| is_same(acted.seen, known, made)),
                    "a pod of {made} beside others: {:?}",
                    acted.room.running
                );
            }
            Action::Gated(GatedWrite::DeletePod(delete)) if delete.recreates() => {
                self.check_before(acted, wanted);
            }
            Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..)) => {
                panic!("an update in place: {action:#?}")
            }
            _ => {}
        }
    }

    /// Checks that every hook before the first pod has ended.
    fn check_before(&self, acted: &Acted<'_>, wanted: &Workload) {
        let only_updates = wanted.pre_delete.step.is_none() && wanted.pre_in_place.step.is_some();
        if only_updates && acted.room.active >= wanted.replicas {
            // A surplus pod: with a PreInplace hook only, it has the same intent.
            return;
        }
        let status = acted.seen.object().status.clone().unwrap_or_default();
        let newest = targets(acted.seen);
        let is_recorded = status
            .lifecycle_hooks
            .iter()
            .any(|entry| newest.contains(&entry.revision.as_str()));
        for hook in &wanted.lifecycle_hooks {
            let is_ignored =
                hook.failure_policy == FailurePolicy::Ignore && self.rollout.ended.contains(&hook.name);
            assert!(
                hook.trigger != Trigger::Pre
                    || !is_recorded
                    || is_ignored
                    || self.rollout.passed.contains(&hook.name),
                "a pod is deleted before hook {} has ended: {status:#?}",
                hook.name
            );
        }
    }
}

/// Whether two revisions have the same template.
fn is_same(seen: &Seen, one: &str, other: &str) -> bool {
    let template = |name: &str| {
        let mut revisions = seen.revisions.iter();
        revisions
            .find(|known| known.name == name)
            .map(|known| &known.template)
    };
    one == other || template(one).is_some() && template(one) == template(other)
}
