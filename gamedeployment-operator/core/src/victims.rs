//! Which pods are to be deleted because there are too many, or because somebody named them.
//!
//! A choice is durable: it is written on the pod, and whoever decides next goes on with it. When `replicas` rises
//! again, the pods chosen last are let go first.

use crate::gate::Intent;
use crate::scale::Need;
use crate::scene::{Chosen, Scene, Seat};
use crate::workload::UpdateType;

/// Chooses. Seats are in the order in which they may go.
pub fn choose(scene: &mut Scene<'_>, need: Need) {
    let mut left = need;
    let named = |seat: &Seat<'_>| scene.workload.pods_to_delete.contains(&seat.pod.name);
    for seat in scene.seats.iter_mut().filter(|seat| named(seat)) {
        left.take(seat);
    }
    // Those that were chosen before, longest ago first.
    let mut before: Vec<_> = scene.seats.iter_mut().filter(|seat| was_chosen(seat)).collect();
    before.sort_by_key(|seat| seat.chosen.as_ref().and_then(|chosen| chosen.since));
    for seat in before {
        if left.delete > 0 {
            left.take(seat);
        }
    }
    let replaced = replacement(scene);
    for old in [true, false] {
        for seat in scene
            .seats
            .iter_mut()
            .filter(|seat| seat.intent.is_none() && seat.old == old)
        {
            if if old { left.delete_old } else { left.delete } > 0 {
                left.take(seat);
                if let Some(intent) = replaced.as_ref().filter(|_| old) {
                    seat.intent = Some(intent.clone());
                }
            }
        }
    }
    // Where there are not enough updated pods to take, old ones go.
    for seat in scene.seats.iter_mut().filter(|seat| seat.intent.is_none()) {
        if left.delete > 0 {
            left.take(seat);
        }
    }
}

/// What is asked about an old pod that an update would change and whose successor is there already. It goes because of
/// the update: where only PreInplace is set, that hook has a say in it.
fn replacement(scene: &Scene<'_>) -> Option<Intent> {
    let workload = scene.workload;
    let only_updates = workload.pre_delete.step.is_none() && workload.pre_in_place.step.is_some();
    let gated = matches!(workload.update, UpdateType::Rolling | UpdateType::InPlace);
    (only_updates && gated).then(|| Intent::Recreate(scene.history.update.name.clone()))
}

impl Need {
    /// Takes a pod: it counts against what `replicas` asks for, as far as that goes.
    fn take(&mut self, seat: &mut Seat<'_>) {
        seat.intent = Some(Intent::Delete);
        seat.surplus = self.delete > 0;
        self.delete = self.delete.saturating_sub(1);
        if seat.old {
            self.delete_old = self.delete_old.saturating_sub(1);
        }
        self.delete_old = self.delete_old.min(self.delete);
    }
}

/// Whether a pod was chosen by an earlier decision, and none has been chosen for it yet in this one.
#[must_use]
pub fn was_chosen(seat: &Seat<'_>) -> bool {
    let to_go = |chosen: &Chosen| chosen.intent == Intent::Delete.text();
    seat.intent.is_none() && seat.chosen.as_ref().is_some_and(to_go)
}

#[cfg(test)]
mod tests;
