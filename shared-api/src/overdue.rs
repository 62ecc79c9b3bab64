//! Deadline by which hook-operator must record progress on a HookRun. A run past its deadline is not being
//! measured.
//!
//! The deadline depends on the run alone, so gamedeployment-operator and the plugin always agree.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::defaults::{ERROR_RETRY, EXEC_TIMEOUT, EXEC_WAIT, PROMETHEUS_TIMEOUT, WEB_TIMEOUT};
use crate::hook_run::{HookRun, HookRunSpec, HookRunStatus, MetricResult};
use crate::metric::{Metric, Provider};
use crate::reason::HookRunReason;
use crate::time::Time;

/// Time that hook-operator has after a measurement is due.
pub const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// Time of the calls to the API server of one measurement: two for the kind of the object, and one for the object.
const API_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the time from which the run counts as not being measured, unless progress is recorded before.
/// Returns `None` if the run has ended, is being deleted, or waits for memory, as its status says.
pub fn not_taken_up_at(run: &HookRun) -> Option<Timestamp> {
    if run.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let created = run.metadata.creation_timestamp.as_ref()?.0;
    let due = match &run.status {
        Some(status) if status.phase.is_final() || waits_for_memory(status) => return None,
        Some(status) if !status.phase.is_unset() => due(&run.spec, status, created),
        _ => created,
    };
    Some(due.checked_add(GRACE).unwrap_or(Timestamp::MAX))
}

/// Returns whether hook-operator has recorded that it has no memory for the run's spec.
fn waits_for_memory(status: &HookRunStatus) -> bool {
    status.reason.as_deref() == Some(HookRunReason::NoRoomForSpec.as_str())
}

/// Returns the time by which the next measurement, or the whole run, should have finished.
fn due(spec: &HookRunSpec, status: &HookRunStatus, created: Timestamp) -> Timestamp {
    let started = status.started_at.map_or(created, Time::timestamp);
    let result = |metric: &Metric| {
        status
            .metric_results
            .iter()
            .find(|result| result.name == metric.name)
    };
    let is_open = |metric: &&Metric| result(metric).is_none_or(|result| !result.phase.is_final());
    // With `Ordered`, a metric starts after the previous one has succeeded.
    let ordered = spec.policy.as_deref() == Some("Ordered");
    let most = if ordered { 1 } else { usize::MAX };
    let before = spec.metrics.iter().take_while(|metric| !is_open(metric)).last();
    let may_start = before.filter(|_| ordered).and_then(result).and_then(ended);
    let next: Vec<&Metric> = spec.metrics.iter().filter(is_open).take(most).collect();
    let ends = next.iter().filter_map(|metric| {
        let start = match result(metric).and_then(ended) {
            Some(ended) => after(ended, pause(metric)),
            None => after(
                may_start.unwrap_or(started),
                length(metric.initial_delay.as_ref()),
            ),
        };
        Some(after(start, timeout(metric)?))
    });
    let limit = spec
        .timeout_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let limit = limit.map(|seconds| after(started, Duration::from_secs(seconds)));
    // If every metric has a verdict, the run is due at once.
    let latest = if next.is_empty() { started } else { Timestamp::MAX };
    ends.chain(limit).min().unwrap_or(latest)
}

/// Returns the end of the newest measurement.
fn ended(result: &MetricResult) -> Option<Timestamp> {
    let last = result.measurements.last()?;
    last.finished_at.or(last.started_at).map(Time::timestamp)
}

/// Returns the delay from the end of one measurement to the start of the next.
fn pause(metric: &Metric) -> Duration {
    let interval = metric.interval.as_ref().filter(|text| !text.is_empty());
    interval.map_or(ERROR_RETRY, |text| length(Some(text)))
}

/// Parses a duration. Returns zero for invalid text, because it ends the run at once.
fn length(text: Option<&String>) -> Duration {
    text.and_then(|text| go_duration::parse(text).ok())
        .unwrap_or_default()
}

/// Returns the timeout of one measurement; `None` for a Job, which may take any time.
fn timeout(metric: &Metric) -> Option<Duration> {
    const NO_WAIT: Duration = Duration::ZERO;
    let Provider {
        web,
        prometheus,
        job,
        kubernetes,
        exec,
        unknown: _,
    } = &metric.provider;
    let (seconds, default, wait) = match (web, prometheus, job, kubernetes, exec) {
        (Some(web), _, _, _, _) => (web.timeout_seconds, WEB_TIMEOUT, NO_WAIT),
        (None, Some(prometheus), _, _, _) => (prometheus.timeout_seconds, PROMETHEUS_TIMEOUT, NO_WAIT),
        (None, None, Some(_), _, _) => return None,
        (None, None, None, Some(_), _) => (None, API_TIMEOUT, NO_WAIT),
        (None, None, None, None, Some(exec)) => (exec.timeout_seconds, EXEC_TIMEOUT, EXEC_WAIT),
        (None, None, None, None, None) => (None, Duration::ZERO, NO_WAIT),
    };
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let set = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    Some(set.unwrap_or(default).saturating_add(wait))
}

fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).ok();
    wait.and_then(|wait| at.checked_add(wait).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Phase;

    /// Returns the seconds from creation until a run with this spec and status is overdue.
    fn at(spec: Value, status: Value) -> Option<i64> {
        let created = "2026-01-01T00:00:00Z";
        let run: HookRun = serde_json::from_value(json!({
            "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun",
            "metadata": {"name": "run", "creationTimestamp": created}, "spec": spec, "status": status,
        }))
        .unwrap();
        let created: Timestamp = created.parse().unwrap();
        not_taken_up_at(&run).map(|at| at.duration_since(created).as_secs())
    }

    fn second(second: i64) -> String {
        let at = Timestamp::from_second(1_767_225_600 + second).unwrap();
        at.to_string()
    }

    fn metric(name: &str, over: Value) -> Value {
        let mut metric = json!({"name": name, "provider": {"web": {"url": "http://game"}}});
        let object = metric.as_object_mut().unwrap();
        object.extend(over.as_object().unwrap().clone());
        metric
    }

    fn measured(name: &str, phase: &str, end: i64) -> Value {
        json!({"name": name, "phase": phase, "measurements": [{"phase": "Failed", "finishedAt": second(end)}]})
    }

    #[test]
    fn a_run_without_status_is_overdue_thirty_seconds_after_its_creation() {
        let spec = json!({"metrics": [metric("a", json!({"initialDelay": "1h"}))]});
        assert_eq!(at(spec.clone(), Value::Null), Some(30));
        assert_eq!(at(spec.clone(), json!({})), Some(30));
        for phase in Phase::FINAL {
            assert_eq!(at(spec.clone(), json!({"phase": phase.as_str()})), None);
        }
    }

    #[test]
    fn a_run_that_waits_for_memory_is_not_overdue() {
        let spec = json!({"metrics": [metric("a", json!({}))], "timeoutSeconds": 60});
        for phase in ["Pending", "Running"] {
            let status = |reason: &str| json!({"phase": phase, "startedAt": second(2), "reason": reason});
            assert_eq!(at(spec.clone(), status("NoRoomForSpec")), None, "{phase}");
            assert_eq!(
                at(spec.clone(), status("Measuring")),
                Some(2 + 10 + 30),
                "{phase}"
            );
        }
    }

    #[test]
    fn a_measurement_has_its_pause_its_timeout_and_thirty_seconds() {
        let running =
            |results: Value| json!({"phase": "Running", "startedAt": second(2), "metricResults": results});
        let web = json!({"url": "http://game", "timeoutSeconds": 60});
        let prometheus = json!({"address": "http://prometheus", "query": "up"});
        let table = [
            (json!({}), json!([]), 2 + 10),
            (json!({"initialDelay": "1m30s"}), json!([]), 2 + 90 + 10),
            (json!({"provider": {"web": web}}), json!([]), 2 + 60),
            (json!({"provider": {"prometheus": prometheus}}), json!([]), 2 + 30),
            (
                json!({"interval": "5s"}),
                json!([measured("a", "Running", 100)]),
                100 + 5 + 10,
            ),
            (json!({}), json!([measured("a", "Running", 100)]), 100 + 10 + 10),
            // The metric has a verdict, the run has none.
            (json!({}), json!([measured("a", "Failed", 100)]), 2),
            (
                json!({"interval": "2562047h"}),
                json!([measured("a", "Running", 100)]),
                9_223_369_200 + 110,
            ),
        ];
        for (over, results, due) in table {
            let spec = json!({"metrics": [metric("a", over.clone())]});
            assert_eq!(at(spec, running(results)), Some(due + 30), "{over}");
        }
        let spec = json!({"metrics": [metric("a", json!({"interval": "1h"}))], "timeoutSeconds": 60});
        assert_eq!(
            at(spec, running(json!([measured("a", "Running", 5)]))),
            Some(2 + 60 + 30)
        );
    }

    #[test]
    fn a_job_may_take_any_time_unless_the_run_has_a_timeout() {
        let job = metric("job", json!({"provider": {"job": {"spec": {}}}}));
        let running = json!({"phase": "Running", "startedAt": second(2)});
        let spec = |more: Value| {
            let mut spec = json!({"metrics": [job.clone()]});
            spec.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            spec
        };
        assert_eq!(
            at(spec(json!({})), Value::Null),
            Some(30),
            "nobody has taken it up"
        );
        assert!(at(spec(json!({})), running.clone()) > Some(1_000_000_000));
        assert_eq!(
            at(spec(json!({"timeoutSeconds": 60})), running.clone()),
            Some(2 + 60 + 30)
        );
        let beside = spec(json!({"metrics": [job.clone(), metric("web", json!({}))]}));
        assert_eq!(
            at(beside.clone(), running),
            Some(2 + 10 + 30),
            "the other metric is due"
        );
        let done = json!({"phase": "Running", "startedAt": second(2), "metricResults": [measured("job", "Failed", 9)]});
        assert_eq!(
            at(spec(json!({})), done),
            Some(2 + 30),
            "the metric has a verdict, the run has none"
        );
    }

    #[test]
    fn of_several_metrics_the_next_one_counts_and_in_order_only_its_turn() {
        let slow = metric("slow", json!({"initialDelay": "1h"}));
        let spec =
            |policy: &str| json!({"policy": policy, "metrics": [slow.clone(), metric("b", json!({}))]});
        let running = json!({"phase": "Running", "startedAt": second(0)});
        assert_eq!(at(spec("Parallel"), running.clone()), Some(10 + 30));
        assert_eq!(at(spec("Ordered"), running), Some(3600 + 10 + 30));
        let first = measured("slow", "Successful", 3700);
        let second = json!({"phase": "Running", "startedAt": second(0), "metricResults": [first]});
        assert_eq!(at(spec("Ordered"), second), Some(3700 + 10 + 30));
    }
}
