//! When workloads are to be decided anew though nothing happens: by the clock that only runs, so that none waits longer
//! because somebody sets the time back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use operator_runtime::watch::Key;

/// Times at which keys are to be looked at.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    by_time: BTreeSet<(Instant, Key)>,
    by_key: BTreeMap<Key, Instant>,
}

impl Wakes {
    /// From now on this key is to be looked at then, or not at all.
    pub(super) fn set(&mut self, key: &Key, at: Option<Instant>) {
        if let Some(known) = self.by_key.remove(key) {
            self.by_time.remove(&(known, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// When the first one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out those that are due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Key> {
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
