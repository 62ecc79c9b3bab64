//! Selection of the pods to update, and of how to update them.

use std::collections::BTreeSet;

use crate::facts::{Facts, PodFacts};
use crate::first_idle::update;
use crate::gate::{Gate, Intent};
use crate::progress::is_half_written;
use crate::stages::{Assessment, SelectedPod, Selection};
use crate::workload::UpdateType;

/// Pods that the update cannot change, with the reasons.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateBlockers {
    /// Reasons why pods cannot be updated in place, each listed once.
    pub not_in_place: Vec<String>,
    /// Number of pods affected.
    pub pods: usize,
}

/// Selects among the old pods that stay so far, except those to keep: first updates in progress, then pods
/// selected before, then unavailable ones, each in deletion order.
///
/// A pod that its hook holds takes the place of no other: beside it, as many others are selected as if it did
/// not exist. It stays selected, so that its HookRun stays.
///
/// With the selection policy `FirstIdle`, serving pods that need a hook are only [candidates](update). Also returns the
/// number of candidates that may be updated.
///
/// `open`: number of pods that may have the update revision, without those that this decision creates.
#[must_use]
pub fn select<'a>(
    facts: &Facts<'a>,
    gate: &Gate<'a>,
    mut pods: Vec<SelectedPod<'a>>,
    to_keep_old: usize,
    open: Option<usize>,
) -> (Vec<SelectedPod<'a>>, usize, UpdateBlockers) {
    let workload = facts.workload;
    let mut update_blockers = UpdateBlockers::default();
    if facts.history.unrecorded.is_some() || workload.update == UpdateType::OnDelete {
        return (pods, 0, update_blockers);
    }
    let old_left = pods.iter().filter(|pod| pod.facts.old && pod.stays()).count();
    let in_place = workload.update.is_in_place();
    // A surge pod at the update revision takes the place of a pod that would be updated in place.
    let room = open.filter(|_| in_place);
    let room = room.map_or(usize::MAX, |open| open.saturating_sub(facts.updated()));
    // Even a paused update finishes what is half done.
    let to_update = if workload.paused {
        0
    } else {
        old_left.saturating_sub(to_keep_old).min(room)
    };
    let target = &facts.history.update.name;
    let asked: BTreeSet<&str> = facts
        .view
        .runs
        .iter()
        .filter(|run| run.may_open_gate())
        .filter_map(|run| run.pod_uid.as_deref())
        .collect();
    let mut queue: Vec<&mut SelectedPod<'_>> = Vec::with_capacity(old_left);
    let may_go = |pod: &&mut SelectedPod<'_>| {
        pod.stays() && !pod.facts.unread && (pod.facts.old || is_half_written(pod.facts.pod))
    };
    queue.extend(pods.iter_mut().filter(may_go));
    queue.sort_by_cached_key(|pod| {
        // Pods that cannot be changed come last, so that they are the ones that stay at old revisions if some
        // may.
        let cannot = in_place && !facts.history.can_change(pod.facts.pod);
        (cannot, update_priority(pod.facts, &asked))
    });
    // A pod whose update the original operator started already counts as updated by its label.
    let begun = queue.iter().filter(|pod| is_begun(pod.facts)).count();
    let some_stay = queue.len() - begun > to_update;
    let (mut left, mut candidates) = (to_update, 0);
    for pod in queue {
        let begun = is_begun(pod.facts);
        let may_be_held = to_update > 0 && asked.contains(pod.facts.pod.uid.as_str());
        if !begun && left == 0 && !may_be_held {
            continue;
        }
        let intent = match workload.update {
            UpdateType::Rolling | UpdateType::OnDelete | UpdateType::Recreate => {
                Intent::Recreate(target.clone())
            }
            UpdateType::InPlace | UpdateType::HotPatch => match facts.history.change(pod.facts.pod) {
                Ok(_) if workload.update == UpdateType::HotPatch => Intent::HotPatch(target.clone()),
                Ok(_) => Intent::InPlace(target.clone()),
                Err(_) if workload.recreate_fallback && (begun || may_be_held || left > candidates) => {
                    Intent::Recreate(target.clone())
                }
                Err(_) if left <= candidates && !begun => continue,
                Err(why) => {
                    left = left.saturating_sub(1);
                    update_blockers.pods += 1;
                    if !update_blockers.not_in_place.contains(&why) {
                        update_blockers.not_in_place.push(why);
                    }
                    continue;
                }
            },
        };
        let modified = facts.history.modified(pod.facts.pod, &intent);
        let gate_state = gate.assess(pod.facts.pod, &intent, &modified);
        let waits =
            !begun && update::may_wait(facts, pod.facts) && update::waits(pod.facts, &intent, &gate_state);
        let scout = waits.then(|| gate.scout_for(pod.facts.pod, &intent, &modified));
        let scout = scout.flatten();
        candidates += usize::from(scout.is_some());
        let takes_no_place = begun || scout.is_some() || some_stay && gate_state.is_held();
        if !takes_no_place {
            if left == 0 {
                continue;
            }
            left -= 1;
        }
        pod.selection = Some(Selection {
            intent,
            surplus: false,
            assessment: Some(Box::new(Assessment { gate_state, scout })),
        });
    }
    (pods, left.min(candidates), update_blockers)
}

/// Whether the original operator started its update: the label is new but the images are not.
fn is_begun(pod: &PodFacts<'_>) -> bool {
    !pod.old && is_half_written(pod.pod)
}

/// Sort key: lower goes first.
fn update_priority(pod: &PodFacts<'_>, asked: &BTreeSet<&str>) -> (bool, bool, bool, bool) {
    let chosen = pod.recorded_selection.is_some() || asked.contains(pod.pod.uid.as_str());
    (
        !is_begun(pod),
        !pod.pod.is_out_of_service(),
        !chosen,
        pod.is_available(),
    )
}
