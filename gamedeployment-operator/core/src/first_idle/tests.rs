use serde_json::{Value, json};
use shared_api::{GameDeployment, HookRun, Phase};

use super::*;
use crate::gate::Run;
use crate::hook_kind::HookKind;
use crate::plan::{GatedWrite, Plan};
use crate::pod::Pod;
use crate::samples::{created_runs, decided, finish, object, pod};

const COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";
pub(super) const MARK: &str = "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting";
pub(super) const CHOSEN: &str = "/metadata/annotations/tkex.tencent.com~1chosen-for";
const SINCE: &str = "delete@2024-05-01T00:00:00Z";

/// A game that selects idle pods first.
fn game(replicas: usize, over: &[(&str, Value)]) -> GameDeployment {
    let hook = json!({ "hook": { "templateName": "ask" } });
    let mut all = vec![
        ("/spec/replicas", json!(replicas)),
        ("/spec/preDeleteUpdateStrategy", hook),
        ("/spec/scaleStrategy/selectionPolicy", json!("FirstIdle")),
        ("/spec/updateStrategy/partition", json!(100)),
    ];
    all.extend_from_slice(over);
    object(&all)
}

/// Pods `fleet-0`, `fleet-1` … in deletion order.
pub(super) fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(|at| costing(at, &[])).collect()
}

pub(super) fn costing(at: usize, over: &[(&str, Value)]) -> Pod {
    let mut all = vec![(COST, json!(at.to_string()))];
    all.extend_from_slice(over);
    pod(&format!("fleet-{at}"), &all)
}

fn selected(at: usize) -> Pod {
    costing(at, &[(MARK, json!("true")), (CHOSEN, json!(SINCE))])
}

/// HookRuns that a decision creates, with the positions of their pods.
fn created(plan: Plan) -> Vec<(usize, HookRun)> {
    let of = |run: HookRun| {
        let name = run.metadata.name.as_deref().unwrap();
        (name.split('-').nth(3).unwrap().parse().unwrap_or(usize::MAX), run)
    };
    created_runs(plan).map(of).collect()
}

/// Scouts that a decision creates, by their pods.
fn scouted(plan: Plan) -> Vec<usize> {
    let is_scout =
        |(_, run): &(usize, HookRun)| run.metadata.labels.as_ref().unwrap()["hookrun-type"] == "scout-step";
    let mut at: Vec<usize> = created(plan)
        .into_iter()
        .filter(is_scout)
        .map(|(at, _)| at)
        .collect();
    at.sort_unstable();
    at
}

/// The scouts of these pods, in this phase.
fn scouts(object: &GameDeployment, pods: &[Pod], phases: &[(usize, Phase)]) -> Vec<Run> {
    let made = created(decided(object, pods, &[]));
    let run = |(at, phase): &(usize, Phase)| {
        let (_, mut run) = made.iter().find(|(of, _)| of == at).cloned().unwrap();
        let successes = i64::from(*phase == Phase::Successful);
        finish(&mut run, "healthy", *phase, successes);
        run.metadata.uid = Some(format!("scout-{at}"));
        Run::read(&run)
    };
    phases.iter().map(run).collect()
}

/// Marks, exchanged pods, deleted HookRuns and deleted pods of a plan, each as `VERB NAME`.
fn steps(plan: &Plan) -> Vec<String> {
    let step = |action: &Action| match action {
        Action::RecordSelection(pod, ..) => Some(format!("select {}", pod.name)),
        Action::ClearSelection(pod, _) => Some(format!("clear {}", pod.name)),
        Action::DeleteRun(run) => Some(format!("end {}", run.uid)),
        Action::Gated(GatedWrite::DeletePod(delete)) => Some(format!("delete {}", delete.pod().name)),
        _ => None,
    };
    let mut steps: Vec<String> = plan.actions.iter().filter_map(step).collect();
    steps.sort();
    steps
}

/// Candidates, selected pods and needed pods of the search for pods to delete.
fn progress(plan: &Plan) -> Option<(i32, i32, i32)> {
    let search = plan.status.as_ref()?.first_idle?.scale?;
    Some((search.candidates, search.selected, search.needed))
}

#[test]
fn all_pods_are_candidates_and_none_is_selected_before_a_success() {
    let plan = decided(&game(3, &[]), &pods(5), &[]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((5, 0, 2)));
    assert_eq!(scouted(plan), [0, 1, 2, 3, 4]);
}

#[test]
fn a_scout_differs_from_a_run_of_the_gate_in_name_type_and_intent() {
    let made = created(decided(&game(1, &[]), &pods(2), &[]));
    let metadata = &made[0].1.metadata;
    assert_eq!(metadata.name.as_deref(), Some("scout-hook-old-0-ask"));
    let labels = metadata.labels.as_ref().unwrap();
    let kinds =
        ["hookrun-type", "gamedeployment-type", "tkex.tencent.com/pod-uid"].map(|key| labels[key].as_str());
    assert_eq!(kinds, ["scout-step", "Scout", "uid-fleet-0"]);
    let notes = metadata.annotations.as_ref().unwrap();
    assert_eq!(notes["tkex.tencent.com/intent"], "scout");
    assert!(
        !notes.contains_key("tkex.tencent.com/choice") && !notes.contains_key("tkex.tencent.com/question")
    );
    let run = Run::read(&made[0].1);
    assert_eq!((run.kind, run.scout), (None, Some(HookKind::PreDelete)));
}

#[test]
fn a_pod_whose_scout_succeeded_is_selected_and_its_scout_ends_once_that_is_recorded() {
    let (object, all) = (game(3, &[]), pods(5));
    let runs = scouts(
        &object,
        &all,
        &[(0, Phase::Running), (3, Phase::Successful), (4, Phase::Running)],
    );
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["select fleet-3"]);
    assert_eq!(progress(&plan), Some((4, 1, 1)));
    assert_eq!(scouted(plan), [1, 2]);
    let mut recorded = all.clone();
    recorded[3] = selected(3);
    assert_eq!(steps(&decided(&object, &recorded, &runs)), ["end scout-3"]);
}

#[test]
fn of_more_idle_pods_than_must_go_the_first_in_deletion_order_are_selected() {
    let (object, all) = (game(3, &[]), pods(5));
    let runs = scouts(&object, &all, &[4, 2, 1].map(|at| (at, Phase::Successful)));
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["select fleet-1", "select fleet-2"]);
    assert_eq!(progress(&plan), Some((0, 2, 0)));
    assert_eq!(scouted(plan), [0; 0]);
}

#[test]
fn a_scout_opens_no_gate() {
    let (object, mut all) = (game(1, &[]), pods(2));
    let runs = scouts(&object, &all, &[(0, Phase::Successful)]);
    all[0] = selected(0);
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["end scout-0"]);
    let [(_, run)] = &created(plan)[..] else { panic!() };
    assert_eq!(
        run.metadata.labels.as_ref().unwrap()["hookrun-type"],
        "pre-delete-step"
    );
}

/// The HookRun of a selected pod after this many negative measurements.
fn hook_of_selected(object: &GameDeployment, pods: &[Pod], at: usize, phase: Phase, failed: i64) -> Run {
    let made = created(decided(object, pods, &[]));
    let mut runs = made.into_iter().map(|(_, run)| run);
    let name = format!("pre-delete-hook-old-{at}-ask");
    let mut run = runs
        .find(|run| run.metadata.name.as_deref() == Some(&name))
        .unwrap();
    finish(&mut run, "healthy", phase, 0);
    run.metadata.uid = Some(format!("hook-{at}"));
    run.status.as_mut().unwrap().metric_results[0].failed = failed;
    Run::read(&run)
}

#[test]
fn an_idle_pod_takes_the_place_of_a_selected_one_that_turned_out_busy() {
    let (object, mut all) = (game(2, &[]), pods(3));
    let idle = scouts(&object, &all, &[(2, Phase::Successful)]);
    all[1] = selected(1);
    for (phase, failed, exchanged) in [
        (Phase::Running, 0, false),
        (Phase::Running, 1, true),
        (Phase::Failed, 1, true),
    ] {
        let hook = hook_of_selected(&object, &all, 1, phase, failed);
        let runs = [idle.clone(), vec![hook]].concat();
        let wanted: &[&str] = if exchanged {
            &["clear fleet-1", "select fleet-2"]
        } else {
            &[]
        };
        assert_eq!(steps(&decided(&object, &all, &runs)), wanted, "{phase} {failed}");
    }
}

#[test]
fn a_half_done_exchange_goes_on() {
    let (object, mut all) = (game(2, &[]), pods(3));
    all[1] = selected(1);
    let hook = hook_of_selected(&object, &all, 1, Phase::Failed, 1);
    all[2] = costing(
        2,
        &[
            (MARK, json!("true")),
            (CHOSEN, json!("delete@2024-05-02T00:00:00Z")),
        ],
    );
    let plan = decided(&object, &all, std::slice::from_ref(&hook));
    assert_eq!(steps(&plan), ["clear fleet-1"]);
    all[1] = costing(1, &[]);
    assert_eq!(steps(&decided(&object, &all, &[hook])), ["end hook-1"]);
}

#[test]
fn a_busy_selected_pod_stays_selected_while_no_other_is_idle() {
    let (object, mut all) = (game(2, &[]), pods(3));
    all[1] = selected(1);
    let hook = hook_of_selected(&object, &all, 1, Phase::Running, 3);
    let plan = decided(&object, &all, &[hook]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((2, 1, 0)));
    assert_eq!(scouted(plan), [0, 2]);
}

#[test]
fn candidates_limits_the_scouts_and_failed_ones_take_no_place() {
    let over = [("/spec/scaleStrategy/firstIdle/candidates", json!(2))];
    let (object, all) = (game(9, &over), pods(10));
    assert_eq!(scouted(decided(&object, &all, &[])), [0, 1]);
    let whole = game(9, &[]);
    let runs = scouts(&whole, &all, &[(0, Phase::Failed), (1, Phase::Running)]);
    let plan = decided(&object, &all, &runs);
    assert_eq!((steps(&plan), scouted(plan)), (vec![], vec![2]));
    // At least as many as must go.
    let over = [("/spec/scaleStrategy/firstIdle/candidates", json!(2))];
    assert_eq!(scouted(decided(&game(6, &over), &all, &[])), [0, 1, 2, 3]);
    let runs = scouts(&whole, &all, &[5, 7, 9].map(|at| (at, Phase::Running)));
    let plan = decided(&object, &all, &runs);
    assert_eq!(
        (steps(&plan), scouted(plan)),
        (vec!["end scout-9".to_owned()], vec![])
    );
}

#[test]
fn pods_whose_scouts_failed_are_selected_if_the_others_are_too_few() {
    let (object, all) = (game(2, &[]), pods(5));
    let failed = [0, 1, 3].map(|at| (at, Phase::Failed));
    let plan = decided(&object, &all, &scouts(&object, &all, &failed));
    // The scout of the pod that is selected now ends.
    assert_eq!(
        steps(&plan),
        ["end scout-0", "select fleet-0"],
        "two may be idle, three must go"
    );
    assert_eq!(progress(&plan), Some((2, 1, 2)));
}

#[test]
fn a_scout_that_nothing_measures_keeps_its_place_and_its_pod_is_selected_and_reported() {
    let over = [("/spec/scaleStrategy/firstIdle/candidates", json!(1))];
    let (object, all) = (game(9, &over), pods(10));
    let mut runs = scouts(&object, &all, &[(0, Phase::Running)]);
    runs[0].not_taken_up_at = Some("2024-05-31T00:00:00Z".parse().unwrap());
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["end scout-0", "select fleet-0"]);
    runs[0].not_taken_up_at = Some("2024-06-01T00:00:10Z".parse().unwrap());
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(plan.wake, runs[0].not_taken_up_at);
}

#[test]
fn a_scout_that_has_lost_its_owner_is_replaced() {
    let (object, all) = (game(1, &[]), pods(2));
    let mut runs = scouts(&object, &all, &[(0, Phase::Successful)]);
    runs[0].controller = None;
    let plan = crate::samples::decided_beside(&object, &all, &[], runs);
    assert_eq!(
        (steps(&plan), scouted(plan)),
        (vec!["end scout-0".to_owned()], vec![1])
    );
}

#[test]
fn retry_deletes_failed_scouts_before_new_ones_are_created() {
    let (object, all) = (game(4, &[]), pods(5));
    let runs = scouts(&object, &all, &[(0, Phase::Failed), (1, Phase::Running)]);
    let retried = game(4, &[("/spec/preDeleteUpdateStrategy/retry", json!(true))]);
    let plan = decided(&retried, &all, &runs);
    assert_eq!(
        (steps(&plan), scouted(plan)),
        (vec!["end scout-0".to_owned()], vec![])
    );
}

#[test]
fn a_stale_scout_is_replaced() {
    let (object, mut all) = (game(1, &[]), pods(2));
    let runs = scouts(&object, &all, &[(0, Phase::Successful), (1, Phase::Running)]);
    let restarted = json!([crate::samples::status("two")]);
    all[0] = costing(0, &[("/status/containerStatuses", restarted)]);
    let plan = decided(&object, &all, &runs);
    assert_eq!(
        (steps(&plan), scouted(plan)),
        (vec!["end scout-0".to_owned()], vec![])
    );
}

#[test]
fn pods_that_need_no_hook_are_selected_first() {
    let (object, mut all) = (game(4, &[]), pods(5));
    all[4] = costing(4, &[("/spec/nodeName", Value::Null)]);
    let plan = decided(&object, &all, &[]);
    assert_eq!(
        (steps(&plan), scouted(plan)),
        (vec!["delete fleet-4".to_owned()], vec![])
    );
}

#[test]
fn without_a_choice_or_without_a_hook_pods_are_selected_in_deletion_order() {
    let all = pods(3);
    let selects = |plan: Plan| (steps(&plan), progress(&plan));
    let every = ["select fleet-0", "select fleet-1", "select fleet-2"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(selects(decided(&game(0, &[]), &all, &[])), (every, None));
    let no_hook = game(2, &[("/spec/preDeleteUpdateStrategy", Value::Null)]);
    assert_eq!(
        selects(decided(&no_hook, &all, &[])),
        (vec!["delete fleet-0".to_owned()], None)
    );
    let named = game(2, &[("/spec/scaleStrategy/podsToDelete", json!(["fleet-1"]))]);
    assert_eq!(
        selects(decided(&named, &all, &[])),
        (vec!["select fleet-1".to_owned()], None)
    );
}

#[test]
fn all_scouts_end_when_no_pod_must_go() {
    let (object, all) = (game(2, &[]), pods(3));
    let runs = scouts(
        &object,
        &all,
        &[(0, Phase::Running), (1, Phase::Failed), (2, Phase::Successful)],
    );
    let plan = decided(&game(3, &[]), &all, &runs);
    assert_eq!(steps(&plan), ["end scout-0", "end scout-1", "end scout-2"]);
    assert_eq!(progress(&plan), None);
}

#[test]
fn surplus_pods_that_are_not_selected_yet_are_not_updated() {
    let update = json!({ "type": "RollingUpdate", "partition": 2, "maxUnavailable": 1 });
    let plan = decided(&game(2, &[("/spec/updateStrategy", update)]), &pods(3), &[]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(scouted(plan), [0, 1, 2]);
}

#[test]
fn an_idle_pod_that_the_budget_keeps_takes_no_place_of_one_that_can_go() {
    let update = json!({ "partition": 100, "maxUnavailable": 1 });
    let object = game(2, &[("/spec/updateStrategy", update)]);
    let not_ready =
        json!([{ "type": "Ready", "status": "False", "lastTransitionTime": "2024-01-01T00:02:00Z" }]);
    let unready = |at| costing(at, &[("/status/conditions", not_ready.clone())]);
    // The floor is one available pod.
    let mut all = vec![costing(0, &[]), unready(1), unready(2)];
    let runs = scouts(
        &object,
        &all,
        &[(0, Phase::Successful), (1, Phase::Running), (2, Phase::Running)],
    );
    assert_eq!(steps(&decided(&object, &all, &runs)), [""; 0]);
    all[0] = selected(0);
    let runs = scouts(&object, &all, &[(1, Phase::Successful), (2, Phase::Running)]);
    assert_eq!(
        steps(&decided(&object, &all, &runs)),
        ["clear fleet-0", "select fleet-1"]
    );
}

#[test]
fn a_busy_named_pod_keeps_no_slot_from_an_idle_one() {
    let update = json!({ "partition": 100, "maxUnavailable": 1 });
    let scale = json!({ "selectionPolicy": "FirstIdle", "podsToDelete": ["fleet-0"] });
    let over = [("/spec/updateStrategy", update), ("/spec/scaleStrategy", scale)];
    let object = game(3, &over);
    let not_ready =
        json!([{ "type": "Ready", "status": "False", "lastTransitionTime": "2024-01-01T00:02:00Z" }]);
    let unready = |at| costing(at, &[("/status/conditions", not_ready.clone())]);
    // The floor is two available pods.
    let mut all = [pods(3), vec![unready(3), unready(4)]].concat();
    let phases = [
        (1, Phase::Successful),
        (2, Phase::Running),
        (3, Phase::Running),
        (4, Phase::Running),
    ];
    let idle = scouts(&object, &all, &phases);
    all[0] = selected(0);
    for (failed, steps_of_plan) in [(0, &[][..]), (1, &["select fleet-1"])] {
        let hook = hook_of_selected(&object, &all, 0, Phase::Running, failed);
        let runs = [idle.clone(), vec![hook]].concat();
        assert_eq!(steps(&decided(&object, &all, &runs)), steps_of_plan, "{failed}");
    }
}

#[test]
fn a_pod_whose_hook_cannot_run_is_no_candidate() {
    let (object, mut all) = (game(2, &[]), pods(3));
    all[0] = selected(0);
    let mut stuck = hook_of_selected(&object, &all, 0, Phase::Failed, 1);
    stuck.terminating = true;
    all[0] = costing(0, &[]);
    let plan = decided(&object, &all, &[stuck]);
    assert_eq!((steps(&plan), scouted(plan)), (vec![], vec![1, 2]));
}

#[test]
fn pods_that_wait_for_their_update_are_candidates() {
    let update = json!({ "type": "RollingUpdate", "maxUnavailable": 1 });
    let object = game(4, &[("/spec/updateStrategy", update)]);
    // One pod is updated at a time; the others wait.
    assert_eq!(scouted(decided(&object, &pods(5), &[])).len(), 4);
}

#[test]
fn too_few_candidates_of_one_revision_are_not_made_up_for_by_the_other() {
    let update = json!({ "partition": 1, "maxUnavailable": 9 });
    let object = game(3, &[("/spec/updateStrategy", update)]);
    let updated = |at| costing(at, &[("/metadata/labels/controller-revision-hash", json!("new"))]);
    let all: Vec<Pod> = (0..2)
        .map(|at| costing(at, &[]))
        .chain((2..5).map(updated))
        .collect();
    let all_scouts = scouts(
        &object,
        &all,
        &[(0, Phase::Failed), (1, Phase::Failed), (2, Phase::Running)],
    );
    assert_eq!(
        steps(&decided(&object, &all, &all_scouts)),
        ["end scout-0", "select fleet-0"]
    );
}

#[test]
fn a_further_negative_measurement_changes_no_run() {
    let (object, mut all) = (game(1, &[]), pods(2));
    all[0] = selected(0);
    let [none, one, two] = [0, 1, 2].map(|failed| hook_of_selected(&object, &all, 0, Phase::Running, failed));
    assert_ne!(none, one);
    assert_eq!(one, two, "a decision follows every change of a run");
}
