//! Due time of a metric's next measurement. Times are arguments; this module reads no clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shared_api::Phase;
use shared_api::defaults::ERROR_RETRY;

/// Shortest interval; a shorter one is raised to it. Every measurement is a write, and one tenant's typo must
/// not take the API server's capacity from all others.
pub const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Schedule of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Time from the end of one measurement to the start of the next.
    pub interval: Option<Duration>,
    /// Time from the moment the metric may start to its first measurement.
    pub initial_delay: Option<Duration>,
}

impl Schedule {
    /// Returns the due time of the next measurement of a metric without a verdict. `last` is the newest
    /// measurement, with its end. `may_start` is when the metric was allowed to begin: the run's start, or
    /// under `Ordered` the end of the previous metric. Missed ticks are not replayed: an overdue measurement
    /// is taken once.
    pub fn due(&self, last: Option<(Phase, Timestamp)>, may_start: Timestamp) -> Timestamp {
        match (last, self.interval) {
            (None, _) => after(may_start, self.initial_delay.unwrap_or_default()),
            (Some((_, finished)), Some(interval)) => after(finished, interval),
            // After an error, or after a measurement whose counters were lost, which must not leave the
            // metric waiting forever.
            (Some((_, finished)), None) => after(finished, ERROR_RETRY),
        }
    }
}

/// Returns `at + wait`, or the maximum timestamp on overflow.
pub fn after(at: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| at.checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[test]
    fn due_times() {
        let seconds = |n| Some(Duration::from_secs(n));
        let plain = Schedule {
            interval: None,
            initial_delay: None,
        };
        let every5 = Schedule {
            interval: seconds(5),
            initial_delay: seconds(30),
        };
        assert_eq!(plain.due(None, at(0)), at(0), "at once");
        assert_eq!(every5.due(None, at(0)), at(30), "after the initial delay");
        assert_eq!(
            every5.due(Some((Phase::Failed, at(7))), at(0)),
            at(12),
            "finish to start"
        );
        assert_eq!(
            every5.due(Some((Phase::Error, at(7))), at(0)),
            at(12),
            "errors keep the interval"
        );
        assert_eq!(
            plain.due(Some((Phase::Error, at(7))), at(0)),
            at(17),
            "ten seconds after an error"
        );
        assert_eq!(
            plain.due(Some((Phase::Successful, at(7))), at(0)),
            at(17),
            "a metric without a verdict is never left alone"
        );
        let forever = Schedule {
            interval: Some(Duration::MAX),
            initial_delay: None,
        };
        assert_eq!(forever.due(Some((Phase::Error, at(7))), at(0)), Timestamp::MAX);
    }
}
