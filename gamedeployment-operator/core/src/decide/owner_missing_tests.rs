//! HookRuns that have lost their owner, as after a restore from a backup: they block no name for good, and their
//! verdicts count for nothing.

use serde_json::json;
use shared_api::reason::WorkloadReason;
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::plan::RunRef;
use crate::samples::{self, decided_beside, finish, keep, names, object, pod, pod_to_delete};

fn fleet() -> GameDeployment {
    let hook = json!({ "hook": { "templateName": "ask" } });
    object(&[
        ("/spec/replicas", json!(0)),
        ("/spec/preDeleteUpdateStrategy", hook),
    ])
}

/// Returns the run that the workload creates for this pod, as a backup restores it: without its owner and its status.
fn restored(fleet: &GameDeployment, pods: &[Pod]) -> HookRun {
    let mut run = samples::created_runs(samples::decided(fleet, pods, &[]))
        .next()
        .unwrap();
    run.metadata.owner_references = None;
    run.metadata.uid = Some("restored".to_owned());
    run.metadata.resource_version = Some("7".to_owned());
    run.metadata.generation = Some(1);
    run
}

/// Returns the runs that a plan deletes.
fn deleted(plan: &Plan) -> Vec<&RunRef> {
    let runs = plan.actions.iter().filter_map(|action| match action {
        Action::DeleteRun(run) => Some(run),
        _ => None,
    });
    runs.collect()
}

fn reason(plan: &Plan, kind: &str) -> String {
    let conditions = &plan.status.as_ref().unwrap().conditions;
    let found = conditions.iter().find(|known| known.type_ == kind);
    found.map_or_else(String::new, |found| found.reason.clone())
}

#[test]
fn a_run_without_an_owner_is_deleted_at_its_version_and_its_hook_runs_anew() {
    let (fleet, pods) = (fleet(), [pod_to_delete("fleet-a")]);
    let new = restored(&fleet, &pods);
    // Its verdict was for the workload that owned it.
    for phase in [
        Phase::Unset,
        Phase::Running,
        Phase::Error,
        Phase::Failed,
        Phase::Successful,
    ] {
        let mut run = new.clone();
        if !phase.is_unset() {
            finish(&mut run, "healthy", phase, i64::from(phase == Phase::Successful));
            run.metadata.uid = Some("restored".to_owned());
        }
        let run = Run::read(&run);
        assert!(run.lacks_owner());
        let plan = decided_beside(&fleet, &pods, &[], vec![run.clone()]);
        assert_eq!(names(&plan), ["delete_hook_run"], "{phase}");
        let at = deleted(&plan)[0];
        let warning = at.stale_warning.as_ref().unwrap();
        assert_eq!(warning.pod.as_ref().unwrap().name, "fleet-a", "{phase}");
        assert_eq!(warning.reason, WorkloadReason::HookRunEdited);
        assert_eq!(
            (at.uid.as_str(), at.resource_version.as_deref()),
            ("restored", Some("7"))
        );
    }
    let plan = decided_beside(&fleet, &pods, &[], Vec::new());
    assert_eq!(names(&plan), ["create_hook_run"]);
}

#[test]
fn a_plan_reports_the_first_of_many_runs_without_an_owner() {
    let names: Vec<String> = (10..30).map(|number| format!("fleet-{number}")).collect();
    let pods: Vec<Pod> = names.iter().map(|name| pod_to_delete(name)).collect();
    let fleet = fleet();
    let runs = pods.chunks(1).zip(&names).map(|(pod, name)| {
        let mut run = restored(&fleet, pod);
        run.metadata.uid = Some(format!("restored-{name}"));
        Run::read(&run)
    });
    let plan = decided_beside(&fleet, &pods, &[], runs.collect());
    let deleted = deleted(&plan);
    let reported = deleted.iter().filter(|run| run.stale_warning.is_some()).count();
    assert_eq!((deleted.len(), reported), (20, 10));
}

#[test]
fn a_run_that_no_pod_needs_stays() {
    let (fleet, pods) = (fleet(), [pod_to_delete("fleet-a")]);
    let other = restored(&fleet, &[pod_to_delete("fleet-gone")]);
    let plan = decided_beside(&fleet, &pods, &[], vec![Run::read(&other)]);
    assert_eq!(names(&plan), ["create_hook_run"]);
}

#[test]
fn a_run_of_somebody_else_stays_and_blocks_the_name() {
    let (fleet, pods) = (fleet(), [pod_to_delete("fleet-a")]);
    let new = restored(&fleet, &pods);
    let mut by_hand = new.clone();
    by_hand.metadata.annotations = None;
    let mut foreign = new;
    let owner =
        json!([{ "apiVersion": "v", "kind": "k", "name": "other", "uid": "other", "controller": true }]);
    foreign.metadata.owner_references = serde_json::from_value(owner).unwrap();
    for run in [by_hand, foreign] {
        let plan = decided_beside(&fleet, &pods, &[], vec![Run::read(&run)]);
        assert_eq!(names(&plan), [] as [&str; 0]);
        assert_eq!(reason(&plan, "ScaleBlocked"), "HookRunNameInvalid");
    }
}

#[test]
fn a_run_that_a_finalizer_keeps_is_named() {
    let (fleet, pods) = (fleet(), [pod_to_delete("fleet-a")]);
    let mut run = restored(&fleet, &pods);
    keep(&mut run);
    let plan = decided_beside(&fleet, &pods, &[], vec![Run::read(&run)]);
    assert_eq!(names(&plan), [] as [&str; 0]);
    assert_eq!(reason(&plan, "ScaleBlocked"), "HookRunTerminating");
}

/// Users and the original operator may give two pods the same instance id.
#[test]
fn a_run_that_is_in_the_way_of_two_pods_is_deleted_once() {
    let fleet = fleet();
    let id = |name| {
        let id = (
            "/metadata/labels/tkex.bkbcs.tencent.com~1gamedeployment-instance-id",
            json!("a"),
        );
        let marks = json!({
            "io.tencent.bcs.dev/game-pod-deleting": "true",
            "tkex.tencent.com/chosen-for": "delete@2024-05-01T00:00:00Z",
        });
        pod(name, &[id, ("/metadata/annotations", marks)])
    };
    let pods = [id("fleet-a"), id("fleet-b")];
    let run = Run::read(&restored(&fleet, &pods[..1]));
    let plan = decided_beside(&fleet, &pods, &[], vec![run]);
    assert_eq!(deleted(&plan).len(), 1, "{:#?}", plan.actions);
}

#[test]
fn a_canary_step_replaces_its_run_or_takes_the_next_name() {
    let steps = json!({ "steps": [{ "hook": { "templateName": "ask" } }, { "partition": 0 }] });
    let mut fleet = object(&[
        ("/spec/replicas", json!(2)),
        ("/spec/updateStrategy/canary", steps),
    ]);
    let pods = [pod("fleet-a", &[]), pod("fleet-b", &[])];
    let mut made = None;
    for _ in 0..3 {
        let plan = samples::decided(&fleet, &pods, &[]);
        fleet.status = plan.status.clone().map(|status| *status).or(fleet.status);
        made = samples::created_runs(plan).next().or(made);
    }
    let mut run = made.unwrap();
    run.metadata.owner_references = None;
    run.metadata.uid = Some("restored".to_owned());
    run.metadata.resource_version = Some("7".to_owned());
    let read = Run::read(&run);
    let plan = decided_beside(&fleet, &pods, &[], vec![read.clone()]);
    assert_eq!(deleted(&plan), [&RunRef::without_owner(&read, None)]);
    let warning = deleted(&plan)[0].stale_warning.as_ref().unwrap();
    assert_eq!(
        (&warning.pod, warning.reason),
        (&None, WorkloadReason::HookRunEdited)
    );
    assert_eq!(samples::created_runs(plan).count(), 0);
    keep(&mut run);
    let plan = decided_beside(&fleet, &pods, &[], vec![Run::read(&run)]);
    assert_eq!(deleted(&plan), [] as [&RunRef; 0]);
    let next = samples::created_runs(plan).next().unwrap();
    assert_eq!(next.metadata.name, Some(format!("{}-2", read.name)));
}
