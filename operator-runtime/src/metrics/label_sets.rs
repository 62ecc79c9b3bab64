//! Label sets of a metric whose labels name objects of tenants: how many there are, and which are forgotten.
//!
//! A namespace gets a set only while it has fewer than are free: a single one gets half of them at most, and the next
//! one still finds some.

use std::collections::HashMap;
use std::time::Duration;

use super::{Label, Labels};

/// Maximum number of sets of a metric.
pub(super) const MAX_SETS: usize = 2000;
/// Time without an observation after which a set is unused.
const KEPT_FOR: Duration = Duration::from_hours(7 * 24);
/// The same while others find no room.
const KEPT_FOR_IF_FULL: Duration = Duration::from_hours(1);
/// Minimum time between two searches for unused sets.
const SEARCH_INTERVAL: Duration = Duration::from_mins(1);

/// Label sets that have room.
#[derive(Debug, Default)]
pub(super) struct LabelSets {
    sets: HashMap<Labels, LabelSet>,
    /// Number of sets by namespace.
    held: HashMap<String, usize>,
    /// Whether a set found no room since the last search for unused ones.
    lacks_room: bool,
    /// Time of that search.
    searched: Duration,
}

#[derive(Debug)]
struct LabelSet {
    namespace: String,
    /// Time of the last observation.
    observed: Duration,
}

impl LabelSets {
    /// Records an observation of a set of this namespace. Returns whether the set has room.
    pub(super) fn observe(&mut self, namespace: &str, labels: &Labels, now: Duration) -> bool {
        if let Some(set) = self.sets.get_mut(labels) {
            set.observed = now;
            return true;
        }
        let held = self.held.get(namespace).copied().unwrap_or_default();
        let free = MAX_SETS.saturating_sub(self.sets.len());
        if held >= free {
            self.lacks_room = true;
            return false;
        }
        self.held.insert(namespace.to_owned(), held + 1);
        let set = LabelSet {
            namespace: namespace.to_owned(),
            observed: now,
        };
        self.sets.insert(labels.clone(), set);
        true
    }

    /// Removes and returns the sets that have a label.
    pub(super) fn remove(&mut self, label: &Label) -> Vec<Labels> {
        self.extract(|labels, _| labels.contains(label))
    }

    /// Removes and returns the sets that are unused. Searches for them now and then.
    pub(super) fn remove_unused(&mut self, now: Duration) -> Vec<Labels> {
        if now.saturating_sub(self.searched) < SEARCH_INTERVAL {
            return Vec::new();
        }
        self.searched = now;
        let kept_for = if std::mem::take(&mut self.lacks_room) {
            KEPT_FOR_IF_FULL
        } else {
            KEPT_FOR
        };
        self.extract(|_, set| now.saturating_sub(set.observed) >= kept_for)
    }

    fn extract(&mut self, is_gone: impl Fn(&Labels, &LabelSet) -> bool) -> Vec<Labels> {
        let mut removed = Vec::new();
        for (labels, set) in self.sets.extract_if(|labels, set| is_gone(labels, set)) {
            if let Some(held) = self.held.get_mut(&set.namespace) {
                *held = held.saturating_sub(1);
            }
            removed.push(labels);
        }
        self.held.retain(|_, held| *held > 0);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Duration = Duration::from_hours(1);

    fn named(name: impl ToString) -> Labels {
        vec![("owner", name.to_string())]
    }

    /// Sets of which a namespace has taken as many as it gets.
    fn crowded() -> LabelSets {
        let mut sets = LabelSets::default();
        for number in 0..10_000 {
            let has_room = sets.observe("greedy", &named(number), BEGIN);
            assert_eq!(has_room, number < MAX_SETS / 2, "{number}");
        }
        sets
    }

    #[test]
    fn ten_thousand_names_of_one_namespace_leave_half_of_the_sets_to_others() {
        let mut sets = crowded();
        assert_eq!(sets.sets.len(), MAX_SETS / 2);
        for namespace in ["games", "arena"] {
            for number in 0..MAX_SETS / 8 {
                let labels = named(format!("{namespace}-{number}"));
                assert!(sets.observe(namespace, &labels, BEGIN), "{labels:?}");
            }
        }
        assert!(
            sets.observe("greedy", &named(0), BEGIN),
            "a set that has room keeps it"
        );
    }

    #[test]
    fn thousands_of_namespaces_do_not_get_more_sets_than_there_are() {
        let mut sets = LabelSets::default();
        for namespace in 0..3 * MAX_SETS {
            for number in 0..3 {
                let labels = named(format!("{namespace}-{number}"));
                sets.observe(&namespace.to_string(), &labels, BEGIN);
            }
        }
        assert_eq!(sets.sets.len(), MAX_SETS);
        assert_eq!(sets.held.values().sum::<usize>(), MAX_SETS);
    }

    #[test]
    fn removal_makes_room() {
        let mut sets = crowded();
        assert_eq!(sets.remove(&("owner", "7".to_owned())), [named(7)]);
        assert!(sets.observe("greedy", &named("new"), BEGIN));
        assert!(!sets.observe("greedy", &named("newer"), BEGIN));
        assert!(sets.remove(&("owner", "newer".to_owned())).is_empty());
    }

    #[test]
    fn a_set_is_unused_after_a_week() {
        let mut sets = LabelSets::default();
        sets.observe("games", &named("a"), BEGIN);
        sets.observe("games", &named("b"), BEGIN + SEARCH_INTERVAL / 2);
        let later = BEGIN + KEPT_FOR;
        let earlier = later.checked_sub(SEARCH_INTERVAL).unwrap();
        assert!(sets.remove_unused(earlier).is_empty());
        assert_eq!(sets.remove_unused(later), [named("a")]);
        assert!(
            sets.remove_unused(later + SEARCH_INTERVAL / 2).is_empty(),
            "the search is not due"
        );
        assert_eq!(sets.remove_unused(later + SEARCH_INTERVAL), [named("b")]);
        assert!(sets.held.is_empty() && sets.sets.is_empty());
    }

    #[test]
    fn while_others_lack_room_a_set_is_unused_after_an_hour() {
        let mut sets = crowded();
        let now = BEGIN + KEPT_FOR_IF_FULL;
        assert!(sets.observe("greedy", &named(7), now), "it is in use");
        assert_eq!(sets.remove_unused(now).len(), MAX_SETS / 2 - 1);
        assert!(sets.observe("greedy", &named("new"), now));
        // Nobody lacks room any longer.
        assert!(sets.remove_unused(now + KEPT_FOR_IF_FULL).is_empty());
    }
}
