//! HookRuns without a verdict that report trouble: the pod waits, the status says why, and one event does.

use serde_json::{Value, json};
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, GameDeploymentStatus, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::plan::{PodGroup, Warning};
use crate::samples::{self, names};

/// A workload with a surplus pod whose hook runs.
struct World {
    object: GameDeployment,
    pod: Pod,
    run: HookRun,
}

impl World {
    fn new() -> Self {
        let object = samples::emptied();
        let pod = samples::pod_to_delete("pod-1");
        let plan = samples::decided(&object, std::slice::from_ref(&pod), &[]);
        let mut run = samples::created_runs(plan).next().unwrap();
        run.metadata.uid = Some("run-1".to_owned());
        Self { object, pod, run }
    }

    /// Sets the status of the run, decides and stores the status. Returns the plan.
    fn decide(&mut self, status: Value) -> Plan {
        self.run.status = serde_json::from_value(status).unwrap();
        let run = Run::read(&self.run);
        let plan = samples::decided(&self.object, std::slice::from_ref(&self.pod), &[run]);
        assert_eq!(names(&plan), [] as [&str; 0], "the pod stays, and its run too");
        if let Some(status) = &plan.status {
            self.object.status = Some(status.as_ref().clone());
        }
        plan
    }

    fn status(&self) -> &GameDeploymentStatus {
        self.object.status.as_ref().unwrap()
    }

    fn blocked(&self) -> Option<(&str, &str)> {
        let mut conditions = self.status().conditions.iter();
        let found = conditions.find(|known| known.type_ == "ScaleBlocked")?;
        Some((found.reason.as_str(), found.message.as_str()))
    }
}

/// Builds the status of a run whose metric has had these errors.
fn erring(reason: &str, errors: i64, said: &str) -> Value {
    json!({
        "phase": "Running", "reason": reason, "startedAt": "2024-05-01T00:00:00Z",
        "message": format!("metric players: last measurement Error: {said} ({errors} errors in a row)"),
        "metricResults": [{
            "name": "players", "phase": "Running", "error": errors, "consecutiveError": errors,
            "measurements": [{ "phase": "Error", "reason": "Unreachable", "message": said }]
        }]
    })
}

fn of_pods(plan: &Plan) -> Vec<&Warning> {
    let warnings = plan.warnings.iter();
    warnings.filter(|warning| warning.pod.is_some()).collect()
}

#[test]
fn errors_in_a_row_block_and_are_reported_once_until_they_end() {
    let mut world = World::new();
    let said = "connection refused by 10.0.0.7:9091";
    let plan = world.decide(erring("Measuring", 4, said));
    assert_eq!(world.blocked(), None);
    assert_eq!(world.status().pre_delete_hook_condition[0].reason, None);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);

    let plan = world.decide(erring("HookErrors", 5, said));
    let cause = format!("metric players: {said}");
    let entry = &world.status().pre_delete_hook_condition[0];
    assert_eq!(entry.reason.as_deref(), Some("HookErrors"));
    assert_eq!(
        (entry.phase, entry.hook_run_uid.as_deref()),
        (Phase::Running, Some("run-1"))
    );
    assert!(entry.message.as_ref().unwrap().ends_with(&cause), "{entry:?}");
    let (reason, message) = world.blocked().unwrap();
    assert_eq!(reason, "HookErrors");
    assert!(message.contains(&cause), "{message}");
    assert_eq!(world.status().phase.as_deref(), Some("Blocked"));
    let warnings = of_pods(&plan);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].reason, WorkloadReason::HookErrors);
    assert!(
        warnings[0]
            .message
            .contains("once HookTemplate ask or its endpoint is fixed"),
        "{warnings:?}"
    );
    let waits = plan.gauges.unwrap().hooks[0].unwrap();
    let none = PodGroup::default();
    assert_eq!(
        (waits.erroring.pods, waits.asking, waits.refused, waits.blocked),
        (1, none, none, none)
    );

    let plan = world.decide(erring("HookErrors", 6, said));
    assert!(plan.status.is_none(), "the number of errors is not in the status");
    let plan = world.decide(erring("HookErrors", 7, "received status 503"));
    assert!(
        plan.status.is_none(),
        "and neither are later errors: each would be a write"
    );
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    // An older CRD drops the reason.
    let status = world.object.status.as_mut().unwrap();
    status.pre_delete_hook_condition[0].reason = None;
    let plan = world.decide(erring("HookErrors", 8, said));
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);

    let plan = world
        .decide(json!({ "phase": "Running", "reason": "Measuring", "startedAt": "2024-05-01T00:00:00Z" }));
    assert_eq!(world.blocked(), None);
    assert_eq!(plan.gauges.unwrap().hooks[0].unwrap().asking.pods, 1);
    let plan = world.decide(erring("HookErrors", 5, said));
    assert_eq!(of_pods(&plan).len(), 1, "these are other errors");
    world.run.metadata.uid = Some("run-2".to_owned());
    let plan = world.decide(erring("HookErrors", 5, said));
    assert_eq!(of_pods(&plan).len(), 1, "this is another run");
}

#[test]
fn a_hook_that_cannot_succeed_blocks_with_the_words_of_its_run() {
    let mut world = World::new();
    let said = "metric players has neither count, successfulLimit nor consecutiveSuccessfulLimit";
    let running = json!({ "phase": "Running", "reason": "HookCannotSucceed", "message": said });
    let plan = world.decide(running);
    let (reason, message) = world.blocked().unwrap();
    assert_eq!(reason, "HookCannotSucceed");
    assert!(message.ends_with(&format!("cannot succeed: {said}")), "{message}");
    assert_eq!(of_pods(&plan).len(), 1);
}

#[test]
fn a_verdict_ends_the_trouble_whatever_the_run_says() {
    for phase in ["Failed", "Error", "Inconclusive"] {
        let mut world = World::new();
        let mut status = erring("HookErrors", 5, "connection refused");
        world.decide(status.clone());
        status["phase"] = json!(phase);
        let plan = world.decide(status);
        assert_eq!(world.blocked().unwrap().0, "HookUnsuccessful", "{phase}");
        assert_eq!(of_pods(&plan).len(), 1, "{phase}");
    }
}

#[test]
fn a_run_without_measurements_is_reported_before_its_errors() {
    let mut world = World::new();
    let mut status = erring("HookErrors", 5, "connection refused");
    world.run.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        samples::now() - jiff::SignedDuration::from_hours(1),
    ));
    status["startedAt"] = json!((samples::now() - jiff::SignedDuration::from_hours(1)).to_string());
    status["metricResults"][0]["measurements"][0]["finishedAt"] = status["startedAt"].clone();
    world.decide(status);
    assert_eq!(world.blocked().unwrap().0, "HookNotTakenUp");
}
