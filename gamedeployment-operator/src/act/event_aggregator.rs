//! Event throttle for bulk actions: the first events of a window are emitted, and the objects of the others
//! are reported as a number when the window ends. Deleting a thousand pods must not emit a thousand events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gamedeployment_driver::NamespacedName;
use shared_api::reason::WorkloadReason;
use tokio::time::Instant;

/// Largest number of events for each workload and reason in one window.
const MAX_INDIVIDUAL_EVENTS: usize = 10;
/// Length of the window.
const EVENT_WINDOW: Duration = Duration::from_secs(30);

/// Recent events by workload and reason.
#[derive(Debug, Clone, Default)]
pub(super) struct EventAggregator(Arc<Mutex<HashMap<(NamespacedName, WorkloadReason), Group>>>);

#[derive(Debug, Clone, Copy)]
struct Group {
    since: Instant,
    emitted: usize,
    /// Objects without an event of their own.
    held_back: usize,
}

/// Form in which an action is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emission {
    /// An event of its own.
    Individual,
    /// First one held back: its group must be reported after this time.
    FirstHeldBack(Duration),
    /// Part of a group that is reported later.
    HeldBack,
}

impl EventAggregator {
    /// Reports an action on some objects: at once with `individual`, or, beyond the limit of a window, with
    /// `rest` when the window ends. `rest` gets the number of objects. If the process ends first, that report
    /// is lost.
    pub(super) fn emit(
        &self,
        key: &NamespacedName,
        reason: WorkloadReason,
        objects: usize,
        individual: impl FnOnce(),
        rest: impl FnOnce(usize) + Send + 'static,
    ) {
        match self.record(key, reason, objects, Instant::now()) {
            Emission::Individual => individual(),
            Emission::HeldBack => {}
            Emission::FirstHeldBack(pause) => {
                let (aggregator, name) = (self.clone(), (key.clone(), reason));
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    rest(aggregator.end_window(&name));
                });
            }
        }
    }

    fn record(&self, key: &NamespacedName, reason: WorkloadReason, objects: usize, now: Instant) -> Emission {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Groups with objects held back end with their report.
        let over = |group: &Group| now.duration_since(group.since) >= EVENT_WINDOW && group.held_back == 0;
        let name = (key.clone(), reason);
        if groups.get(&name).is_none_or(over) {
            // Other groups are swept only when a new group begins.
            groups.retain(|_, group| !over(group));
        }
        let group = groups.entry(name).or_insert(Group {
            since: now,
            emitted: 0,
            held_back: 0,
        });
        if group.emitted < MAX_INDIVIDUAL_EVENTS {
            group.emitted += 1;
            return Emission::Individual;
        }
        let first = group.held_back == 0;
        group.held_back += objects;
        if first {
            Emission::FirstHeldBack(EVENT_WINDOW.saturating_sub(now.duration_since(group.since)))
        } else {
            Emission::HeldBack
        }
    }

    /// Ends the window of a group and returns the number of objects held back.
    fn end_window(&self, name: &(NamespacedName, WorkloadReason)) -> usize {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.remove(name).map_or(0, |group| group.held_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports, in order: an event of its own, or the number of a group.
    #[derive(Clone, Default)]
    struct Reports(Arc<Mutex<Vec<String>>>);

    impl Reports {
        fn emit(&self, aggregator: &EventAggregator, game: &str, reason: WorkloadReason, objects: usize) {
            let key = ("games".to_owned(), game.to_owned());
            let (individual, rest) = (self.clone(), self.clone());
            let name = game.to_owned();
            aggregator.emit(
                &key,
                reason,
                objects,
                || individual.push(format!("{game} {reason:?}")),
                move |count| rest.push(format!("{name} {reason:?}: {count} more")),
            );
        }

        fn push(&self, report: String) {
            self.0.lock().unwrap().push(report);
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    /// Lets the tasks that a new time wakes run.
    async fn advance(by: Duration) {
        tokio::time::sleep(by).await;
        tokio::task::yield_now().await;
    }

    #[tokio::test(start_paused = true)]
    async fn events_beyond_the_limit_are_reported_as_a_number() {
        use WorkloadReason::{PodDeleted, PodUpdated};
        let (aggregator, reports) = (EventAggregator::default(), Reports::default());
        for _ in 0..MAX_INDIVIDUAL_EVENTS {
            reports.emit(&aggregator, "arena", PodDeleted, 1);
        }
        assert_eq!(reports.take(), ["arena PodDeleted"; MAX_INDIVIDUAL_EVENTS]);
        advance(Duration::from_secs(5)).await;
        for objects in [1, 3] {
            reports.emit(&aggregator, "arena", PodDeleted, objects);
        }
        reports.emit(&aggregator, "arena", PodUpdated, 1);
        reports.emit(&aggregator, "other", PodDeleted, 1);
        assert_eq!(reports.take(), ["arena PodUpdated", "other PodDeleted"]);
        advance(EVENT_WINDOW).await;
        assert_eq!(reports.take(), ["arena PodDeleted: 4 more"]);
    }

    #[tokio::test(start_paused = true)]
    async fn events_go_on_after_a_window_with_too_many() {
        use WorkloadReason::{PodDeleted, PodsCreated};
        for reason in [PodDeleted, PodsCreated] {
            let (aggregator, reports) = (EventAggregator::default(), Reports::default());
            for window in 0..3 {
                for _ in 0..=MAX_INDIVIDUAL_EVENTS {
                    reports.emit(&aggregator, "arena", reason, 2);
                }
                advance(EVENT_WINDOW).await;
                let seen = reports.take();
                assert_eq!(seen.len(), MAX_INDIVIDUAL_EVENTS + 1, "window {window}: {seen:?}");
                assert!(
                    seen.last().unwrap().ends_with(": 2 more"),
                    "window {window}: {seen:?}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_within_the_limit_ends_by_itself() {
        let (aggregator, reports) = (EventAggregator::default(), Reports::default());
        for _ in 0..3 {
            for _ in 0..MAX_INDIVIDUAL_EVENTS {
                reports.emit(&aggregator, "arena", WorkloadReason::PodDeleted, 1);
            }
            assert_eq!(reports.take().len(), MAX_INDIVIDUAL_EVENTS);
            advance(EVENT_WINDOW).await;
        }
        assert!(reports.take().is_empty());
    }
}
