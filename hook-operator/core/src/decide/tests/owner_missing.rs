//! A run that has lost its owner ends without a measurement, whatever is recorded, and a verdict stays.

use serde_json::json;
use shared_api::hook_run::HookRunSpec;

use super::super::*;
use super::harness::{at, metric, none, run};
use crate::resolve::resolve_run;

fn status(text: serde_json::Value) -> HookRunStatus {
    serde_json::from_value(text).unwrap()
}

/// Decides about a run of two metrics, the second of which runs a Job.
fn plan(spec: serde_json::Value, status: &HookRunStatus, in_flight: &[MeasurementKey]) -> RunPlan {
    let spec: HookRunSpec = serde_json::from_value(spec).unwrap();
    let resolved = resolve_run(&spec);
    let input = DecisionInput {
        spec: resolved.as_ref(),
        time_to_live: None,
        generation: Some(1),
        status,
        taken_up_at: at(0),
        in_flight,
        outcomes: &[],
        held_up: None,
    };
    abandon(&input, at(5_000))
}

fn two() -> serde_json::Value {
    let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "check", "image": "check:v1" }] });
    let job = json!({ "name": "drain", "provider": { "job": { "spec": { "template": { "spec": pod } } } } });
    run(&[metric("players", none()), job], none())
}

fn key(metric: &str) -> MeasurementKey {
    MeasurementKey {
        metric: metric.to_owned(),
        number: 0,
    }
}

#[test]
fn nothing_is_measured_and_the_reason_is_recorded() {
    let measured = json!([{ "name": "players", "phase": "Running", "count": 1, "failed": 1, "measurements": [
        { "phase": "Failed", "value": "3" }
    ]}]);
    let table = [
        json!({}),
        json!({ "phase": "Pending", "reason": "NoRoomForSpec" }),
        json!({ "phase": "Running", "startedAt": "2023-11-14T22:13:00Z" }),
        json!({ "phase": "Running", "startedAt": "2023-11-14T22:13:00Z", "metricResults": measured }),
    ];
    for recorded in table {
        let plan = plan(two(), &status(recorded.clone()), &[key("players"), key("drain")]);
        let next = plan.record.unwrap();
        assert_eq!((next.phase, next.observed_generation), (Phase::Error, Some(1)));
        assert_eq!(next.reason.as_deref(), Some("OwnerMissing"), "{recorded}");
        let message = next.message.unwrap();
        assert!(
            message.contains("has no owner") && message.contains("delete it"),
            "{message}"
        );
        assert!(next.started_at.is_some() && next.completed_at == Some(at(5_000).into()));
        let mut results = next.metric_results.iter();
        assert!(
            results.all(|result| result.phase == Phase::Error),
            "{:?}",
            next.metric_results
        );
        assert_eq!((plan.start, plan.ended, plan.wake_at), (vec![], None, None));
        assert_eq!(plan.cancel, [key("players"), key("drain")]);
        assert_eq!(plan.stop_jobs, [key("drain")], "its Job must not go on");
    }
}

#[test]
fn a_spec_that_cannot_be_measured_changes_nothing() {
    let plan = plan(json!({ "metrics": [] }), &HookRunStatus::default(), &[]);
    let next = plan.record.unwrap();
    assert_eq!(next.reason.as_deref(), Some("OwnerMissing"));
    assert_eq!(plan.stop_jobs, []);
}

#[test]
fn a_verdict_stays() {
    for phase in Phase::FINAL {
        let recorded = status(json!({ "phase": phase, "reason": "TimedOut" }));
        let plan = plan(two(), &recorded, &[]);
        assert_eq!((plan.record, plan.ended), (None, Some(Cleanup::Keep)), "{phase}");
    }
}
