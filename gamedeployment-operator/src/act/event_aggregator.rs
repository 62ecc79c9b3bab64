//! Event throttle for bulk actions: the first pods get an event each, and the others are reported as a
//! number. Deleting a thousand pods must not emit a thousand events. The log names each pod, except for
//! `PodUpdated`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gamedeployment_driver::NamespacedName;
use shared_api::reason::WorkloadReason;

/// Largest number of events by name for each workload and reason in one window.
const MAX_INDIVIDUAL_EVENTS: usize = 10;
/// Length of the window.
const EVENT_WINDOW: Duration = Duration::from_secs(30);

/// Recent events by workload and reason.
#[derive(Debug, Clone, Default)]
pub(super) struct EventAggregator(Arc<Mutex<HashMap<(NamespacedName, WorkloadReason), Group>>>);

#[derive(Debug, Clone, Copy)]
struct Group {
    since: Instant,
    counted: usize,
}

/// Form in which an action is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emission {
    /// One event with the pod's name.
    Named,
    /// First pod that is only counted: call [`EventAggregator::number`] after this time.
    FirstCounted(Duration),
    /// Only counted.
    Counted,
}

impl EventAggregator {
    /// Counts an action on one more pod.
    pub(super) fn record(&self, key: &NamespacedName, reason: WorkloadReason, now: Instant) -> Emission {
        let mut aggregator = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |group: &Group| {
            now.duration_since(group.since) >= EVENT_WINDOW && group.counted <= MAX_INDIVIDUAL_EVENTS
        };
        let name = (key.clone(), reason);
        if aggregator.get(&name).is_none_or(over) {
            // Other groups are swept only when a new group begins.
            aggregator.retain(|_, group| !over(group));
        }
        let group = aggregator.entry(name).or_insert(Group {
            since: now,
            counted: 0,
        });
        group.counted += 1;
        match group.counted {
            0..=MAX_INDIVIDUAL_EVENTS => Emission::Named,
            count if count == MAX_INDIVIDUAL_EVENTS + 1 => {
                let elapsed = now.duration_since(group.since);
                Emission::FirstCounted(EVENT_WINDOW.saturating_sub(elapsed))
            }
            _ => Emission::Counted,
        }
    }

    /// Returns the number of pods without an event of their own and starts a new window.
    pub(super) fn number(&self, key: &NamespacedName, reason: WorkloadReason) -> usize {
        let mut aggregator = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match aggregator.entry((key.clone(), reason)) {
            Entry::Occupied(group) => group.remove().counted.saturating_sub(MAX_INDIVIDUAL_EVENTS),
            Entry::Vacant(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_are_named_and_the_others_counted_once_for_each_time() {
        let aggregator = EventAggregator::default();
        let key = ("games".to_owned(), "arena".to_owned());
        let (deleted, updated) = (WorkloadReason::PodDeleted, WorkloadReason::PodUpdated);
        let begin = Instant::now();
        let named = (0..MAX_INDIVIDUAL_EVENTS).map(|_| aggregator.record(&key, deleted, begin));
        assert!(
            named
                .collect::<Vec<_>>()
                .iter()
                .all(|telling| *telling == Emission::Named)
        );
        let later = begin + Duration::from_secs(5);
        let rest = EVENT_WINDOW.saturating_sub(Duration::from_secs(5));
        assert_eq!(
            aggregator.record(&key, deleted, later),
            Emission::FirstCounted(rest)
        );
        assert_eq!(aggregator.record(&key, deleted, later), Emission::Counted);
        assert_eq!(
            aggregator.record(&key, updated, later),
            Emission::Named,
            "another reason"
        );
        let other = ("games".to_owned(), "other".to_owned());
        assert_eq!(
            aggregator.record(&other, deleted, later),
            Emission::Named,
            "another workload"
        );
        // The window is over, but nobody has fetched the number yet.
        let late = begin + 2 * EVENT_WINDOW;
        assert_eq!(aggregator.record(&key, deleted, late), Emission::Counted);
        assert_eq!(aggregator.number(&key, deleted), 3);
        assert_eq!(aggregator.number(&key, deleted), 0);
        assert_eq!(aggregator.record(&key, deleted, late), Emission::Named);
        assert_eq!(aggregator.number(&key, deleted), 0, "all of them were named");
    }

    #[test]
    fn what_was_told_by_name_is_forgotten_with_time() {
        let aggregator = EventAggregator::default();
        let key = ("games".to_owned(), "arena".to_owned());
        let begin = Instant::now();
        for round in 0..3 {
            let now = begin + round * EVENT_WINDOW;
            for _ in 0..MAX_INDIVIDUAL_EVENTS {
                assert_eq!(
                    aggregator.record(&key, WorkloadReason::PodDeleted, now),
                    Emission::Named
                );
            }
        }
    }
}
