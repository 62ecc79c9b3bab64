//! When a metric is to be measured next. Times are arguments; nothing here reads a clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shared_api::Phase;
use shared_api::hook_run::MetricResult;

/// Pause before another try after an error, where the metric has no interval.
pub const ERROR_RETRY: Duration = Duration::from_secs(10);

/// A metric's rhythm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// From the end of one measurement to the start of the next.
    pub interval: Option<Duration>,
    /// From the moment the metric may start to its first measurement.
    pub initial_delay: Option<Duration>,
}

impl Schedule {
    /// When the next measurement is due, or `None` where no further one is foreseen. `may_start` is when the
    /// metric was allowed to begin: the run's start, or under `Ordered` the end of the metric before it.
    /// Missed ticks are not replayed: an overdue measurement is taken once.
    #[must_use]
    pub fn due(&self, result: Option<&MetricResult>, may_start: Timestamp) -> Option<Timestamp> {
        let Some(last) = result.and_then(|result| result.measurements.last()) else {
            return Some(after(may_start, self.initial_delay.unwrap_or_default()));
        };
        let finished = last
            .finished_at
            .or(last.started_at)
            .map_or(may_start, shared_api::time::Time::timestamp);
        match (self.interval, last.phase) {
            (Some(interval), _) => Some(after(finished, interval)),
            (None, Phase::Error | Phase::Unset | Phase::Pending | Phase::Running) => {
                Some(after(finished, ERROR_RETRY))
            }
            (None, Phase::Successful | Phase::Failed | Phase::Inconclusive) => None,
        }
    }
}

/// `at + wait`, or the end of time where that cannot be written.
#[must_use]
pub fn after(at: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait)
        .ok()
        .and_then(|wait| at.checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_api::hook_run::Measurement;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn measured(phase: Phase, finished: i64) -> MetricResult {
        let finished_at = Some(at(finished).into());
        MetricResult {
            measurements: vec![Measurement {
                phase,
                finished_at,
                ..Measurement::default()
            }],
            ..MetricResult::default()
        }
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
        assert_eq!(plain.due(None, at(0)), Some(at(0)), "at once");
        assert_eq!(every5.due(None, at(0)), Some(at(30)), "after the initial delay");
        assert_eq!(
            every5.due(Some(&measured(Phase::Failed, 7)), at(0)),
            Some(at(12)),
            "finish to start"
        );
        assert_eq!(
            every5.due(Some(&measured(Phase::Error, 7)), at(0)),
            Some(at(12)),
            "errors keep the interval"
        );
        assert_eq!(
            plain.due(Some(&measured(Phase::Error, 7)), at(0)),
            Some(at(17)),
            "ten seconds after an error"
        );
        assert_eq!(
            plain.due(Some(&measured(Phase::Successful, 7)), at(0)),
            None,
            "one measurement is enough"
        );
        let forever = Schedule {
            interval: Some(Duration::MAX),
            initial_delay: None,
        };
        assert_eq!(
            forever.due(Some(&measured(Phase::Error, 7)), at(0)),
            Some(Timestamp::MAX)
        );
    }
}
