//! Rate limit for the status writes of one object.

use std::time::Duration;

use serde::Serialize;

/// Limit of the status bytes written per second for one object, on average: a small status is written as often
/// as it changes, one of 512 KiB every four seconds.
const BYTES_PER_SECOND: usize = 128 * 1024;

/// Earliest time of an object's next status write. The last write of an object need not wait for it.
#[derive(Debug, Default)]
pub(crate) struct WriteThrottle {
    next: Duration,
    shortest: Duration,
}

impl WriteThrottle {
    /// Limits writes as the default does, with at least this pause after each.
    pub(crate) fn with_pause(shortest: Duration) -> Self {
        Self {
            shortest,
            ..Self::default()
        }
    }

    /// Returns how long the next write must wait; results that arrive meanwhile are written with it.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        let wait = self.next.saturating_sub(now);
        (!wait.is_zero()).then_some(wait)
    }

    pub(crate) fn sent(&mut self, status: &impl Serialize, now: Duration) {
        let bytes = serde_json::to_vec(status).map_or(0, |text| text.len());
        let millis = u64::try_from(bytes * 1000 / BYTES_PER_SECOND).unwrap_or_default();
        self.next = now + Duration::from_millis(millis).max(self.shortest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_statuses_are_written_seldom_and_small_ones_with_the_pause() {
        let now = Duration::ZERO;
        let mut pace = WriteThrottle::default();
        let large = "x".repeat(512 * 1024);
        assert_eq!(pace.wait(now), None);
        pace.sent(&large, now);
        let wait = pace.wait(now).unwrap();
        assert!(
            wait >= Duration::from_secs(4) && wait < Duration::from_secs(5),
            "{wait:?}"
        );
        assert_eq!(pace.wait(now + wait), None);
        pace.sent(&"x".repeat(1024), now);
        assert!(pace.wait(now).unwrap() < Duration::from_millis(20));
        let second = Duration::from_secs(1);
        let mut pace = WriteThrottle::with_pause(second);
        pace.sent(&"x", now);
        assert_eq!((pace.wait(now), pace.wait(now + second)), (Some(second), None));
        pace.sent(&large, now);
        assert!(pace.wait(now).unwrap() >= Duration::from_secs(4));
    }
}
