//! Event throttle for bulk actions: the first pods get an event each, and the others are reported as a
//! number. Deleting a thousand pods must not emit a thousand events. The log names each pod.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gamedeployment_driver::Key;
use shared_api::reason::WorkloadReason;

/// Events by name for each workload and reason in one window.
const BY_NAME: usize = 10;
/// Length of the window.
const TOGETHER: Duration = Duration::from_secs(30);

/// Recent events by workload and reason.
#[derive(Debug, Clone, Default)]
pub(super) struct Throttle(Arc<Mutex<HashMap<(Key, WorkloadReason), Group>>>);

#[derive(Debug, Clone, Copy)]
struct Group {
    since: Instant,
    counted: usize,
}

/// Form in which an action is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// One event with the pod's name.
    Named,
    /// First pod that is only counted: fetch the number after this time.
    FirstCounted(Duration),
    /// Only counted.
    Counted,
}

impl Throttle {
    /// Counts an action on one more pod.
    pub(super) fn one_more(&self, key: &Key, reason: WorkloadReason, now: Instant) -> Telling {
        let mut throttle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |group: &Group| now.duration_since(group.since) >= TOGETHER && group.counted <= BY_NAME;
        let name = (key.clone(), reason);
        if throttle.get(&name).is_none_or(over) {
            // Other groups are swept only when a new group begins.
            throttle.retain(|_, group| !over(group));
        }
        let group = throttle.entry(name).or_insert(Group {
            since: now,
            counted: 0,
        });
        group.counted += 1;
        match group.counted {
            0..=BY_NAME => Telling::Named,
            count if count == BY_NAME + 1 => {
                let elapsed = now.duration_since(group.since);
                Telling::FirstCounted(TOGETHER.saturating_sub(elapsed))
            }
            _ => Telling::Counted,
        }
    }

    /// Returns the number of pods without an event of their own and starts a new window.
    pub(super) fn number(&self, key: &Key, reason: WorkloadReason) -> usize {
        let mut throttle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match throttle.entry((key.clone(), reason)) {
            Entry::Occupied(group) => group.remove().counted.saturating_sub(BY_NAME),
            Entry::Vacant(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_are_named_and_the_others_counted_once_for_each_time() {
        let throttle = Throttle::default();
        let key = ("games".to_owned(), "arena".to_owned());
        let (deleted, updated) = (WorkloadReason::PodDeleted, WorkloadReason::PodUpdated);
        let begin = Instant::now();
        let named = (0..BY_NAME).map(|_| throttle.one_more(&key, deleted, begin));
        assert!(
            named
                .collect::<Vec<_>>()
                .iter()
                .all(|telling| *telling == Telling::Named)
        );
        let later = begin + Duration::from_secs(5);
        let rest = TOGETHER.saturating_sub(Duration::from_secs(5));
        assert_eq!(
            throttle.one_more(&key, deleted, later),
            Telling::FirstCounted(rest)
        );
        assert_eq!(throttle.one_more(&key, deleted, later), Telling::Counted);
        assert_eq!(
            throttle.one_more(&key, updated, later),
            Telling::Named,
            "another reason"
        );
        let other = ("games".to_owned(), "other".to_owned());
        assert_eq!(
            throttle.one_more(&other, deleted, later),
            Telling::Named,
            "another workload"
        );
        // The window is over, but nobody has fetched the number yet.
        let late = begin + 2 * TOGETHER;
        assert_eq!(throttle.one_more(&key, deleted, late), Telling::Counted);
        assert_eq!(throttle.number(&key, deleted), 3);
        assert_eq!(throttle.number(&key, deleted), 0);
        assert_eq!(throttle.one_more(&key, deleted, late), Telling::Named);
        assert_eq!(throttle.number(&key, deleted), 0, "all of them were named");
    }

    #[test]
    fn what_was_told_by_name_is_forgotten_with_time() {
        let throttle = Throttle::default();
        let key = ("games".to_owned(), "arena".to_owned());
        let begin = Instant::now();
        for round in 0..3 {
            let now = begin + round * TOGETHER;
            for _ in 0..BY_NAME {
                assert_eq!(
                    throttle.one_more(&key, WorkloadReason::PodDeleted, now),
                    Telling::Named
                );
            }
        }
    }
}
