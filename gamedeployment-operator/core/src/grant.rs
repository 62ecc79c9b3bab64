//! Who is asked, and who is acted on, within the budget.
//!
//! A pod that is available takes a slot when it is asked about and keeps it until it is acted on: no more pods are put
//! to the question than may be acted on. A pod whose hook has said no, or whose hook cannot be asked, serves on and
//! takes none, so it holds up nobody.

use crate::budget::Slots;
use crate::gate::{Gate, Intent, Standing};
use crate::history::History;
use crate::scene::{Scene, Seat};

/// Puts the question of every pod with an intent, and hands out the slots. `confirming` available pods are waiting for
/// their `PostInplace` hook and count as taken.
pub fn grant<'a>(scene: &mut Scene<'a>, gate: Gate<'a>, confirming: usize) {
    let available = scene.available().saturating_sub(confirming);
    let mut slots = Slots::new(available, scene.workload.replicas, scene.workload.max_unavailable);
    let history = &scene.history;
    for seat in &mut scene.seats {
        seat.standing = seat.intent.as_ref().map(|intent| {
            let modified = modified(history, seat, intent);
            gate.assess(seat.pod, intent, &modified)
        });
    }
    for decided in [true, false] {
        for turn in [Turn::Surplus, Turn::Named, Turn::Update] {
            for seat in scene.seats.iter_mut().filter(|seat| Turn::of(seat) == Some(turn)) {
                let takes = match &seat.standing {
                    Some(Standing::Open(_) | Standing::Asking(_)) => decided,
                    Some(Standing::Unasked(_) | Standing::Stale(..)) => !decided,
                    Some(Standing::Refused(_) | Standing::Blocked(_)) | None => false,
                };
                if takes {
                    seat.granted = slots.take(seat.available);
                }
            }
        }
    }
}

/// The containers that an intent changes.
fn modified(history: &History<'_>, seat: &Seat<'_>, intent: &Intent) -> Vec<String> {
    match intent {
        Intent::InPlace(_) | Intent::HotPatch(_) => history
            .change(seat.pod)
            .map(|change| change.images.into_keys().collect())
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
            Intent::Delete if seat.surplus => Some(Self::Surplus),
            Intent::Delete => Some(Self::Named),
            Intent::Recreate(_) | Intent::InPlace(_) | Intent::HotPatch(_) => Some(Self::Update),
            Intent::Confirm(_) => None,
        }
    }
}
