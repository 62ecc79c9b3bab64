//! Faults of every kind, generated from a seed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;

use super::call::ApiCall;
use super::handling::{Failure, Handling, Moment, WatchFault};
use crate::keeper::lock;

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Delayed or paused the events of a watch, or replayed them from an older version.
    StaleWatch,
    /// Dropped events, followed by a 410 from the API server.
    LostEvents,
    /// Closed a watch and lost the events in flight.
    CutWatch,
    /// Refused a request with 409, 429, 500, 503 or 504, or closed the connection; the request had no effect.
    Refused,
    /// Let a request take effect but replaced or dropped its response.
    AnswerLost,
    /// Delayed a request or its response so that later requests overtook it.
    Delayed,
    /// Never answered a request.
    Stalled,
}

/// Number of faults of each kind so far.
#[derive(Debug, Clone, Default)]
pub struct FaultCounts(Arc<Mutex<BTreeMap<FaultKind, u64>>>);

impl FaultCounts {
    /// Returns the counts so far.
    pub fn counts(&self) -> BTreeMap<FaultKind, u64> {
        lock(&self.0).clone()
    }

    fn add(&self, deed: FaultKind) {
        *lock(&self.0).entry(deed).or_default() += 1;
    }
}

/// Status codes returned in place of the API server's response.
const ERRORS: [u16; 5] = [409, 429, 500, 503, 504];

pub(super) struct FaultProfile {
    seed: u64,
    /// Number of requests seen for each verb and resource.
    seen: HashMap<(&'static str, String), u64>,
    deeds: FaultCounts,
}

impl FaultProfile {
    pub(super) fn new(seed: u64) -> (Self, FaultCounts) {
        let deeds = FaultCounts::default();
        let profile = Self {
            seed,
            seen: HashMap::new(),
            deeds: deeds.clone(),
        };
        (profile, deeds)
    }

    pub(super) fn handling(&mut self, call: &ApiCall) -> Handling {
        let seen = self.seen.entry((call.verb, call.resource.clone())).or_default();
        *seen += 1;
        let mut hasher = DefaultHasher::new();
        (self.seed, call.verb, &call.resource, *seen).hash(&mut hasher);
        let mut rng = Rng::with_seed(hasher.finish());
        let (deed, handling) = match call.verb {
            "watch" => of_watch(&mut rng),
            "get" | "list" => of_read(&mut rng),
            _ => of_write(&mut rng),
        };
        if let Some(deed) = deed {
            self.deeds.add(deed);
        }
        handling
    }
}

type Decided = (Option<FaultKind>, Handling);

fn of_watch(rng: &mut Rng) -> Decided {
    let after = rng.u32(0..8);
    let time = Duration::from_millis(rng.u64(100..1500));
    let trouble = |deed, trouble| (Some(deed), Handling::Disturb(trouble));
    match rng.u8(0..100) {
        0..15 => trouble(FaultKind::StaleWatch, WatchFault::Late(time)),
        15..30 => trouble(FaultKind::StaleWatch, WatchFault::Freeze(after, time)),
        30..40 => trouble(FaultKind::StaleWatch, WatchFault::Rewind),
        40..60 => trouble(FaultKind::LostEvents, WatchFault::Lose(after, time)),
        60..70 => trouble(FaultKind::CutWatch, WatchFault::Cut(after)),
        70..75 => (Some(FaultKind::Refused), refused(rng)),
        75..78 => (Some(FaultKind::LostEvents), Handling::Fail(Failure::refused(410))),
        _ => (None, Handling::Forward),
    }
}

fn of_read(rng: &mut Rng) -> Decided {
    match rng.u8(0..100) {
        0..12 => (Some(FaultKind::Refused), refused(rng)),
        12..15 => (Some(FaultKind::AnswerLost), lost(rng)),
        15..25 => (Some(FaultKind::Delayed), delayed(rng)),
        25 => (Some(FaultKind::Stalled), Handling::Stall(Moment::AfterForwarding)),
        _ => (None, Handling::Forward),
    }
}

fn of_write(rng: &mut Rng) -> Decided {
    match rng.u8(0..100) {
        0..8 => (Some(FaultKind::Refused), refused(rng)),
        8..16 => (Some(FaultKind::AnswerLost), lost(rng)),
        16..28 => (Some(FaultKind::Delayed), delayed(rng)),
        28 => (
            Some(FaultKind::Stalled),
            Handling::Stall(Moment::BeforeForwarding),
        ),
        29 => (Some(FaultKind::Stalled), Handling::Stall(Moment::AfterForwarding)),
        _ => (None, Handling::Forward),
    }
}

fn refused(rng: &mut Rng) -> Handling {
    Handling::Fail(match rng.choice(ERRORS) {
        Some(status) if rng.u8(0..5) > 0 => Failure::refused(status),
        _ => Failure::hang_up(Moment::BeforeForwarding),
    })
}

fn lost(rng: &mut Rng) -> Handling {
    Handling::Fail(match rng.choice(ERRORS) {
        Some(status) if rng.bool() => Failure::after_effect(status),
        _ => Failure::hang_up(Moment::AfterForwarding),
    })
}

fn delayed(rng: &mut Rng) -> Handling {
    let mut time = || Duration::from_millis(rng.u64(0..400));
    Handling::Delay(time(), time())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handlings(seed: u64) -> Vec<Handling> {
        let (mut profile, _) = FaultProfile::new(seed);
        let call = |verb| ApiCall {
            verb,
            resource: "pods".into(),
            ..ApiCall::default()
        };
        let calls = ["watch", "list", "patch"].map(call);
        (0..300).map(|n| profile.handling(&calls[n % 3])).collect()
    }

    #[test]
    fn a_seed_does_the_same_again_and_another_does_not() {
        assert_eq!(handlings(1), handlings(1));
        assert_ne!(handlings(1), handlings(2));
    }

    #[test]
    fn every_kind_of_fault_comes() {
        let (mut profile, deeds) = FaultProfile::new(7);
        for verb in ["watch", "list", "patch"] {
            let call = ApiCall {
                verb,
                ..ApiCall::default()
            };
            for _ in 0..1000 {
                let _ = profile.handling(&call);
            }
        }
        let counts = deeds.counts();
        assert_eq!(counts.len(), 7, "{counts:?}");
        assert!(counts.values().all(|count| *count > 10), "{counts:?}");
    }
}
