//! Which pods are to be deleted because there are too many, or because somebody named them.
//!
//! A choice is durable: it is written on the pod, and whoever decides next goes on with it. When `replicas` rises
//! again, the pods chosen last are let go first.

use crate::facts::{Chosen, Facts, Seat};
use crate::gate::Intent;
use crate::scale::Need;

/// Chooses. Seats are in the order in which they may go.
pub fn choose(facts: &mut Facts<'_>, need: Need) {
    let replaced = replacement(facts);
    let replaced = replaced.as_ref();
    let mut left = need;
    let named = |seat: &Seat<'_>| facts.workload.pods_to_delete.contains(&seat.pod.name);
    for seat in facts.seats.iter_mut().filter(|seat| named(seat)) {
        left.take(seat, Intent::Delete);
    }
    // Those that were chosen before, longest ago first.
    let before = facts.seats.iter_mut().filter(|seat| was_chosen(seat, replaced));
    let mut before: Vec<_> = before.collect();
    before.sort_by_key(|seat| seat.chosen.as_ref().and_then(|chosen| chosen.since));
    for seat in before {
        if left.delete > 0 {
            left.take(seat, removal(seat, replaced));
        }
    }
    for old in [true, false] {
        for seat in facts
            .seats
            .iter_mut()
            .filter(|seat| seat.intent.is_none() && seat.old == old)
        {
            if if old { left.delete_old } else { left.delete } > 0 {
                left.take(seat, removal(seat, replaced));
            }
        }
    }
    // Where there are not enough updated pods to take, old ones go.
    for seat in facts.seats.iter_mut().filter(|seat| seat.intent.is_none()) {
        if left.delete > 0 {
            left.take(seat, removal(seat, replaced));
        }
    }
}

/// What old pods go for where only PreInplace is set. With a surge their successors may be there already, and they are
/// too many because of the update: that hook has a say in it.
fn replacement(facts: &Facts<'_>) -> Option<Intent> {
    let workload = facts.workload;
    let only_updates = workload.pre_delete.step.is_none() && workload.pre_in_place.step.is_some();
    only_updates.then(|| Intent::Recreate(facts.history.update.name.clone()))
}

/// What a pod goes for of which there is one too many.
fn removal(seat: &Seat<'_>, replaced: Option<&Intent>) -> Intent {
    let replaced = replaced.filter(|_| seat.old);
    replaced.cloned().unwrap_or(Intent::Delete)
}

/// Whether a pod was chosen by an earlier decision, and none has been chosen for it yet in this one.
fn was_chosen(seat: &Seat<'_>, replaced: Option<&Intent>) -> bool {
    let to_go = |chosen: &Chosen| {
        [Intent::Delete, removal(seat, replaced)]
            .iter()
            .any(|intent| chosen.intent == intent.text())
    };
    seat.intent.is_none() && seat.chosen.as_ref().is_some_and(to_go)
}

impl Need {
    /// Takes a pod: it counts against what `replicas` asks for, as far as that goes.
    fn take(&mut self, seat: &mut Seat<'_>, intent: Intent) {
        seat.intent = Some(intent);
        seat.surplus = self.delete > 0;
        self.delete = self.delete.saturating_sub(1);
        if seat.old {
            self.delete_old = self.delete_old.saturating_sub(1);
        }
        self.delete_old = self.delete_old.min(self.delete);
    }
}

#[cfg(test)]
mod tests;
