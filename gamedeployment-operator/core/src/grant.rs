//! Who is asked, and who is acted on, within the budget.
//!
//! A pod to be updated takes a slot when it is asked about, if it is available, and keeps it until it is acted on: no
//! more pods are put to the question than may be acted on. A pod whose hook has said no, or whose hook cannot be
//! asked, serves on and takes none, so it holds up nobody.
//!
//! A pod to be deleted serves while it is asked about, for hours perhaps: it takes a slot only when it goes. So no
//! other pod's deletion waits for its hook. Updates leave it its slot.
//!
//! A pod that is not available may come back by itself: it takes a slot as well. A new pod has to prove itself: until
//! it is available, nothing that serves is taken in its stead.

use crate::budget::Slots;
use crate::facts::{Facts, Seat, Service};
use crate::gate::{Gate, Intent, Standing};
use crate::history::History;
use crate::trial;

/// Puts the question of every pod with an intent, and hands out the slots. `confirming` available pods are waiting for
/// their `PostInplace` hook: updates go on when these are well.
pub fn grant<'a>(facts: &mut Facts<'a>, gate: &Gate<'a>, confirming: usize) {
    let mut slots = Slots::new(
        facts.seats.iter().map(|seat| seat.service),
        facts.workload.replicas,
        facts.workload.max_unavailable,
    );
    let history = &facts.history;
    for seat in &mut facts.seats {
        seat.standing = seat.intent.as_ref().map(|intent| {
            let modified = modified(history, seat, intent);
            gate.assess(seat.pod, intent, &modified)
        });
    }
    for turn in [Turn::Surplus, Turn::Named] {
        for seat in of(&mut facts.seats, turn, Need::Slot) {
            seat.granted = slots.take(seat.service);
        }
    }
    let mut kept = vec![Service::Available; confirming];
    for turn in [Turn::Surplus, Turn::Named] {
        for need in [Need::Verdict, Need::Question] {
            for seat in of(&mut facts.seats, turn, need) {
                seat.granted = slots.has(seat.service);
                kept.extend(seat.granted.then_some(seat.service));
            }
        }
    }
    let unproven =
        |seat: &&Seat<'_>| !seat.old && seat.service == Service::Interrupted && seat.intent.is_none();
    kept.extend(facts.seats.iter().filter(unproven).map(|seat| seat.service));
    for service in kept {
        slots.reserve(service);
    }
    let held = facts.hold.is_some();
    for need in [Need::Slot, Need::Verdict, Need::Question] {
        for seat in of(&mut facts.seats, Turn::Update, need) {
            seat.granted = !(held && trial::is_concerned(seat)) && slots.take(seat.service);
        }
    }
}

/// The pods whose turn it is and that lack just this.
fn of<'s, 'a>(seats: &'s mut [Seat<'a>], turn: Turn, need: Need) -> impl Iterator<Item = &'s mut Seat<'a>> {
    seats
        .iter_mut()
        .filter(move |seat| Turn::of(seat) == Some(turn) && Need::of(seat) == Some(need))
}

/// What a pod lacks to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A slot.
    Slot,
    /// A slot and the verdict of the hook that is being asked.
    Verdict,
    /// A slot, and somebody who asks.
    Question,
}

impl Need {
    fn of(seat: &Seat<'_>) -> Option<Self> {
        match seat.standing.as_ref()? {
            Standing::Open(_) | Standing::Used(_) => Some(Self::Slot),
            Standing::Asking(_) => Some(Self::Verdict),
            // It cannot be asked before somebody has acted.
            Standing::Stale(_, void) if void.is_stuck() => None,
            Standing::Unasked(_) | Standing::Stale(..) => Some(Self::Question),
            Standing::Refused(_) | Standing::Blocked(_) => None,
        }
    }
}

/// The containers that an intent changes.
fn modified(history: &History<'_>, seat: &Seat<'_>, intent: &Intent) -> Vec<String> {
    match intent {
        Intent::InPlace(_) | Intent::HotPatch(_) => history
            .change(seat.pod)
            .map(|change| change.images.keys().cloned().collect())
            .unwrap_or_default(),
        Intent::Delete | Intent::Recreate(_) | Intent::Confirm(_) => Vec::new(),
    }
}

/// Who takes slots first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Pods of which there are too many.
    Surplus,
    /// Pods that somebody named, and that will be replaced.
    Named,
    /// Pods to be updated.
    Update,
}

impl Turn {
    fn of(seat: &Seat<'_>) -> Option<Self> {
        match seat.intent.as_ref()? {
            Intent::Delete | Intent::Recreate(_) if seat.surplus => Some(Self::Surplus),
            Intent::Delete => Some(Self::Named),
            Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_) => Some(Self::Update),
            Intent::Confirm(_) => None,
        }
    }
}
