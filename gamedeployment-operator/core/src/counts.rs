//! Counts for a decision: the progress of the update, and the pods being replaced. [`scale`](crate::scale)
//! does the arithmetic.

use crate::canary::{CanaryState, RolloutProgress};
use crate::facts::{Facts, PodFacts};
use crate::scale::Counts;
use crate::workload::UpdateType;

/// Returns the progress of the pods, used to judge a canary step.
pub fn rollout_progress(facts: &Facts<'_>) -> RolloutProgress {
    let available = facts.pods.iter().filter(|pod| !pod.old && pod.is_available());
    RolloutProgress {
        old: facts.old().saturating_sub(leaving(facts)),
        updated_available: available.count(),
    }
}

/// Number of named old pods plus surplus pods. They go anyway, so no step waits for their hooks. Earlier
/// selections do not count here, because they depend on the step.
fn leaving(facts: &Facts<'_>) -> usize {
    let workload = facts.workload;
    let (named, others): (Vec<_>, Vec<_>) = facts
        .pods
        .iter()
        .partition(|pod: &&PodFacts<'_>| pod.named_by.is_some());
    let surplus = others.len().saturating_sub(workload.replicas);
    named.iter().filter(|pod| pod.old).count() + surplus
}

/// Computes the counts of a workload. Its update type and `maxUnavailable` decide which pods count as being
/// replaced, so that their successors may come first.
///
/// `is_stopped`: whether the rollout is aborted, and its pods stay.
pub fn count(facts: &Facts<'_>, canary: &CanaryState, is_stopped: bool) -> Counts {
    let workload = facts.workload;
    let mut counts = Counts {
        replicas: workload.replicas,
        partition: canary.partition,
        surge: workload.max_surge,
        replaced: 0,
        old: facts.old(),
        updated: facts.updated(),
    };
    let can_change = |pod: &&PodFacts<'_>| workload.recreate_fallback || facts.history.can_change(pod.pod);
    // Surplus pods are not pods to update.
    let to_update = counts.to_update().min(counts.to_update_in_all());
    // An in-place update needs no surge unless no pod may be unavailable.
    let updating = match workload.update {
        UpdateType::Rolling => to_update,
        UpdateType::InPlace | UpdateType::HotPatch if workload.max_unavailable == 0 => {
            let old = facts.pods.iter().filter(|pod| pod.old);
            to_update.min(old.filter(can_change).count())
        }
        UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete | UpdateType::Recreate => 0,
    };
    // An update that is paused or aborted, or whose template cannot be rolled out, adds no surge pods and removes none:
    // removing one would cost a serving pod.
    let surge_pods = counts.surplus().min(facts.surge_before());
    let updating = if facts.history.unrecorded.is_some() {
        surge_pods
    } else if workload.paused || is_stopped {
        updating.min(surge_pods)
    } else {
        updating
    };
    // A named pod goes first if a pod may be missing; otherwise its successor comes first.
    let named = |old: bool| {
        if workload.max_unavailable == 0 {
            named(facts, old)
        } else {
            0
        }
    };
    counts.replaced = named(false) + updating.max(named(true));
    counts
}

/// Number of pods of old revisions, or of the update revision, that are named for deletion.
pub fn named(facts: &Facts<'_>, old: bool) -> usize {
    let named = |pod: &&PodFacts<'_>| pod.old == old && pod.named_by.is_some();
    facts.pods.iter().filter(named).count()
}
