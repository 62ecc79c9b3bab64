//! Which pods are to be updated, and how.

use std::collections::BTreeSet;

use crate::facts::{Facts, Seat};
use crate::gate::Intent;
use crate::progress::is_half_written;
use crate::workload::UpdateType;

/// What keeps the update from going on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hindrances {
    /// Why pods cannot be updated in place, each reason once.
    pub not_in_place: Vec<String>,
    /// How many pods that is about.
    pub pods: usize,
}

/// Chooses `to_update` pods among the old ones that are not to be deleted anyway: those begun first, then those
/// chosen before, then in their order.
pub fn choose(facts: &mut Facts<'_>, to_update: usize) -> Hindrances {
    let mut hindrances = Hindrances::default();
    if facts.workload.update == UpdateType::OnDelete {
        return hindrances;
    }
    let target = facts.history.update.name.clone();
    let asked: BTreeSet<&str> = facts
        .view
        .runs
        .iter()
        .filter_map(|run| run.pod_uid.as_deref())
        .collect();
    let mut candidates: Vec<usize> = (0..facts.seats.len()).collect();
    candidates.retain(|at| {
        facts
            .seats
            .get(*at)
            .is_some_and(|seat| seat.old && seat.intent.is_none() || is_pending(seat))
    });
    let in_place = matches!(facts.workload.update, UpdateType::InPlace | UpdateType::HotPatch);
    candidates.sort_by_cached_key(|at| {
        let seat = facts.seats.get(*at)?;
        // Of those that may stay at old revisions anyway, those stay that cannot be changed.
        let cannot = in_place && !facts.history.can_change(seat.pod);
        Some((cannot, eagerness(seat, &asked)))
    });
    // A pod that the original had begun counts as updated by its label already.
    let begun = facts.seats.iter().filter(|seat| is_pending(seat)).count();
    for at in candidates.into_iter().take(to_update.saturating_add(begun)) {
        let Some(pod) = facts.seats.get(at).map(|seat| seat.pod) else {
            continue;
        };
        let intent = match facts.workload.update {
            UpdateType::Rolling | UpdateType::OnDelete => Some(Intent::Recreate(target.clone())),
            UpdateType::InPlace | UpdateType::HotPatch => match facts.history.change(pod) {
                Ok(_) if facts.workload.update == UpdateType::HotPatch => {
                    Some(Intent::HotPatch(target.clone()))
                }
                Ok(_) => Some(Intent::InPlace(target.clone())),
                Err(_) if facts.workload.recreate_fallback => Some(Intent::Recreate(target.clone())),
                Err(why) => {
                    hindrances.pods += 1;
                    if !hindrances.not_in_place.contains(&why) {
                        hindrances.not_in_place.push(why);
                    }
                    None
                }
            },
        };
        if let Some(seat) = facts.seats.get_mut(at) {
            seat.intent = intent;
        }
    }
    hindrances
}

/// Begun by the original: its label is new and its images are not.
fn is_pending(seat: &Seat<'_>) -> bool {
    seat.intent.is_none() && !seat.old && is_half_written(seat.pod)
}

/// Lower goes first.
fn eagerness(seat: &Seat<'_>, asked: &BTreeSet<&str>) -> (bool, bool, bool, bool) {
    let chosen = seat.chosen.is_some() || asked.contains(seat.pod.uid.as_str());
    (
        !is_pending(seat),
        !seat.pod.is_out_of_service(),
        !chosen,
        seat.is_available(),
    )
}
