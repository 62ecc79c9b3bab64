//! Turns measurements into a metric's phase: counters, limits, and the order in which limits are checked.

use shared_api::Phase;
use shared_api::hook_run::{Measurement, MetricResult};
use shared_api::reason::HookRunReason;

use crate::value::counted;

/// Number of measurements that a metric's result keeps; counters are never trimmed.
pub const KEPT_MEASUREMENTS: usize = 10;

/// Limits that decide a metric's verdict: `failed > limit` and `successful >= limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricLimits {
    /// Measurements to take, not counting errors; `None` means no end.
    pub count: Option<i64>,
    /// Tolerated failures; `None` means any number.
    pub failure: Option<i64>,
    /// Tolerated inconclusive measurements.
    pub inconclusive: i64,
    /// Tolerated consecutive errors; `None` means any number.
    pub consecutive_error: Option<i64>,
    /// Required successes.
    pub successful: Option<i64>,
    /// Required consecutive successes.
    pub consecutive_successful: Option<i64>,
}

impl MetricLimits {
    /// Returns whether the metric is measured until it fails.
    pub fn is_endless(&self) -> bool {
        self.count.is_none() && self.successful.is_none() && self.consecutive_successful.is_none()
    }
}

/// Verdict of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Final phase.
    pub phase: Phase,
    /// Rule that decided.
    pub reason: HookRunReason,
    /// Numbers behind the decision, for example `3 failed > failureLimit 2`.
    pub because: String,
}

/// Returns how many measurements of a metric were taken, of any outcome. This is the number of its next
/// measurement.
pub fn taken(result: &MetricResult) -> i64 {
    let outcomes = [
        result.successful,
        result.failed,
        result.inconclusive,
        result.error,
    ];
    // `count` is not used, because the original operator's includes errors.
    outcomes.into_iter().map(plausible).sum()
}

/// More than any run can measure, and far below an overflow of sums.
const MAX_COUNT: i64 = 1 << 53;

/// Replaces an implausible counter, such as one from a manual edit, with 0. A value above the limit must not
/// be clamped to it, or the next measurement would not change it.
fn plausible(counter: i64) -> i64 {
    if (0..=MAX_COUNT).contains(&counter) {
        counter
    } else {
        0
    }
}

/// Makes the counters of a result consistent, regardless of their origin.
pub fn make_plausible(result: &mut MetricResult) {
    for counter in [
        &mut result.successful,
        &mut result.failed,
        &mut result.inconclusive,
        &mut result.error,
    ] {
        *counter = plausible(*counter);
    }
    result.count = result.successful + result.failed + result.inconclusive;
    result.consecutive_error = plausible(result.consecutive_error).min(result.error);
    result.consecutive_successful = plausible(result.consecutive_successful).min(result.successful);
}

/// Adds a measurement to a metric's list and to its counters, which must be plausible.
pub fn add(result: &mut MetricResult, measurement: Measurement) {
    match measurement.phase {
        Phase::Successful => {
            result.successful += 1;
            result.consecutive_successful += 1;
            result.consecutive_error = 0;
        }
        Phase::Failed => result.failed += 1,
        Phase::Inconclusive => result.inconclusive += 1,
        // A measurement without a final phase is an error: it must not count as anything better.
        Phase::Error | Phase::Unset | Phase::Pending | Phase::Running => {
            result.error += 1;
            result.consecutive_error += 1;
            result.consecutive_successful = 0;
        }
    }
    if matches!(measurement.phase, Phase::Failed | Phase::Inconclusive) {
        result.consecutive_successful = 0;
        result.consecutive_error = 0;
    }
    result.count = result.successful + result.failed + result.inconclusive;
    result.measurements.push(measurement);
    let surplus = result.measurements.len().saturating_sub(KEPT_MEASUREMENTS);
    result.measurements.drain(..surplus);
}

/// Returns the verdict that a metric's counters have reached, or `None` while more measurements are needed.
pub fn assess(limits: &MetricLimits, result: &MetricResult) -> Option<Assessment> {
    let verdict = |phase, reason, because| {
        Some(Assessment {
            phase,
            reason,
            because,
        })
    };
    if let Some(limit) = limits.failure.filter(|limit| result.failed > *limit) {
        let because = format!("{} failed > failureLimit {limit}", result.failed);
        return verdict(Phase::Failed, HookRunReason::FailureLimitExceeded, because);
    }
    if let Some(limit) = limits.successful.filter(|limit| result.successful >= *limit) {
        let because = format!("{} successful >= successfulLimit {limit}", result.successful);
        return verdict(Phase::Successful, HookRunReason::AllMetricsSuccessful, because);
    }
    if result.inconclusive > limits.inconclusive {
        let because = format!(
            "{} inconclusive > inconclusiveLimit {}",
            result.inconclusive, limits.inconclusive
        );
        return verdict(
            Phase::Inconclusive,
            HookRunReason::InconclusiveLimitExceeded,
            because,
        );
    }
    if let Some(limit) = limits
        .consecutive_error
        .filter(|limit| result.consecutive_error > *limit)
    {
        let because = format!(
            "{} > consecutiveErrorLimit {limit}",
            counted(
                result.consecutive_error,
                "consecutive error",
                "consecutive errors"
            )
        );
        return verdict(Phase::Error, HookRunReason::ErrorLimitExceeded, because);
    }
    if let Some(limit) = limits
        .consecutive_successful
        .filter(|limit| result.consecutive_successful >= *limit)
    {
        let successes = counted(
            result.consecutive_successful,
            "consecutive success",
            "consecutive successes",
        );
        let because = format!("{successes} >= consecutiveSuccessfulLimit {limit}");
        return verdict(Phase::Successful, HookRunReason::AllMetricsSuccessful, because);
    }
    limits
        .count
        .filter(|count| result.count >= *count)
        .map(|count| used_up(limits, result, count))
}

/// Returns the verdict of a metric whose `count` is used up. Limits may tolerate failures, but a gate opens
/// only on a measured success: without a single one the verdict is never Successful.
fn used_up(limits: &MetricLimits, result: &MetricResult, count: i64) -> Assessment {
    if limits.successful.is_some() || limits.consecutive_successful.is_some() {
        return Assessment {
            phase: Phase::Failed,
            reason: HookRunReason::SuccessLimitNotReached,
            because: format!(
                "{} of {count} measurements successful; success limit not reached",
                result.successful
            ),
        };
    }
    if result.successful > 0 {
        return Assessment {
            phase: Phase::Successful,
            reason: HookRunReason::AllMetricsSuccessful,
            because: format!("{} of {count} measurements successful", result.successful),
        };
    }
    let (phase, reason) = if result.failed > 0 {
        (Phase::Failed, HookRunReason::FailureLimitExceeded)
    } else {
        (Phase::Inconclusive, HookRunReason::InconclusiveLimitExceeded)
    };
    Assessment {
        phase,
        reason,
        because: format!("0 of {count} measurements successful"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: MetricLimits = MetricLimits {
        count: None,
        failure: Some(0),
        inconclusive: 0,
        consecutive_error: Some(4),
        successful: None,
        consecutive_successful: None,
    };

    /// Adds measurements by their letters `S F I E`. Returns the first verdict and the number of measurements
    /// that it took.
    fn feed(limits: &MetricLimits, letters: &str) -> Option<(Phase, usize)> {
        let mut result = MetricResult::default();
        for (index, letter) in letters.chars().enumerate() {
            let phase = match letter {
                'S' => Phase::Successful,
                'F' => Phase::Failed,
                'I' => Phase::Inconclusive,
                _ => Phase::Error,
            };
            let measurement = Measurement {
                phase,
                ..Measurement::default()
            };
            add(&mut result, measurement);
            if let Some(assessment) = assess(limits, &result) {
                return Some((assessment.phase, index + 1));
            }
        }
        None
    }

    #[test]
    fn limits_and_their_order() {
        let poll = MetricLimits {
            failure: None,
            consecutive_error: None,
            successful: Some(2),
            ..NONE
        };
        let streak = MetricLimits {
            successful: None,
            consecutive_successful: Some(2),
            ..poll
        };
        let count = |n| MetricLimits {
            count: Some(n),
            ..NONE
        };
        let tolerant = MetricLimits {
            failure: Some(2),
            ..count(3)
        };
        let poll_three = MetricLimits {
            count: Some(3),
            ..poll
        };
        let poll_strictly = MetricLimits {
            failure: Some(0),
            ..poll
        };
        let (good, failed) = (Phase::Successful, Phase::Failed);
        let cases = [
            (count(1), "S", Some((good, 1))),                 // one shot, good
            (count(1), "F", Some((failed, 1))),               // one shot, bad
            (count(1), "EES", Some((good, 3))),               // errors do not use up count
            (count(1), "EEEEE", Some((Phase::Error, 5))),     // the fifth error in a row
            (tolerant, "FFF", Some((failed, 3))),             // the user's failing hook
            (tolerant, "FFS", Some((good, 3))),               // two failures tolerated
            (tolerant, "SI", Some((Phase::Inconclusive, 2))), // inconclusive ends it
            (NONE, "SSSSSSSS", None),                         // an unlimited metric goes on
            (poll, "FFEEEEEEEFSS", Some((good, 12))),         // poll-until tolerates failures and errors
            (streak, "SFSS", Some((good, 4))),                // a streak is broken by a failure
            (streak, "SESS", Some((good, 4))),                // a streak is broken by an error
            (poll_three, "SFF", Some((failed, 3))),           // count used up before the success limit
            (poll_strictly, "SF", Some((failed, 2))),         // failure is checked before success
        ];
        for (limits, letters, expected) in cases {
            assert_eq!(feed(&limits, letters), expected, "{limits:?} {letters}");
        }
    }

    #[test]
    fn tolerated_failures_alone_never_open_a_gate() {
        for failure in [Some(1), Some(3), None] {
            let limits = MetricLimits {
                failure,
                count: Some(1),
                ..NONE
            };
            let verdict = feed(&limits, "F");
            assert_eq!(verdict, Some((Phase::Failed, 1)), "failureLimit {failure:?}");
        }
        let limits = MetricLimits {
            inconclusive: 5,
            count: Some(2),
            ..NONE
        };
        assert_eq!(feed(&limits, "II"), Some((Phase::Inconclusive, 2)));
    }

    #[test]
    fn the_newest_measurements_are_kept_and_counters_are_not_trimmed() {
        let mut result = MetricResult::default();
        for number in 0..25 {
            let measurement = Measurement {
                phase: Phase::Successful,
                value: Some(number.to_string()),
                ..Measurement::default()
            };
            add(&mut result, measurement);
        }
        assert_eq!((result.count, result.successful), (25, 25));
        assert_eq!(result.measurements.len(), KEPT_MEASUREMENTS);
        assert_eq!(result.measurements[0].value.as_deref(), Some("15"));
    }
}
