//! A large workload is not decided on anew with every pod that changes: a decision looks at all its pods, and news of
//! them come one by one. After a decision that took long, what comes is gathered for some times as long.

use std::collections::HashMap;
use std::time::Duration;

use crate::Key;

/// Decisions that take less are made at once.
const SHORT: Duration = Duration::from_millis(1);
/// The rest is so many times as long as the decision: one workload costs at most a fifth of a processor.
const TIMES: u32 = 4;
/// No rest is longer: people wait.
const LONGEST: Duration = Duration::from_millis(200);

/// Workloads that rest, and until when.
#[derive(Debug, Default)]
pub(crate) struct Rest(HashMap<Key, Duration>);

impl Rest {
    /// A decision was begun then, and took so long.
    pub(crate) fn decided(&mut self, key: &Key, begun: Duration, took: Duration) {
        if took >= SHORT {
            let rest = took.saturating_mul(TIMES).min(LONGEST);
            self.0.insert(key.clone(), begun + took + rest);
        }
    }

    /// Until when this workload rests still.
    pub(crate) fn until(&mut self, key: &Key, now: Duration) -> Option<Duration> {
        let until = *self.0.get(key)?;
        if now < until {
            return Some(until);
        }
        self.0.remove(key);
        None
    }

    /// The workload is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
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
        let begun = Duration::ZERO;
        let at = |milliseconds: u64| begun + Duration::from_millis(milliseconds);
        rest.decided(&small, begun, Duration::from_micros(900));
        rest.decided(&large, begun, Duration::from_millis(10));
        rest.decided(&huge, begun, Duration::from_secs(1));
        assert_eq!(rest.until(&small, at(1)), None);
        assert_eq!(rest.until(&large, at(49)), Some(at(50)));
        assert_eq!(rest.until(&large, at(50)), None);
        assert_eq!(rest.until(&huge, at(50)), Some(at(1200)), "at most the longest");
        rest.forget(&huge);
        assert_eq!(rest.until(&huge, at(50)), None);
    }
}
