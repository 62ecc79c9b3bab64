//! Wake-up times of workloads, on the clock of elapsed time, so that setting the time back delays none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::NamespacedName;

/// Wake-up times by key.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Duration, NamespacedName)>,
    by_key: BTreeMap<NamespacedName, Duration>,
}

impl Timers {
    /// Replaces the wake-up time of a key; `None` clears it.
    pub(crate) fn set(&mut self, key: &NamespacedName, at: Option<Duration>) {
        if let Some(known) = self.by_key.remove(key) {
            self.by_time.remove(&(known, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Time of the earliest wake-up.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the keys that are due.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<NamespacedName> {
        let due: Vec<NamespacedName> = self
            .by_time
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, key)| key.clone())
            .collect();
        for key in &due {
            self.set(key, None);
        }
        due
    }
}
