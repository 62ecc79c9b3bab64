//! What is counted: how far the update has come, and how many pods are being replaced. [`scale`](crate::scale) does the
//! arithmetic.

use crate::canary::{Advance, Canary};
use crate::facts::{Facts, PodFacts};
use crate::scale::Counts;
use crate::workload::UpdateType;

/// How far the pods have come, for a canary step to be judged.
pub fn advance(facts: &Facts<'_>) -> Advance {
    let available = facts.pods.iter().filter(|pod| !pod.old && pod.is_available());
    Advance {
        old: facts.old().saturating_sub(leaving(facts)),
        updated_available: available.count(),
    }
}

/// Pods that somebody named, and those of which there are too many: they go, and no step waits for their hooks. What was
/// chosen before does not count here: it depends on the step.
fn leaving(facts: &Facts<'_>) -> usize {
    let workload = facts.workload;
    let named = |pod: &&PodFacts<'_>| workload.pods_to_delete.contains(&pod.pod.name);
    let (named, others): (Vec<_>, Vec<_>) = facts.pods.iter().partition(named);
    let surplus = others.len().saturating_sub(workload.replicas);
    named.iter().filter(|pod| pod.old).count() + surplus
}

/// The counts of a workload: what of the update needs room beside the old pods is what its kind and its budget say.
pub fn count(facts: &Facts<'_>, canary: &Canary) -> Counts {
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
    // Surplus pods are no pods to update.
    let to_update = counts.to_update().min(counts.to_update_in_all());
    // An update in place needs no room beside the old pod, unless no pod may be unavailable.
    let updating = match workload.update {
        UpdateType::Rolling => to_update,
        UpdateType::InPlace | UpdateType::HotPatch if workload.max_unavailable == 0 => {
            let old = facts.pods.iter().filter(|pod| pod.old);
            to_update.min(old.filter(can_change).count())
        }
        UpdateType::InPlace | UpdateType::HotPatch | UpdateType::OnDelete => 0,
    };
    // An update that is stopped makes no room, and takes none back: that would cost a pod that serves.
    let updating = if workload.paused {
        updating.min(counts.surplus().min(facts.surge_before()))
    } else {
        updating
    };
    // A pod that was named goes where one may be missing; else its successor comes first.
    let named = |old: bool| {
        let named = |pod: &&PodFacts<'_>| pod.old == old && workload.pods_to_delete.contains(&pod.pod.name);
        if workload.max_unavailable == 0 {
            facts.pods.iter().filter(named).count()
        } else {
            0
        }
    };
    counts.replaced = named(false) + updating.max(named(true));
    counts
}
