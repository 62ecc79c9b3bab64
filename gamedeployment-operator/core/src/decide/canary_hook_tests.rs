//! The hook of a canary step: only its own run, measured as the operator created it, ends the step.

use jiff::Timestamp;
use serde_json::json;
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::samples::{FakeCluster, finish, object, pod, revisions};
use crate::view::View;

/// Change of a run.
type Change = dyn Fn(&mut HookRun);

fn now() -> Timestamp {
    "2024-06-01T00:00:00Z".parse().unwrap()
}

/// Decides about two old pods of a workload whose first step is a hook.
fn decided(object: &GameDeployment, runs: &[Run]) -> Plan {
    let cluster = FakeCluster::with_hook();
    let (pods, revisions) = ([pod("fleet-a", &[]), pod("fleet-b", &[])], revisions());
    let view = View {
        object,
        pods: &pods.iter().collect::<Vec<_>>(),
        revisions: &revisions.iter().collect::<Vec<_>>(),
        runs: &runs.iter().collect::<Vec<_>>(),
        accepted: Some("new"),
        write_errors: None,
        cluster: &cluster,
    };
    decide(&view, now())
}

/// Index of the step after this decision.
fn step(object: &GameDeployment, plan: &Plan) -> Option<i32> {
    let status = plan.status.as_deref().or(object.status.as_ref());
    status.and_then(|status| status.current_step_index)
}

fn created(plan: &Plan) -> Option<HookRun> {
    plan.actions.iter().find_map(|action| match action {
        Action::CreateRun(new) => Some(new.run.clone()),
        _ => None,
    })
}

#[test]
fn only_its_own_run_as_it_was_created_ends_a_canary_step() {
    let steps = json!({ "steps": [{ "hook": { "templateName": "ask" } }, { "partition": 0 }] });
    let mut object = object(&[
        ("/spec/replicas", json!(2)),
        ("/spec/updateStrategy/canary", steps),
    ]);
    // The status is written once the run exists.
    let mut made = None;
    for _ in 0..3 {
        let plan = decided(&object, &[]);
        made = created(&plan).or(made);
        object.status = plan.status.map(|status| *status).or(object.status);
    }
    let mut own = made.unwrap();
    own.metadata.owner_references.as_mut().unwrap()[0].uid = "gd-uid".to_owned();
    finish(&mut own, "healthy", Phase::Successful, 1);
    let ends = |change: &Change| {
        let mut run = own.clone();
        change(&mut run);
        step(&object, &decided(&object, &[Run::read(&run)])) == Some(1)
    };
    assert!(ends(&|_| {}), "{own:#?}");
    let others: [(&str, &Change); 7] = [
        ("softened, with the annotations of the real one", &|run| {
            run.spec.metrics[0].success_condition = Some("true".to_owned());
        }),
        ("edited and restored", &|run| run.metadata.generation = Some(3)),
        ("edited and restored with terminate: false", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(false), Some(2));
        }),
        ("terminated", &|run| {
            (run.spec.terminate, run.metadata.generation) = (Some(true), Some(2));
        }),
        ("measured at another generation", &|run| {
            run.status.as_mut().unwrap().observed_generation = Some(2);
        }),
        ("not measured", &|run| {
            run.status.as_mut().unwrap().metric_results.clear();
        }),
        ("of another name", &|run| {
            run.metadata.name = Some("by-hand".to_owned());
        }),
    ];
    for (case, change) in others {
        assert!(!ends(change), "{case}");
    }
}
