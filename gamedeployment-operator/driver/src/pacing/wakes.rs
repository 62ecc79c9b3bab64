//! When workloads are to be decided anew though nothing happens: by the clock that only runs, so that none waits longer
//! because somebody sets the time back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Key;

/// Times at which keys are to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    by_time: BTreeSet<(Duration, Key)>,
    by_key: BTreeMap<Key, Duration>,
}

impl Wakes {
    /// From now on this key is to be looked at then, or not at all.
    pub(crate) fn set(&mut self, key: &Key, at: Option<Duration>) {
        if let Some(known) = self.by_key.remove(key) {
            self.by_time.remove(&(known, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// When the first one is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out those that are due.
    pub(crate) fn due(&mut self, now: Duration) -> Vec<Key> {
        let due: Vec<Key> = self
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
