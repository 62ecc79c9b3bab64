//! HookRuns that a finalizer keeps hold up nothing but the pod whose name they occupy, and are named.

use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::hook_kind::HookKind;
use crate::samples::{self, finish, keep, names, object, pod, pod_to_delete};

/// Decides with runs as the API server stores them.
fn decided(object: &GameDeployment, pods: &[Pod], runs: &[HookRun]) -> Plan {
    let runs: Vec<Run> = runs.iter().map(Run::read).collect();
    samples::decided(object, pods, &runs)
}

/// Returns the run that is created for this pod, after it has ended in this phase.
fn ended(object: &GameDeployment, pod: &Pod, phase: Phase) -> HookRun {
    let plan = decided(object, std::slice::from_ref(pod), &[]);
    let mut run = samples::created_runs(plan).next().unwrap();
    finish(&mut run, "healthy", phase, i64::from(phase == Phase::Successful));
    run
}

fn progress(plan: &Plan) -> &str {
    let conditions = &plan.status.as_ref().unwrap().conditions;
    let mut conditions = conditions.iter();
    let found = conditions.find(|known| known.type_ == "Progressing");
    &found.unwrap().message
}

#[test]
fn a_kept_run_of_a_pod_that_is_gone_does_not_hold_up_a_retry() {
    let object = object(&[
        ("/spec/replicas", json!(0)),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" }, "retry": true }),
        ),
    ]);
    let pods = [pod_to_delete("fleet-a"), pod_to_delete("fleet-b")];
    let mut run = ended(&object, &pod_to_delete("fleet-gone"), Phase::Failed);
    let plan = decided(&object, &pods, std::slice::from_ref(&run));
    assert!(!names(&plan).contains(&"create_hook_run"), "it is deleted first");
    keep(&mut run);
    let plan = decided(&object, &pods, std::slice::from_ref(&run));
    assert_eq!(
        names(&plan),
        ["create_hook_run", "create_hook_run", "reset_retry"]
    );
    let name = run.metadata.name.unwrap();
    let wanted = format!("HookRun {name} is stuck terminating because of its finalizers");
    assert!(progress(&plan).contains(&wanted), "{}", progress(&plan));
}

#[test]
fn a_kept_run_does_not_keep_a_pod_out_of_service() {
    let object = |paused: Value| {
        object(&[
            (
                "/spec/preInplaceUpdateStrategy/hook",
                json!({ "templateName": "ask" }),
            ),
            ("/spec/updateStrategy/type", json!("InplaceUpdate")),
            ("/spec/updateStrategy/paused", paused),
            (
                "/spec/updateStrategy/inPlaceUpdateStrategy/gracePeriodSeconds",
                json!(30),
            ),
        ])
    };
    let since = "2024-05-31T23:59:50Z";
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "message": "new", "lastTransitionTime": since });
    let gates = (
        "/spec/readinessGates",
        json!([{ "conditionType": "InPlaceUpdateReady" }]),
    );
    let with = |status: &str| {
        let conditions = json!([
            condition("Ready", status),
            condition("InPlaceUpdateReady", status)
        ]);
        pod("fleet-a", &[gates.clone(), ("/status/conditions", conditions)])
    };
    let mut used = ended(&object(json!(false)), &with("True"), Phase::Successful);
    assert_eq!(Run::read(&used).kind, Some(HookKind::PreInplace));
    // The update was cancelled while the pod was out of service.
    let pods = [with("False")];
    let paused = object(json!(true));
    let plan = decided(&paused, &pods, std::slice::from_ref(&used));
    assert_eq!(names(&plan), ["delete_hook_run"], "a success counts once");
    keep(&mut used);
    let plan = decided(&paused, &pods, std::slice::from_ref(&used));
    assert_eq!(names(&plan), ["put_in_pod"]);
}
