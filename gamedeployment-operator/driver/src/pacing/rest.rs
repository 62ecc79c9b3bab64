//! Throttle for large workloads. Each decision looks at all pods of the workload, and pod events arrive one
//! by one. After a long decision, events are gathered for a multiple of its duration.

use std::collections::HashMap;
use std::time::Duration;

use crate::Key;

/// Shorter decisions are not throttled.
const SHORT: Duration = Duration::from_millis(1);
/// Ratio of the pause to the decision: one workload uses at most a fifth of a CPU.
const TIMES: u32 = 4;
/// Upper limit of the pause, because users wait.
const LONGEST: Duration = Duration::from_millis(200);

/// Throttled workloads, with the end of their pause.
#[derive(Debug, Default)]
pub(crate) struct Rest(HashMap<Key, Duration>);

impl Rest {
    /// Records a decision.
    pub(crate) fn decided(&mut self, key: &Key, begun: Duration, took: Duration) {
        if took >= SHORT {
            let rest = took.saturating_mul(TIMES).min(LONGEST);
            self.0.insert(key.clone(), begun + took + rest);
        }
    }

    /// Returns the end of the pause if the workload is still throttled.
    pub(crate) fn until(&mut self, key: &Key, now: Duration) -> Option<Duration> {
        let until = *self.0.get(key)?;
        if now < until {
            return Some(until);
        }
        self.0.remove(key);
        None
    }

    /// Drops the entry of a deleted workload.
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
