//! Rate limit for one run's status writes.

use std::time::Duration;

use shared_api::HookRunStatus;

/// Limit of the status bytes written per second for one run, on average: a small status is written as often
/// as it changes, one of 512 KiB every four seconds.
const BYTES_PER_SECOND: usize = 128 * 1024;

/// Earliest time of a run's next status write. A verdict never waits.
#[derive(Debug, Default)]
pub(crate) struct WriteThrottle {
    next: Option<Duration>,
}

impl WriteThrottle {
    /// Returns how long this status must wait; measurements that arrive meanwhile are written with it.
    pub(crate) fn wait_for(&self, status: &HookRunStatus, now: Duration) -> Option<Duration> {
        if status.phase.is_final() {
            return None;
        }
        let wait = self.next?.saturating_sub(now);
        (!wait.is_zero()).then_some(wait)
    }

    pub(crate) fn sent(&mut self, status: &HookRunStatus, now: Duration) {
        let bytes = serde_json::to_vec(status).map_or(0, |text| text.len());
        let millis = u64::try_from(bytes * 1000 / BYTES_PER_SECOND).unwrap_or_default();
        self.next = Some(now + Duration::from_millis(millis));
    }
}

#[cfg(test)]
mod tests {
    use shared_api::Phase;

    use super::*;

    fn status(bytes: usize, phase: Phase) -> HookRunStatus {
        HookRunStatus {
            phase,
            message: Some("x".repeat(bytes)),
            ..HookRunStatus::default()
        }
    }

    #[test]
    fn large_statuses_are_written_seldom_and_verdicts_at_once() {
        let now = Duration::ZERO;
        let mut pace = WriteThrottle::default();
        let large = status(512 * 1024, Phase::Running);
        assert_eq!(pace.wait_for(&large, now), None);
        pace.sent(&large, now);
        let wait = pace.wait_for(&large, now).unwrap();
        assert!(
            wait >= Duration::from_secs(4) && wait < Duration::from_secs(5),
            "{wait:?}"
        );
        assert_eq!(pace.wait_for(&status(512 * 1024, Phase::Failed), now), None);
        assert_eq!(pace.wait_for(&large, now + wait), None);
        pace.sent(&status(1024, Phase::Running), now);
        assert!(pace.wait_for(&large, now).unwrap() < Duration::from_millis(20));
    }
}
