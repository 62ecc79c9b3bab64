//! Throttle for large workloads. Each decision looks at all pods of the workload, and pod events arrive one
//! by one. After a long decision, events are gathered for a multiple of its duration.

use std::collections::HashMap;
use std::time::Duration;

use crate::NamespacedName;

/// Shorter decisions are not throttled.
const FAST_DECISION: Duration = Duration::from_millis(1);
/// Ratio of the pause to the decision. It limits a workload to a fifth of a CPU, unless [`MAX_THROTTLE`] cuts
/// the pause short.
const THROTTLE_FACTOR: u32 = 4;
/// Upper limit of the pause, because users wait.
const MAX_THROTTLE: Duration = Duration::from_millis(200);

/// Throttled workloads, with the end of their pause.
#[derive(Debug, Default)]
pub(crate) struct Throttle(HashMap<NamespacedName, Duration>);

impl Throttle {
    /// Records a decision. A long one starts a pause.
    pub(crate) fn decided(&mut self, key: &NamespacedName, begun: Duration, took: Duration) {
        if took >= FAST_DECISION {
            let throttle = took.saturating_mul(THROTTLE_FACTOR).min(MAX_THROTTLE);
            self.0.insert(key.clone(), begun + took + throttle);
        }
    }

    /// Returns the end of the pause if the workload is still throttled.
    pub(crate) fn until(&mut self, key: &NamespacedName, now: Duration) -> Option<Duration> {
        let until = *self.0.get(key)?;
        if now < until {
            return Some(until);
        }
        self.0.remove(key);
        None
    }

    /// Drops the entry of a deleted workload.
    pub(crate) fn forget(&mut self, key: &NamespacedName) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_decided_on_slowly_rests_in_proportion() {
        let mut throttle = Throttle::default();
        let key = |name: &str| ("games".to_owned(), name.to_owned());
        let (small, large, huge) = (key("small"), key("large"), key("huge"));
        let begun = Duration::ZERO;
        let at = |milliseconds: u64| begun + Duration::from_millis(milliseconds);
        throttle.decided(&small, begun, Duration::from_micros(900));
        throttle.decided(&large, begun, Duration::from_millis(10));
        throttle.decided(&huge, begun, Duration::from_secs(1));
        assert_eq!(throttle.until(&small, at(1)), None);
        assert_eq!(throttle.until(&large, at(49)), Some(at(50)));
        assert_eq!(throttle.until(&large, at(50)), None);
        assert_eq!(
            throttle.until(&huge, at(50)),
            Some(at(1200)),
            "at most the longest"
        );
        throttle.forget(&huge);
        assert_eq!(throttle.until(&huge, at(50)), None);
    }
}
