//! Creation of pods.

use std::collections::BTreeSet;

use shared_api::names::pod as annotation;

use crate::claim::Claim;
use crate::facts::{Facts, PodFacts};
use crate::plan::Action;
use crate::pod_factory::PodFactory;
use crate::scale::ScaleDiff;

/// Maximum number of pods created per decision; the next decision follows once these are in the cache.
const MAX_CREATIONS: usize = 500;
/// Maximum bytes of the templates of these pods: each pod has a parsed copy, which may take twenty times as many.
const MAX_CREATION_BYTES: usize = 4 << 20;

/// Creates the needed pods and returns how many could not be created because every index is in use. The
/// places of `held` pods stay empty.
#[must_use]
pub fn create(facts: &Facts<'_>, claimed: &Claim<'_>, diff: ScaleDiff, held: usize) -> (Vec<Action>, usize) {
    let workload = facts.workload;
    let mut left = room(facts)
        .min(max_creations(facts))
        .min((diff.create_old + diff.create_updated).saturating_sub(held));
    if left == 0 {
        return (Vec::new(), 0);
    }
    let ids = claimed.all.iter().map(|pod| pod.instance().to_owned());
    let asked = facts.view.runs.iter().map(|run| run.instance.clone());
    // An index becomes free when its pod is gone, not while it is terminating.
    let owned = claimed
        .all
        .iter()
        .filter(|pod| pod.controller.as_deref() == Some(workload.uid.as_str()));
    let indexes: BTreeSet<i64> = owned
        .filter_map(|pod| pod.annotation(annotation::INDEX)?.parse().ok())
        .collect();
    let mut factory = PodFactory::new(workload, facts.view.cluster, ids.chain(asked).collect(), indexes);
    let (mut actions, mut without_index) = (Vec::new(), 0);
    let parts = [
        (diff.create_old, facts.history.current),
        (diff.create_updated, facts.history.update),
    ];
    for (count, revision) in parts {
        for _ in 0..count.min(left) {
            match factory.pod(&revision.name, &revision.template) {
                Some(pod) => actions.push(Action::CreatePod(Box::new(pod))),
                None => without_index += 1,
            }
        }
        left -= count.min(left);
    }
    (actions, without_index)
}

/// Returns how many pods of the larger template may be created per decision; at least one.
fn max_creations(facts: &Facts<'_>) -> usize {
    let revisions = [facts.history.current, facts.history.update];
    let bytes = revisions.map(|revision| revision.template.bytes());
    let bytes = bytes.into_iter().max().unwrap_or_default();
    (MAX_CREATION_BYTES / bytes.max(1)).clamp(1, MAX_CREATIONS)
}

/// Number of pods that may be created now. With a batch size, a batch follows once the previous one is ready.
pub fn room(facts: &Facts<'_>) -> usize {
    let Some(batch) = facts.workload.create_batch else {
        return usize::MAX;
    };
    let starting = facts.pods.iter().filter(|pod| is_starting(pod)).count();
    batch.up(facts.workload.replicas).max(1).saturating_sub(starting)
}

/// Whether a pod belongs to the current batch. An unready pod that has served before does not, so it does not
/// delay healing.
pub fn is_starting(pod: &PodFacts<'_>) -> bool {
    !pod.pod.has_served()
}
