//! Checks that a canary step with a hook passes only by a measured success, or by the decision of a person
//! about its failed run. `paused: false` decides nothing.

use shared_api::GameDeploymentStatus;
use shared_api::names::hook_run_label as label;
use shared_api::names::workload::PROMOTE_DESPITE_FAILURE;

use super::{Referee, gate::Asked};
use crate::games::Seen;

impl Referee {
    /// Checks a status that was written. The steps between the previous index and the new one have passed.
    pub fn steps_passed(&self, seen: &Seen, new: &GameDeploymentStatus) {
        let object = seen.object();
        let old = object.status.clone().unwrap_or_default();
        // The first rollout has no steps, and neither has a rollback to the current revision.
        let rolls_back = old.current_revision == new.update_revision;
        let (Some(end), false) = (
            new.current_step_index,
            rolls_back || old.current_revision.is_none(),
        ) else {
            return;
        };
        // The original operator's hash cannot be compared.
        let hash = old.current_step_hash.as_deref();
        let same_steps =
            hash == new.current_step_hash.as_deref() || hash.is_some_and(|hash| !hash.starts_with("steps-"));
        let continues = same_steps && old.update_revision == new.update_revision;
        let begin = old.current_step_index.filter(|_| continues).unwrap_or(0);
        let strategy = object.spec.update_strategy.as_ref();
        let steps = strategy.and_then(|strategy| strategy.canary.as_ref()?.steps.as_ref());
        for (index, step) in steps.into_iter().flatten().enumerate() {
            let index = i32::try_from(index).unwrap();
            if step.hook.is_some() && (begin..end).contains(&index) {
                let mut runs = self.asked.values();
                let revision = new.update_revision.as_deref().unwrap_or_default();
                assert!(
                    runs.any(|asked| self.passes(asked, seen, revision, index)),
                    "nobody said yes to step {index} of revision {revision}: {old:#?}"
                );
            }
        }
    }

    fn passes(&self, asked: &Asked, seen: &Seen, revision: &str, index: i32) -> bool {
        let run = &asked.run;
        let labels = run.api.metadata.labels.as_ref().unwrap();
        let of_step = run.read.rollout.is_some()
            && run.read.revision == revision
            && labels.get(label::CANARY_STEP) == Some(&index.to_string());
        let annotations = seen.object().metadata.annotations.as_ref();
        let promoted = annotations.and_then(|annotations| annotations.get(PROMOTE_DESPITE_FAILURE));
        let succeeded = asked.yes && !self.edited.contains(&run.id.uid);
        of_step && (succeeded || promoted == Some(&run.id.uid))
    }
}
