//! A large workload is not decided on anew with every pod that changes: a decision looks at all its pods, and news of
//! them come one by one. After a decision that took long, what comes is gathered for some times as long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use operator_runtime::watch::Key;

/// Decisions that take less are made at once.
const SHORT: Duration = Duration::from_millis(1);
/// The rest is so many times as long as the decision: one workload costs at most a fifth of a processor.
const TIMES: u32 = 4;
/// No rest is longer: people wait.
const LONGEST: Duration = Duration::from_millis(200);

/// Workloads that rest, and until when.
#[derive(Debug, Default)]
pub(super) struct Rest(HashMap<Key, Instant>);

impl Rest {
    /// A decision was begun then, and took so long.
    pub(super) fn decided(&mut self, key: &Key, begun: Instant, took: Duration) {
        if took >= SHORT {
            let rest = took.saturating_mul(TIMES).min(LONGEST);
            self.0.insert(key.clone(), begun + took + rest);
        }
    }

    /// Whether this workload rests still.
    pub(super) fn rests(&mut self, key: &Key, now: Instant) -> bool {
        match self.0.get(key) {
            Some(until) if now < *until => true,
            Some(_) => {
                self.0.remove(key);
                false
            }
            None => false,
        }
    }

    /// When the first of those that are waited for has rested.
    pub(super) fn next(&self, waits: impl Fn(&Key) -> bool) -> Option<Instant> {
        { self.0.iter() }
            .filter(|(key, _)| waits(key))
            .map(|(_, until)| *until)
            .min()
    }

    /// The workload is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_decided_on_slowly_rests_in_proportion() {
        let mut rest = Rest::default();
        let key = |name: &str| ("games".to_owned(), name.to_owned());
        let (small, large, huge) = (key("small"), key("large"), key("huge"));
        let begun = Instant::now();
        let at = |milliseconds: u64| begun + Duration::from_millis(milliseconds);
        rest.decided(&small, begun, Duration::from_micros(900));
        rest.decided(&large, begun, Duration::from_millis(10));
        rest.decided(&huge, begun, Duration::from_secs(1));
        assert!(!rest.rests(&small, at(1)));
        assert_eq!(rest.next(|_| true), Some(at(50)));
        assert_eq!(
            rest.next(|key| *key == huge),
            Some(at(1200)),
            "at most the longest"
        );
        assert_eq!(rest.next(|_| false), None);
        assert!(rest.rests(&large, at(49)));
        assert!(!rest.rests(&large, at(50)));
        assert_eq!(rest.next(|_| true), Some(at(1200)));
        rest.forget(&huge);
        assert_eq!(rest.next(|_| true), None);
    }
}
