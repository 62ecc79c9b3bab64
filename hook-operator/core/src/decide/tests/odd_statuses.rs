//! Statuses that this operator did not write: from the original operator, a manual edit, or a process with a
//! wrong clock.

#![allow(clippy::unwrap_in_result, reason = "a test may end so")]

use shared_api::hook_run::HookRunSpec;

use super::super::*;
use crate::resolve::resolve_run;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn time(second: i64) -> serde_json::Value {
    serde_json::json!(at(second).to_string())
}

fn run(spec: serde_json::Value) -> Result<ResolvedRun, FieldErrors> {
    let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
    resolve_run(&spec)
}

fn metric(name: &str) -> serde_json::Value {
    serde_json::json!({ "name": name, "provider": { "web": { "url": "http://game/" } } })
}

fn polled(name: &str, interval: &str) -> serde_json::Value {
    serde_json::json!({
        "name": name, "interval": interval, "successfulLimit": 2, "provider": { "web": { "url": "http://game/" } }
    })
}

fn status(text: serde_json::Value) -> HookRunStatus {
    serde_json::from_value(text).unwrap()
}

/// Returns the plan for a run that was taken up at second 0.
fn plan(
    run: &Result<ResolvedRun, FieldErrors>,
    status: &HookRunStatus,
    outcomes: &[MeasurementOutcome],
    now: Timestamp,
) -> RunPlan {
    let input = DecisionInput {
        spec: run.as_ref(),
        generation: Some(1),
        time_to_live: Some(Duration::from_secs(30)),
        status,
        taken_up_at: at(0),
        in_flight: &[],
        outcomes,
        held_up: None,
    };
    decide(&input, now)
}

fn success(metric: &str, number: i64) -> MeasurementOutcome {
    MeasurementOutcome {
        key: MeasurementKey {
            metric: metric.into(),
            number,
        },
        started_at: at(0),
        finished_at: at(0),
        verdict: MeasurementResult {
            phase: Phase::Successful,
            reason: None,
            value: Some("1".into()),
            message: None,
        },
    }
}

/// The original operator calls a metric Successful when its count is used up by failures, or when the run is
/// terminated.
#[test]
fn a_success_without_a_measured_success_is_not_adopted() {
    let run = run(serde_json::json!({ "policy": "Ordered", "metrics": [metric("a"), metric("b")] }));
    let failed = status(serde_json::json!({
        "phase": "Running", "startedAt": time(-60),
        "metricResults": [{ "name": "a", "phase": "Successful", "count": 1, "failed": 1, "measurements": [
            { "phase": "Failed", "startedAt": time(-60), "finishedAt": time(-60), "value": "1" }
        ] }]
    }));
    let recorded = plan(&run, &failed, &[], at(0)).record.unwrap();
    assert_eq!(recorded.phase, Phase::Failed, "{:?}", recorded.message);

    let unmeasured = status(serde_json::json!({
        "phase": "Running", "startedAt": time(-60),
        "metricResults": [{ "name": "a", "phase": "Successful" }, { "name": "b", "phase": "Successful" }]
    }));
    let next = plan(&run, &unmeasured, &[], at(0));
    assert_eq!(next.record, None);
    let keys: Vec<_> = next.start.iter().map(|start| start.key.metric.as_str()).collect();
    assert_eq!(keys, ["a"], "measured as if nothing had been recorded");
}

/// The original operator counted errors too, and a manual edit may leave any number.
#[test]
fn counters_are_taken_for_what_they_can_be() {
    let run = run(serde_json::json!({ "metrics": [
        { "name": "m", "interval": "10s", "count": 3, "provider": { "web": { "url": "http://game/" } } }
    ] }));
    let with = |counters: serde_json::Value| {
        let mut result = serde_json::json!({ "name": "m", "phase": "Running", "measurements": [
            { "phase": "Successful", "startedAt": time(-60), "finishedAt": time(-60) }
        ] });
        result
            .as_object_mut()
            .unwrap()
            .extend(counters.as_object().unwrap().clone());
        status(serde_json::json!({ "phase": "Running", "startedAt": time(-60), "metricResults": [result] }))
    };
    let original = with(serde_json::json!({ "count": 3, "successful": 1, "error": 2 }));
    let next = plan(&run, &original, &[], at(0));
    assert_eq!(next.record, None, "errors do not use up count");
    assert_eq!(next.start.len(), 1);

    for counters in [
        serde_json::json!({ "successful": i64::MAX, "failed": 0 }),
        serde_json::json!({ "count": i64::MAX, "error": i64::MAX }),
        serde_json::json!({ "successful": -5, "failed": i64::MIN, "count": -9 }),
        serde_json::json!({ "consecutiveError": i64::MAX, "consecutiveSuccessful": i64::MAX }),
        serde_json::json!({ "successful": i64::MAX, "failed": i64::MAX, "inconclusive": i64::MAX, "error": i64::MAX }),
    ] {
        let odd = with(counters.clone());
        let next = plan(&run, &odd, &[], at(0));
        if next.record.is_some() {
            continue;
        }
        let key = next.start.first().unwrap().key.clone();
        let outcome = success("m", key.number);
        let recorded = plan(&run, &odd, std::slice::from_ref(&outcome), at(0))
            .record
            .unwrap();
        assert!(
            !is_open(run.as_ref().unwrap(), &recorded, &outcome.key),
            "{counters}: would be recorded again and again"
        );
    }
}

#[test]
fn of_two_results_with_one_name_the_worse_one_counts() {
    let run = run(serde_json::json!({ "metrics": [metric("m")] }));
    let good = serde_json::json!({ "name": "m", "phase": "Successful", "count": 1, "successful": 1 });
    let bad = serde_json::json!({ "name": "m", "phase": "Failed", "count": 1, "failed": 1 });
    for results in [[&good, &bad], [&bad, &good]] {
        let odd = status(serde_json::json!({ "phase": "Running", "metricResults": results }));
        let recorded = plan(&run, &odd, &[], at(0)).record.unwrap();
        assert_eq!(recorded.phase, Phase::Failed, "{recorded:?}");
    }
}

#[test]
fn a_metric_without_a_verdict_always_has_a_next_measurement() {
    let one = run(serde_json::json!({ "metrics": [metric("m")] }));
    let ordered = run(serde_json::json!({ "policy": "Ordered", "metrics": [metric("a"), metric("b")] }));
    let no_counters = status(serde_json::json!({
        "phase": "Running", "startedAt": time(-60), "metricResults": [{ "name": "m", "phase": "Running",
            "measurements": [{ "phase": "Successful", "startedAt": time(-60), "finishedAt": time(-60) }] }]
    }));
    let no_end = status(serde_json::json!({
        "phase": "Running", "startedAt": time(-60),
        "metricResults": [{ "name": "a", "phase": "Successful", "count": 1, "successful": 1 }]
    }));
    for (run, status) in [(&one, &no_counters), (&ordered, &no_end)] {
        let next = plan(run, status, &[], at(0));
        let goes_on = next.record.is_some() || !next.start.is_empty() || next.wake_at.is_some();
        assert!(goes_on, "stuck in silence: {status:?}");
    }
}

/// The writer's clock was an hour fast, or our clock was set back.
#[test]
fn times_in_the_future_stop_nothing() {
    let run = run(serde_json::json!({ "timeoutSeconds": 600, "metrics": [polled("m", "10s")] }));
    let ahead = status(serde_json::json!({
        "phase": "Running", "startedAt": time(3_600), "observedGeneration": 1, "reason": "Measuring",
        "metricResults": [{ "name": "m", "phase": "Running", "count": 1, "successful": 1, "measurements": [
            { "phase": "Successful", "startedAt": time(3_600), "finishedAt": time(3_600), "value": "1" }
        ] }]
    }));
    assert_eq!(plan(&run, &ahead, &[], at(1)).wake_at, Some(at(10)));
    assert_eq!(plan(&run, &ahead, &[], at(10)).start.len(), 1);
    let late = plan(&run, &ahead, &[], at(600)).record.unwrap();
    assert_eq!(late.reason.as_deref(), Some("TimedOut"));
}

/// The original operator records no end, and an invalid spec may still set a TTL.
#[test]
fn every_finished_run_with_a_time_to_live_is_deleted() {
    let good = run(serde_json::json!({ "ttlSecondsAfterFinished": 30, "metrics": [metric("m")] }));
    let bad = run(serde_json::json!({ "ttlSecondsAfterFinished": 30, "metrics": [] }));
    let finished = status(serde_json::json!({ "phase": "Failed" }));
    for run in [&good, &bad] {
        let next = plan(run, &finished, &[], at(1));
        assert_eq!(
            (next.ended, next.wake_at),
            (Some(Cleanup::DeleteLater), Some(at(30)))
        );
        assert_eq!(plan(run, &finished, &[], at(30)).ended, Some(Cleanup::Delete));
    }
}

/// 100 metrics with 10 measurements of 2 KiB each exceed etcd's limit, and JSON escapes make them six times
/// as large.
#[test]
fn no_status_outgrows_what_the_api_server_takes() {
    let names: Vec<String> = (0..100).map(|number| format!("{number:\u{1}<253}")).collect();
    let metrics: Vec<_> = names.iter().map(|name| polled(name, "10s")).collect();
    let run = run(serde_json::json!({ "metrics": metrics }));
    let text = "\u{1}".repeat(KEPT_BYTES);
    let measurement = serde_json::json!({
        "phase": "Failed", "startedAt": time(-10), "finishedAt": time(-10), "value": text, "message": text
    });
    let results: Vec<_> = names
        .iter()
        .map(|name| {
            serde_json::json!({
                "name": name, "phase": "Running", "count": 10, "failed": 10, "message": text,
                "measurements": vec![measurement.clone(); 10]
            })
        })
        .collect();
    let large =
        status(serde_json::json!({ "phase": "Running", "startedAt": time(-60), "metricResults": results }));
    let outcome = success(&names[0], 10);
    let recorded = plan(&run, &large, &[outcome], at(0)).record.unwrap();
    let bytes = serde_json::to_vec(&recorded).unwrap().len();
    assert!(bytes <= 512 * 1024, "{bytes} bytes");
    let first = &recorded.metric_results[0];
    assert_eq!((first.count, first.successful, first.failed), (11, 1, 10));
    assert_eq!(first.measurements.last().unwrap().phase, Phase::Successful);
}
