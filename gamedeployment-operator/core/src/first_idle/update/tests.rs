//! Decisions with the selection policy `FirstIdle` for updates.

use serde_json::{Value, json};
use shared_api::game_deployment::{FirstIdleStatus, IdleSearchStatus};
use shared_api::{GameDeployment, HookRun, Phase};

use crate::first_idle::tests::{CHOSEN, MARK, costing, pods};
use crate::first_idle::{SearchProgress, Searches};
use crate::gate::{Measured, Run};
use crate::hook_kind::HookKind;
use crate::plan::{Action, GatedWrite, Plan};
use crate::pod::Pod;
use crate::samples::{
    FakeCluster, created_runs, decided, decided_beside, decided_in, finish, now, object, status,
};

const TYPE: &str = "/spec/updateStrategy/type";
const POLICY: &str = "/spec/updateStrategy/selectionPolicy";
const CANDIDATES: &str = "/spec/updateStrategy/firstIdle/candidates";
const PARTITION: &str = "/spec/updateStrategy/partition";
const PRE_DELETE: &str = "/spec/preDeleteUpdateStrategy";
const PRE_INPLACE: &str = "/spec/preInplaceUpdateStrategy";
const REVISION: &str = "/metadata/labels/controller-revision-hash";
const CONDITIONS: &str = "/status/conditions";
const SINCE: &str = "recreate:new@2024-05-01T00:00:00Z";

fn hook() -> Value {
    json!({ "hook": { "templateName": "ask" } })
}

/// A game that recreates idle pods first, at most `unavailable` at a time.
fn game(replicas: i32, unavailable: i32, over: &[(&str, Value)]) -> GameDeployment {
    let strategy = json!({ "maxUnavailable": unavailable, "selectionPolicy": "FirstIdle" });
    let mut all = vec![
        ("/spec/replicas", json!(replicas)),
        (PRE_DELETE, hook()),
        ("/spec/updateStrategy", strategy),
    ];
    all.extend_from_slice(over);
    object(&all)
}

/// A game that updates idle pods in place first, after their `PreInplace` hook.
fn in_place(replicas: i32, unavailable: i32, over: &[(&str, Value)]) -> GameDeployment {
    let mut all = vec![
        (TYPE, json!("InplaceUpdate")),
        (PRE_DELETE, Value::Null),
        (PRE_INPLACE, hook()),
    ];
    all.extend_from_slice(over);
    game(replicas, unavailable, &all)
}

/// A game with two surplus pods that deletes and updates idle pods first.
fn shrinking(over: &[(&str, Value)]) -> GameDeployment {
    let mut all = vec![("/spec/scaleStrategy/selectionPolicy", json!("FirstIdle"))];
    all.extend_from_slice(over);
    game(3, 1, &all)
}

/// A pod whose selection for the update is recorded.
fn selected(at: usize) -> Pod {
    costing(at, &[(MARK, json!("true")), (CHOSEN, json!(SINCE))])
}

fn all_selected(count: usize) -> Vec<Pod> {
    (0..count).map(selected).collect()
}

fn updated(at: usize) -> Pod {
    costing(at, &[(REVISION, json!("new"))])
}

fn not_ready_since(since: &str) -> Value {
    json!([{ "type": "Ready", "status": "False", "lastTransitionTime": since }])
}

/// Five pods, of which one is selected for the update.
fn five_with_selected(at: usize) -> Vec<Pod> {
    let mut all = pods(5);
    all[at] = selected(at);
    all
}

/// The HookRun that a decision creates for a pod.
fn run_of(object: &GameDeployment, pods: &[Pod], at: usize) -> HookRun {
    let uid = format!("uid-fleet-{at}");
    let is_its = |run: &HookRun| run.metadata.labels.as_ref().unwrap()["tkex.tencent.com/pod-uid"] == uid;
    created_runs(decided(object, pods, &[])).find(is_its).unwrap()
}

fn in_phase(mut run: HookRun, phase: Phase) -> HookRun {
    finish(&mut run, "healthy", phase, i64::from(phase == Phase::Successful));
    run.metadata.uid = run.metadata.name.clone();
    run
}

/// The scout of a pod, in this phase. It has measured nothing yet, unless it has ended.
fn scout(at: usize, phase: Phase) -> Run {
    Run::read(&in_phase(run_of(&game(10, 9, &[]), &pods(10), at), phase))
}

fn scouts(phases: &[(usize, Phase)]) -> Vec<Run> {
    phases.iter().map(|(at, phase)| scout(*at, *phase)).collect()
}

/// The own HookRun of a selected pod, in this phase.
fn own(at: usize, phase: Phase) -> Run {
    let ranked = game(10, 10, &[(POLICY, json!("Ranked"))]);
    Run::read(&in_phase(run_of(&ranked, &all_selected(10), at), phase))
}

/// The scout of a pod to update in place.
fn scout_in_place(at: usize, phase: Phase) -> Run {
    Run::read(&in_phase(run_of(&in_place(10, 9, &[]), &pods(10), at), phase))
}

/// The own HookRun of a pod to update in place.
fn own_in_place(at: usize, phase: Phase) -> Run {
    let ranked = in_place(10, 10, &[(POLICY, json!("Ranked"))]);
    Run::read(&in_phase(run_of(&ranked, &pods(10), at), phase))
}

/// Returns the run after a measurement that found the pod busy.
fn busy(run: Run) -> Run {
    Run {
        measured: Measured::Negative,
        ..run
    }
}

/// Returns the run with a success that is not too old.
fn fresh(run: Run) -> Run {
    Run {
        completed: Some(now()),
        ..run
    }
}

/// Returns the run with an overdue measurement.
fn overdue(run: Run) -> Run {
    Run {
        not_taken_up_at: Some(now()),
        ..run
    }
}

/// The scout of a pod whose hook cannot succeed.
fn troubled(at: usize) -> Run {
    let mut run = in_phase(run_of(&game(10, 9, &[]), &pods(10), at), Phase::Running);
    run.status.as_mut().unwrap().reason = Some("HookCannotSucceed".to_owned());
    Run::read(&run)
}

/// All writes of a plan, each as `VERB NAME`, sorted. Names of HookRuns consist of the kind and the pod's number.
fn steps(plan: &Plan) -> Vec<String> {
    let short = |name: &str| {
        let name = name.replace("-hook-old", "").replace("-hook-new", "");
        name.replace("-ask", "")
    };
    let step = |action: &Action| match action {
        Action::RecordSelection(pod, text, _) => match text.split('@').next() {
            Some("recreate:new") => format!("select {}", pod.name),
            other => format!("select {} to {}", pod.name, other.unwrap_or_default()),
        },
        Action::ClearSelection(pod, _) => format!("clear {}", pod.name),
        Action::CreateRun(run) => format!("run {}", short(run.name())),
        Action::DeleteRun(run) => format!("end {}", short(&run.name)),
        Action::Gated(GatedWrite::DeletePod(delete)) => format!("delete {}", delete.pod().name),
        Action::Gated(write) => format!("write {}", write.pod().name),
        other => other.kind().as_str().to_owned(),
    };
    let mut steps: Vec<String> = plan.actions.iter().map(step).collect();
    steps.sort();
    steps
}

/// Candidates, selected pods and needed pods of the search for pods to update.
fn progress(plan: &Plan) -> Option<(i32, i32, i32)> {
    let search = plan.status.as_ref()?.first_idle?.update?;
    Some((search.candidates, search.selected, search.needed))
}

/// A condition as `REASON: MESSAGE`; empty if it is not set.
fn condition(plan: &Plan, kind: &str) -> String {
    let conditions = &plan.status.as_ref().unwrap().conditions;
    let found = conditions.iter().find(|known| known.type_ == kind);
    found.map_or_else(String::new, |known| {
        format!("{}: {}", known.reason, known.message)
    })
}

#[test]
fn scouts_are_created_for_twice_the_needed_pods_and_one_more_for_each_busy_one() {
    for (unavailable, candidates, unmeasured, measured, created) in [
        (1, json!("100%"), vec![], vec![], vec![0, 1]),
        (2, json!("100%"), vec![], vec![], vec![0, 1, 2, 3]),
        (2, json!("100%"), vec![0], vec![1, 2], vec![3, 4, 5, 6, 7]),
        (3, json!("100%"), vec![0, 1, 2, 7, 8, 9], vec![], vec![]),
        (2, json!("40%"), vec![0], vec![1, 2], vec![3]),
        (2, json!(3), vec![0], vec![1, 2], vec![]),
        // Never fewer than needed.
        (3, json!(1), vec![], vec![], vec![0, 1, 2]),
    ] {
        let object = game(10, unavailable, &[(CANDIDATES, candidates.clone())]);
        let mut runs: Vec<Run> = unmeasured.iter().map(|at| scout(*at, Phase::Running)).collect();
        runs.extend(measured.iter().map(|at| busy(scout(*at, Phase::Running))));
        let plan = decided(&object, &pods(10), &runs);
        let writes: Vec<String> = created.iter().map(|at| format!("run scout-{at}")).collect();
        let about = format!("{unavailable} {candidates} {unmeasured:?} {measured:?}");
        assert_eq!(steps(&plan), writes, "{about}");
        let all = i32::try_from(runs.len() + created.len()).unwrap();
        assert_eq!(progress(&plan), Some((all, 0, unavailable)), "{about}");
    }
}

#[test]
fn scouts_beyond_the_limit_end() {
    let object = game(10, 1, &[(CANDIDATES, json!(2))]);
    let runs = scouts(&[3, 5, 8].map(|at| (at, Phase::Running)));
    let plan = decided(&object, &pods(10), &runs);
    assert_eq!(steps(&plan), ["end scout-8"]);
    assert_eq!(progress(&plan), Some((2, 0, 1)));
}

#[test]
fn failed_scouts_take_no_place() {
    let failed = scouts(&[(0, Phase::Failed), (1, Phase::Failed)]);
    let plan = decided(&game(5, 1, &[(CANDIDATES, json!(2))]), &pods(5), &failed);
    assert_eq!(steps(&plan), ["run scout-2", "run scout-3"]);
    assert_eq!(progress(&plan), Some((2, 0, 1)));
}

#[test]
fn overdue_scouts_take_places() {
    let runs = [overdue(scout(0, Phase::Running)), busy(scout(1, Phase::Running))];
    for (candidates, created) in [(2, vec![]), (3, vec!["run scout-2"])] {
        let plan = decided(&game(5, 1, &[(CANDIDATES, json!(candidates))]), &pods(5), &runs);
        assert_eq!(steps(&plan), created);
        assert_eq!(progress(&plan), Some((candidates, 0, 1)));
    }
}

/// If some scouts bring no verdict, the hooks of all pods may have the same problem.
#[test]
fn pods_without_scouts_do_not_count_as_possibly_idle_once_the_first_scouts_bring_no_verdict() {
    let [one, two] = [troubled(0), overdue(scout(1, Phase::Running))];
    let running = scout(2, Phase::Running);
    let object = game(5, 1, &[]);
    for (runs, expected) in [
        (
            vec![one.clone()],
            vec!["run scout-1", "run scout-2", "run scout-3"],
        ),
        (
            vec![one.clone(), two.clone()],
            vec!["run scout-2", "run scout-3", "select fleet-0"],
        ),
        (vec![one, two, running], vec!["run scout-3"]),
    ] {
        assert_eq!(
            steps(&decided(&object, &pods(5), &runs)),
            expected,
            "{}",
            runs.len()
        );
    }
}

#[test]
fn a_decision_follows_when_a_scout_becomes_overdue() {
    let mut run = scout(0, Phase::Running);
    run.not_taken_up_at = Some("2024-06-01T00:00:10Z".parse().unwrap());
    let due = run.not_taken_up_at;
    assert_eq!(decided(&game(5, 1, &[]), &pods(5), &[run]).wake, due);
}

#[test]
fn while_no_slot_is_free_no_scout_is_created_and_all_go_on() {
    let object = game(5, 1, &[]);
    let runs = [
        own(0, Phase::Running),
        busy(scout(1, Phase::Running)),
        scout(2, Phase::Running),
    ];
    let plan = decided(&object, &five_with_selected(0), &runs);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((2, 1, 0)));
    let message = condition(&plan, "Progressing");
    let wait = "running the hook of fleet-0; the next pods are waiting because maxUnavailable is reached";
    assert!(message.contains(wait), "{message}");
    assert!(!message.contains("more idle"), "{message}");
    // The number of busy candidates makes no difference.
    let plan = decided(&object, &five_with_selected(0), &runs[..2]);
    assert_eq!(steps(&plan), [""; 0]);
}

#[test]
fn a_surge_pod_frees_a_slot_once_it_is_available() {
    let object = game(5, 0, &[("/spec/updateStrategy/maxSurge", json!(1))]);
    let mut all = pods(5);
    all.push(updated(5));
    let plan = decided(&object, &all, &[]);
    assert_eq!(steps(&plan), ["run scout-0", "run scout-1"]);
    assert_eq!(progress(&plan), Some((2, 0, 1)));
    let starting = not_ready_since("2024-01-01T00:00:10Z");
    all[5] = costing(5, &[(REVISION, json!("new")), (CONDITIONS, starting)]);
    let plan = decided(&object, &all, &[]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((0, 0, 0)));
}

#[test]
fn without_a_search_all_scouts_are_deleted() {
    let status = |timer: Value| {
        let status = json!({ "currentRevision": "old", "updateRevision": "new", "rolloutTimer": timer });
        ("/status", status)
    };
    let exceeded = json!({ "revision": "new", "elapsedMilliseconds": 60_000 });
    let recreate = json!({ "type": "Recreate", "selectionPolicy": "FirstIdle" });
    let select = [
        "select fleet-0",
        "select fleet-1",
        "select fleet-2",
        "select fleet-3",
        "select fleet-4",
    ];
    for (name, over, writes) in [
        ("Ranked", vec![(POLICY, json!("Ranked"))], vec![select[0]]),
        ("no hook", vec![(PRE_DELETE, Value::Null)], vec!["delete fleet-0"]),
        (
            "paused",
            vec![("/spec/updateStrategy/paused", json!(true))],
            vec![],
        ),
        ("partition", vec![(PARTITION, json!(5))], vec![]),
        ("OnDelete", vec![(TYPE, json!("OnDelete"))], vec![]),
        (
            "HotPatchUpdate",
            vec![(TYPE, json!("HotPatchUpdate"))],
            vec!["write fleet-0"],
        ),
        (
            "Recreate",
            vec![("/spec/updateStrategy", recreate), status(Value::Null)],
            select.to_vec(),
        ),
        (
            "aborted",
            vec![
                ("/spec/updateStrategy/timeoutSeconds", json!(60)),
                status(exceeded),
            ],
            vec![],
        ),
    ] {
        let object = game(5, 1, &over);
        let plan = decided(&object, &pods(5), &[]);
        assert_eq!(steps(&plan), writes, "{name}");
        assert_eq!(plan.status.unwrap().first_idle, None, "{name}");
        let runs = scouts(&[(0, Phase::Running), (1, Phase::Successful), (2, Phase::Failed)]);
        let plan = decided(&object, &pods(5), &runs);
        let mut writes = writes;
        writes.extend(["end scout-0", "end scout-1", "end scout-2"]);
        writes.sort_unstable();
        assert_eq!(steps(&plan), writes, "{name}");
        assert_eq!(plan.status.unwrap().first_idle, None, "{name}");
    }
}

#[test]
fn a_refused_post_inplace_hook_ends_the_search() {
    let object = in_place(5, 2, &[("/spec/postInplaceUpdateStrategy", hook())]);
    let conditions = ["Ready", "InPlaceUpdateReady"]
        .map(|name| json!({ "type": name, "status": "True", "lastTransitionTime": "2024-01-01T00:01:00Z" }));
    let record = json!({ "revision": "new", "lastContainerStatuses": {} }).to_string();
    let mut all = pods(5);
    all[4] = costing(
        4,
        &[
            (REVISION, json!("new")),
            ("/metadata/annotations/inplace-update-state", json!(record)),
            (CONDITIONS, json!(conditions)),
        ],
    );
    let mut runs = vec![
        scout_in_place(0, Phase::Running),
        scout_in_place(1, Phase::Running),
    ];
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["run post-inplace-4"]);
    assert_eq!(
        progress(&plan),
        Some((2, 0, 1)),
        "the pod to confirm keeps a slot"
    );
    runs.push(Run::read(&in_phase(run_of(&object, &all, 4), Phase::Failed)));
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["end scout-inplace-0", "end scout-inplace-1"]);
    assert_eq!(plan.status.unwrap().first_idle, None);
}

#[test]
fn before_the_dry_run_of_a_recreation_no_scout_is_created_and_all_go_on() {
    let cluster = FakeCluster::with_hook();
    let recreated = |runs: &[Run]| decided_in(&cluster, None, &game(5, 1, &[]), &pods(5), runs);
    let plan = recreated(&[]);
    assert_eq!(steps(&plan), ["try_pod"]);
    assert_eq!(progress(&plan), None);
    let plan = recreated(&[scout(0, Phase::Running), scout(1, Phase::Successful)]);
    assert_eq!(steps(&plan), ["try_pod"]);
    assert_eq!(progress(&plan), Some((1, 0, 0)));
    // An update in place creates no pod.
    let plan = decided_in(&cluster, None, &in_place(5, 1, &[]), &pods(5), &[]);
    assert_eq!(steps(&plan), ["run scout-inplace-0", "run scout-inplace-1"]);
}

#[test]
fn a_scout_runs_the_hook_of_the_update_and_differs_in_name_type_and_intent() {
    let pre_delete = (["scout-step", "Scout"], HookKind::PreDelete);
    let pre_inplace = (["scout-inplace-step", "ScoutInplace"], HookKind::PreInplace);
    let (recreation, update) = ("scout-hook-old-0-ask", "scout-inplace-hook-old-0-ask");
    let (set, unset) = (hook, || Value::Null);
    for (type_, before_deletion, before_update, name, (kinds, kind)) in [
        ("RollingUpdate", set(), unset(), recreation, pre_delete),
        ("RollingUpdate", set(), set(), recreation, pre_delete),
        ("RollingUpdate", unset(), set(), recreation, pre_inplace),
        ("InplaceUpdate", set(), unset(), update, pre_delete),
        ("InplaceUpdate", set(), set(), update, pre_inplace),
        ("InplaceUpdate", unset(), set(), update, pre_inplace),
    ] {
        let mut over = vec![
            (TYPE, json!(type_)),
            (PRE_DELETE, before_deletion),
            (PRE_INPLACE, before_update),
        ];
        let made: Vec<HookRun> = created_runs(decided(&game(5, 1, &over), &pods(5), &[])).collect();
        assert_eq!(made.len(), 2, "{type_} {name}");
        let metadata = &made[0].metadata;
        assert_eq!(metadata.name.as_deref(), Some(name), "{type_}");
        let labels = metadata.labels.as_ref().unwrap();
        let found = ["hookrun-type", "gamedeployment-type"].map(|key| labels[key].as_str());
        assert_eq!(found, kinds, "{type_}");
        assert_eq!(labels["tkex.tencent.com/pod-uid"], "uid-fleet-0");
        let notes = metadata.annotations.as_ref().unwrap();
        assert_eq!(notes["tkex.tencent.com/intent"], "scout");
        for gate_only in ["tkex.tencent.com/choice", "tkex.tencent.com/question"] {
            assert!(!notes.contains_key(gate_only), "{type_} {name}: {gate_only}");
        }
        let run = Run::read(&made[0]);
        assert_eq!((run.kind, run.scout), (None, Some(kind)), "{type_} {name}");
        // It measures what the own hook will measure. Only a recreation needs a recorded selection.
        over.push((POLICY, json!("Ranked")));
        let ranked = game(5, 1, &over);
        let own = [pods(5), all_selected(5)].map(|pods| created_runs(decided(&ranked, &pods, &[])).next());
        let own = own.into_iter().flatten().next().unwrap();
        assert_eq!(own.spec, made[0].spec, "{type_} {name}");
    }
}

#[test]
fn an_idle_pod_is_selected_whatever_its_rank_and_updated_after_a_success_of_its_own_hook() {
    let object = game(5, 1, &[]);
    let others = [scout(0, Phase::Running), busy(scout(1, Phase::Running))];
    let with = |more: &[Run]| [&others[..], more].concat();
    let idle = scout(3, Phase::Successful);
    let plan = decided(&object, &pods(5), &with(std::slice::from_ref(&idle)));
    assert_eq!(steps(&plan), ["select fleet-3"]);
    assert_eq!(progress(&plan), Some((2, 1, 0)));
    let recorded = five_with_selected(3);
    let decided = |more: &[Run]| decided(&object, &recorded, &with(more));
    // The own hook takes the place of the scout.
    let plan = decided(&[idle]);
    assert_eq!(steps(&plan), ["end scout-3", "run pre-delete-3"]);
    assert_eq!(progress(&plan), Some((2, 1, 0)));
    let plan = decided(&[own(3, Phase::Running)]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((2, 1, 0)));
    let plan = decided(&[fresh(own(3, Phase::Successful))]);
    assert_eq!(steps(&plan), ["delete fleet-3"]);
}

#[test]
fn an_idle_pod_is_updated_in_place_without_a_recorded_selection() {
    let object = in_place(5, 1, &[]);
    let idle = scout_in_place(3, Phase::Successful);
    let plan = decided(&object, &pods(5), std::slice::from_ref(&idle));
    assert_eq!(steps(&plan), ["run pre-inplace-3"]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
    let plan = decided(&object, &pods(5), &[idle, own_in_place(3, Phase::Running)]);
    assert_eq!(steps(&plan), ["end scout-inplace-3"]);
    let own = fresh(own_in_place(3, Phase::Successful));
    assert_eq!(steps(&decided(&object, &pods(5), &[own])), ["write fleet-3"]);
}

#[test]
fn a_scout_alone_lets_no_pod_be_changed() {
    let is_changed = |object: &GameDeployment, pods: &[Pod], runs: &[Run]| {
        let plan = decided(object, pods, runs);
        plan.actions
            .iter()
            .any(|action| matches!(action, Action::Gated(_)))
    };
    let scouts: Vec<Run> = (0..5).map(|at| fresh(scout(at, Phase::Successful))).collect();
    let in_place_scouts: Vec<Run> = (0..5)
        .map(|at| fresh(scout_in_place(at, Phase::Successful)))
        .collect();
    for unavailable in 1..=4 {
        let (recreated, changed) = (game(5, unavailable, &[]), in_place(5, unavailable, &[]));
        assert!(!is_changed(&recreated, &pods(5), &scouts), "{unavailable}");
        assert!(
            !is_changed(&recreated, &all_selected(5), &scouts),
            "{unavailable}"
        );
        assert!(!is_changed(&changed, &pods(5), &in_place_scouts), "{unavailable}");
        for (phase, is_allowed) in [
            (Phase::Running, false),
            (Phase::Failed, false),
            (Phase::Successful, true),
        ] {
            let runs = [&scouts[..], &[fresh(own(0, phase))]].concat();
            assert_eq!(
                is_changed(&recreated, &all_selected(5), &runs),
                is_allowed,
                "{unavailable} {phase}"
            );
            let runs = [&in_place_scouts[..], &[fresh(own_in_place(0, phase))]].concat();
            assert_eq!(
                is_changed(&changed, &pods(5), &runs),
                is_allowed,
                "{unavailable} {phase}"
            );
        }
    }
}

#[test]
fn a_pod_selected_before_goes_first_then_the_latest_success() {
    let at_minute = |at: usize, minute: Option<i32>| Run {
        completed: minute.map(|minute| format!("2024-05-31T23:{minute}:00Z").parse().unwrap()),
        ..scout(at, Phase::Successful)
    };
    let three = [(1, Some(10)), (3, Some(20)), (4, None)];
    for (unavailable, recorded, idle, writes) in [
        (1, None, three, vec!["select fleet-3"]),
        (2, None, three, vec!["select fleet-1", "select fleet-3"]),
        (
            3,
            None,
            three,
            vec!["select fleet-1", "select fleet-3", "select fleet-4"],
        ),
        (1, Some(1), three, vec!["end scout-1", "run pre-delete-1"]),
        (1, Some(4), three, vec!["end scout-4", "run pre-delete-4"]),
        (
            2,
            Some(4),
            three,
            vec!["end scout-4", "run pre-delete-4", "select fleet-3"],
        ),
        // Deletion order otherwise.
        (
            1,
            None,
            [(4, Some(10)), (2, Some(10)), (0, None)],
            vec!["select fleet-2"],
        ),
    ] {
        let runs: Vec<Run> = idle.iter().map(|(at, minute)| at_minute(*at, *minute)).collect();
        let all = recorded.map_or_else(|| pods(5), five_with_selected);
        let plan = decided(&game(5, unavailable, &[]), &all, &runs);
        assert_eq!(steps(&plan), writes, "{unavailable} {recorded:?}");
        assert_eq!(
            progress(&plan),
            Some((0, unavailable, 0)),
            "{unavailable} {recorded:?}"
        );
    }
}

#[test]
fn a_pod_selected_with_the_other_policy_stays_selected_and_has_no_scout() {
    let plan = decided(&game(5, 1, &[]), &five_with_selected(1), &[]);
    assert_eq!(steps(&plan), ["run pre-delete-1"]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
}

#[test]
fn pods_that_go_first_with_the_other_policy_take_slots_before_idle_ones() {
    let unready = not_ready_since("2024-01-01T00:02:00Z");
    let skipped = [(
        "/metadata/annotations/tkex.tencent.com~1skip-hook",
        json!("uid-fleet-4"),
    )];
    let out = ["InPlaceUpdateReady", "Ready"].map(|name| {
        json!({
            "type": name, "status": "False", "message": "new", "lastTransitionTime": "2024-05-31T23:00:00Z",
        })
    });
    let gate = json!([{ "conditionType": "InPlaceUpdateReady" }]);
    let under_way = [("/spec/readinessGates", gate), (CONDITIONS, json!(out))];
    let idle = [scout(0, Phase::Successful)];
    let idle_in_place = [scout_in_place(0, Phase::Successful)];
    for (object, over, runs, write) in [
        (
            game(5, 1, &[]),
            &[(CONDITIONS, unready)][..],
            &idle,
            "select fleet-4",
        ),
        (game(5, 1, &[]), &skipped[..], &idle, "delete fleet-4"),
        (
            in_place(5, 1, &[]),
            &under_way[..],
            &idle_in_place,
            "write fleet-4",
        ),
    ] {
        let mut all = pods(5);
        all[4] = costing(4, over);
        let plan = decided(&object, &all, runs);
        assert_eq!(steps(&plan), [write]);
        assert_eq!(progress(&plan), Some((0, 1, 0)), "{write}");
    }
}

#[test]
fn no_more_pods_are_selected_than_the_partition_leaves() {
    for (partition, unavailable, idle, writes, numbers) in [
        (4, 3, vec![1, 3], vec!["select fleet-1"], (0, 1, 0)),
        (
            3,
            3,
            vec![1, 3],
            vec!["select fleet-1", "select fleet-3"],
            (0, 2, 0),
        ),
        (4, 3, vec![], vec!["run scout-0", "run scout-1"], (2, 0, 1)),
        (3, 1, vec![], vec!["run scout-0", "run scout-1"], (2, 0, 1)),
        (
            2,
            2,
            vec![],
            vec!["run scout-0", "run scout-1", "run scout-2", "run scout-3"],
            (4, 0, 2),
        ),
    ] {
        let object = game(5, unavailable, &[(PARTITION, json!(partition))]);
        let runs: Vec<Run> = idle.iter().map(|at| scout(*at, Phase::Successful)).collect();
        let plan = decided(&object, &pods(5), &runs);
        assert_eq!(steps(&plan), writes, "{partition} {unavailable}");
        assert_eq!(progress(&plan), Some(numbers), "{partition} {unavailable}");
    }
}

#[test]
fn the_last_place_of_a_partition_goes_from_a_busy_pod_to_an_idle_one() {
    let object = game(5, 2, &[(PARTITION, json!(4))]);
    let mut runs = vec![busy(own(1, Phase::Running))];
    let plan = decided(&object, &five_with_selected(1), &runs);
    assert_eq!(steps(&plan), ["run scout-0", "run scout-2"]);
    assert_eq!(progress(&plan), Some((2, 1, 1)));
    runs.push(scout(3, Phase::Successful));
    let plan = decided(&object, &five_with_selected(1), &runs);
    assert_eq!(steps(&plan), ["clear fleet-1", "select fleet-3"]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
}

#[test]
fn the_time_of_a_rollout_stands_still_while_idle_pods_are_searched_for() {
    let timeout = ("/spec/updateStrategy/timeoutSeconds", json!(600));
    let runs = scouts(&[(0, Phase::Running), (1, Phase::Running)]);
    let plan = decided(&game(5, 1, &[timeout]), &pods(5), &runs);
    assert_eq!(progress(&plan), Some((2, 0, 1)));
    let message = condition(&plan, "Progressing");
    assert!(message.contains("the timer is stopped during"), "{message}");
}

#[test]
fn the_last_candidates_are_selected_at_once_without_scouts() {
    let runs = scouts(&[(0, Phase::Running), (1, Phase::Failed)]);
    let plan = decided(&game(2, 2, &[]), &pods(2), &runs);
    let wanted = ["end scout-0", "end scout-1", "select fleet-0", "select fleet-1"];
    assert_eq!(steps(&plan), wanted);
    assert_eq!(progress(&plan), None);
    let last = [updated(0), updated(1), updated(2), costing(3, &[])];
    let plan = decided(&game(4, 1, &[]), &last, &[]);
    assert_eq!(steps(&plan), ["select fleet-3"]);
    assert_eq!(progress(&plan), None);
    // Its hook goes on: no other pod could take its slot.
    let last = [updated(0), updated(1), updated(2), selected(3)];
    let plan = decided(&game(4, 1, &[]), &last, &[busy(own(3, Phase::Running))]);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), None);
}

#[test]
fn a_busy_pod_keeps_its_slot_until_an_idle_one_takes_it() {
    let object = game(5, 1, &[]);
    let all = five_with_selected(1);
    let own = busy(own(1, Phase::Running));
    let with = |more: Vec<Run>| [vec![own.clone()], more].concat();
    let plan = decided(&object, &all, &with(vec![]));
    assert_eq!(steps(&plan), ["run scout-0", "run scout-2"]);
    assert_eq!(progress(&plan), Some((2, 1, 1)));
    let message = condition(&plan, "Progressing");
    let wait = "running the hook of fleet-1; waiting for 1 more idle pod to update: running the hooks of 2 \
                candidates";
    assert!(message.contains(wait), "{message}");
    let found_busy = vec![scout(0, Phase::Running), busy(scout(2, Phase::Running))];
    let plan = decided(&object, &all, &with(found_busy));
    assert_eq!(steps(&plan), ["run scout-3", "run scout-4"]);
    assert_eq!(progress(&plan), Some((4, 1, 1)));
    let found_idle = vec![scout(0, Phase::Running), scout(2, Phase::Successful)];
    let plan = decided(&object, &all, &with(found_idle));
    // Its run is kept until the selection is cleared: otherwise the pod would count as one whose hook is about to run.
    assert_eq!(steps(&plan), ["clear fleet-1", "select fleet-2"]);
    assert_eq!(progress(&plan), Some((1, 1, 0)));
}

#[test]
fn the_run_of_a_pod_that_lost_its_slot_is_deleted_although_a_write_failed() {
    let object = game(5, 1, &[]);
    let runs = [busy(own(1, Phase::Running)), scout(2, Phase::Successful)];
    let mut all = pods(5);
    // The selection of the idle pod is not recorded yet.
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["end pre-delete-1", "select fleet-2"]);
    all[2] = selected(2);
    let plan = decided(&object, &all, &runs);
    assert_eq!(
        steps(&plan),
        ["end pre-delete-1", "end scout-2", "run pre-delete-2"]
    );
}

#[test]
fn the_selection_of_a_pod_that_lost_its_slot_is_cleared_although_a_write_failed() {
    let runs = [busy(own(1, Phase::Running)), scout(2, Phase::Successful)];
    let mut all = five_with_selected(1);
    all[2] = selected(2);
    let plan = decided(&game(5, 1, &[]), &all, &runs);
    assert_eq!(steps(&plan), ["clear fleet-1", "end scout-2", "run pre-delete-2"]);
}

#[test]
fn a_pod_without_a_slot_gets_a_scout_while_another_one_is_free() {
    let runs = [own(2, Phase::Running), scout(0, Phase::Running)];
    let plan = decided(&game(5, 2, &[]), &five_with_selected(2), &runs);
    assert_eq!(steps(&plan), ["run scout-1"]);
    assert_eq!(progress(&plan), Some((2, 1, 1)));
}

#[test]
fn as_many_busy_pods_lose_their_slots_as_idle_ones_are_found() {
    let mut all = five_with_selected(1);
    let idle = scout(4, Phase::Successful);
    let one_busy = [busy(own(1, Phase::Running)), idle.clone()];
    // The idle pod takes the slot that is free.
    let plan = decided(&game(5, 2, &[]), &all, &one_busy);
    assert_eq!(steps(&plan), ["run scout-0", "run scout-2", "select fleet-4"]);
    assert_eq!(progress(&plan), Some((2, 2, 1)));
    all[2] = selected(2);
    let two_busy = [busy(own(1, Phase::Running)), busy(own(2, Phase::Running)), idle];
    let plan = decided(&game(5, 2, &[]), &all, &two_busy);
    let wanted = ["clear fleet-2", "run scout-0", "run scout-3", "select fleet-4"];
    assert_eq!(steps(&plan), wanted);
    assert_eq!(progress(&plan), Some((2, 2, 1)));
}

#[test]
fn a_pod_whose_success_has_expired_keeps_its_turn_although_its_hook_has_found_it_busy_before() {
    let expired = Run {
        completed: Some("2024-05-31T00:00:00Z".parse().unwrap()),
        ..busy(own(1, Phase::Successful))
    };
    let runs = [expired, scout(2, Phase::Successful)];
    let plan = decided(&game(5, 1, &[]), &five_with_selected(1), &runs);
    assert_eq!(steps(&plan), ["end pre-delete-1"]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
    let warned = plan
        .actions
        .iter()
        .any(|action| matches!(action, Action::DeleteRun(run) if run.stale_warning.is_some()));
    assert!(warned);
}

#[test]
fn the_run_of_a_pod_that_lost_the_last_place_is_kept_until_its_selection_is_cleared() {
    let object = game(5, 2, &[(PARTITION, json!(4))]);
    let mut all = five_with_selected(1);
    all[3] = selected(3);
    let runs = [busy(own(1, Phase::Running)), own(3, Phase::Running)];
    let plan = decided(&object, &all, &runs);
    assert_eq!(steps(&plan), ["clear fleet-1"]);
    assert_eq!(progress(&plan), None);
    all[1] = costing(1, &[]);
    assert_eq!(steps(&decided(&object, &all, &runs)), ["end pre-delete-1"]);
}

/// Pods of a revision that is gone cannot be updated in place.
#[test]
fn pods_that_cannot_be_updated_in_place_are_candidates_only_if_too_few_others_are() {
    let fallback = (
        "/spec/updateStrategy/inPlaceUpdateStrategy",
        json!({ "fallback": "Recreate" }),
    );
    for (partition, unavailable, created) in [
        (
            2,
            2,
            vec![
                "run scout-inplace-2",
                "run scout-inplace-3",
                "run scout-inplace-4",
            ],
        ),
        (1, 1, vec!["run scout-inplace-2", "run scout-inplace-3"]),
        (
            1,
            2,
            vec![
                "run scout-hook-gone-0",
                "run scout-inplace-2",
                "run scout-inplace-3",
                "run scout-inplace-4",
            ],
        ),
    ] {
        let more = [
            fallback.clone(),
            (PARTITION, json!(partition)),
            (PRE_DELETE, hook()),
        ];
        let mut all = pods(5);
        for at in [0, 1] {
            all[at] = costing(at, &[(REVISION, json!("gone"))]);
        }
        let plan = decided(&in_place(5, unavailable, &more), &all, &[]);
        assert_eq!(steps(&plan), created, "{partition} {unavailable}");
    }
}

#[test]
fn an_idle_pod_takes_the_slot_of_a_busy_one_for_an_update_in_place() {
    let runs = [
        busy(own_in_place(1, Phase::Running)),
        scout_in_place(3, Phase::Successful),
    ];
    let plan = decided(&in_place(5, 1, &[]), &pods(5), &runs);
    assert_eq!(steps(&plan), ["end pre-inplace-1", "run pre-inplace-3"]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
}

#[test]
fn the_scout_of_a_pod_that_its_own_hook_finds_busy_does_not_count() {
    let runs = [busy(own(1, Phase::Running)), scout(1, Phase::Successful)];
    let plan = decided(&game(5, 1, &[]), &five_with_selected(1), &runs);
    assert_eq!(steps(&plan), ["end scout-1", "run scout-0", "run scout-2"]);
    assert_eq!(progress(&plan), Some((2, 1, 1)));
}

#[test]
fn hopeless_pods_are_selected_only_if_too_few_others_may_be_idle() {
    type Hopeless = fn(usize) -> Run;
    let kinds: [(&str, Hopeless); 3] = [
        ("failed", |at| scout(at, Phase::Failed)),
        ("overdue", |at| overdue(scout(at, Phase::Running))),
        ("troubled", troubled),
    ];
    for (name, hopeless) in kinds {
        let [zero, one, two] = [0, 1, 2].map(hopeless);
        let two_of_three = vec![zero.clone(), one.clone()];
        let with_running = [two_of_three.clone(), scouts(&[(2, Phase::Running)])].concat();
        for (unavailable, runs, writes) in [
            (1, with_running.clone(), vec![]),
            (2, with_running, vec!["select fleet-0"]),
            (
                1,
                vec![zero.clone(), one.clone(), two.clone()],
                vec!["select fleet-0"],
            ),
            (2, vec![zero, one, two], vec!["select fleet-0", "select fleet-1"]),
        ] {
            let plan = decided(&game(3, unavailable, &[]), &pods(3), &runs);
            assert_eq!(steps(&plan), writes, "{name} {unavailable} {}", runs.len());
        }
        // A busy pod may become idle.
        let all = [costing(0, &[]), costing(1, &[]), selected(2)];
        let runs = [two_of_three, vec![busy(own(2, Phase::Running))]].concat();
        let plan = decided(&game(3, 1, &[]), &all, &runs);
        assert_eq!(steps(&plan), [""; 0], "{name}");
        assert_eq!(progress(&plan).unwrap().1, 1, "{name}");
        let message = condition(&plan, "Progressing");
        assert!(!message.contains(" 0 candidates"), "{message}");
    }
    // The scout of another pod may succeed.
    let failed = scouts(&[(0, Phase::Failed), (1, Phase::Failed)]);
    assert_eq!(
        steps(&decided(&game(3, 1, &[]), &pods(3), &failed)),
        ["run scout-2"]
    );
}

#[test]
fn hopeless_pods_are_reported_once_their_own_hook_has_run() {
    let object = game(3, 1, &[]);
    let all = [selected(0), costing(1, &[]), costing(2, &[])];
    let failed = scouts(&[1, 2].map(|at| (at, Phase::Failed)));
    let with = |run: Run| [vec![run], failed.clone()].concat();
    let plan = decided(&object, &all, &with(scout(0, Phase::Failed)));
    assert_eq!(steps(&plan), ["end scout-0", "run pre-delete-0"]);
    assert_eq!(condition(&plan, "UpdateBlocked"), "");
    let late = overdue(own(0, Phase::Running));
    let plan = decided(&object, &all, &with(late));
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(progress(&plan), Some((0, 1, 0)));
    let message = condition(&plan, "UpdateBlocked");
    assert!(message.starts_with("HookNotTakenUp: pod fleet-0: "), "{message}");
    // The pod is kept and holds up no other.
    let plan = decided(&object, &all, &with(own(0, Phase::Failed)));
    assert_eq!(steps(&plan), ["select fleet-1"]);
    assert_eq!(progress(&plan), Some((0, 1, 1)));
    let message = condition(&plan, "UpdateBlocked");
    assert!(
        message.starts_with("HookUnsuccessful: pod fleet-0: "),
        "{message}"
    );
}

#[test]
fn a_hook_that_cannot_run_is_reported_and_has_no_scouts() {
    let plan = decided_in(
        &FakeCluster::default(),
        Some("new"),
        &game(5, 1, &[]),
        &pods(5),
        &[],
    );
    assert_eq!(steps(&plan), [""; 0]);
    let message = condition(&plan, "UpdateBlocked");
    assert!(message.starts_with("HookTemplateMissing: "), "{message}");
    assert_eq!(plan.status.unwrap().first_idle, None);
}

#[test]
fn retry_deletes_failed_scouts_before_new_ones_are_created() {
    let object = game(5, 1, &[("/spec/preDeleteUpdateStrategy/retry", json!(true))]);
    let runs = scouts(&[(0, Phase::Failed), (1, Phase::Running)]);
    assert_eq!(steps(&decided(&object, &pods(5), &runs)), ["end scout-0"]);
    let plan = decided(&object, &pods(5), &runs[1..]);
    assert_eq!(steps(&plan), ["reset_retry", "run scout-0"]);
    let object = in_place(5, 1, &[("/spec/preInplaceUpdateStrategy/retry", json!(true))]);
    let runs = [0, 1].map(|at| scout_in_place(at, Phase::Failed));
    let plan = decided(&object, &pods(5), &runs);
    assert_eq!(steps(&plan), ["end scout-inplace-0", "end scout-inplace-1"]);
}

#[test]
fn scouts_that_do_not_count_are_replaced() {
    let object = game(5, 1, &[]);
    let restarted = json!([status("two")]);
    let mut all = pods(5);
    all[0] = costing(0, &[("/status/containerStatuses", restarted)]);
    let found = [scout(0, Phase::Successful)];
    assert_eq!(
        steps(&decided(&object, &all, &found)),
        ["end scout-0", "run scout-1"]
    );
    let mut ending = scout(0, Phase::Successful);
    ending.terminating = true;
    // Its pod gets another scout once this one is gone.
    assert_eq!(
        steps(&decided(&object, &pods(5), &[ending])),
        ["run scout-1", "run scout-2"]
    );
    let mut lost = scout(0, Phase::Successful);
    lost.controller = None;
    let plan = decided_beside(&object, &pods(5), &[], vec![lost]);
    assert_eq!(steps(&plan), ["end scout-0", "run scout-1"]);
}

#[test]
fn both_searches_at_once_share_the_scouts_of_one_hook() {
    let plan = decided(&shrinking(&[]), &pods(5), &[]);
    assert_eq!(steps(&plan), [0, 1, 2, 3, 4].map(|at| format!("run scout-{at}")));
    let message = condition(&plan, "Progressing");
    let wait = "; waiting for 2 more idle pods: running the hooks of 5 candidates; waiting for 1 more \
                idle pod to update: running the hooks of 2 candidates";
    assert!(message.contains(wait), "{message}");
    let numbers = |candidates, selected, needed| {
        Some(IdleSearchStatus {
            candidates,
            selected,
            needed,
        })
    };
    let (scale, update) = (numbers(5, 0, 2), numbers(2, 0, 1));
    assert_eq!(
        plan.status.unwrap().first_idle,
        Some(FirstIdleStatus { scale, update })
    );
    let gauge = |candidates, selected, needed| {
        Some(SearchProgress {
            candidates,
            selected,
            needed,
        })
    };
    let (scale, update) = (gauge(5, 0, 2), gauge(2, 0, 1));
    assert_eq!(plan.gauges.unwrap().first_idle, Searches { scale, update });
    let mut lost = scout(0, Phase::Running);
    lost.controller = None;
    let plan = decided_beside(&shrinking(&[]), &pods(5), &[], vec![lost]);
    let wanted = [
        "end scout-0",
        "run scout-1",
        "run scout-2",
        "run scout-3",
        "run scout-4",
    ];
    assert_eq!(steps(&plan), wanted);
}

/// The arguments of a hook before an update in place name the containers that change.
#[test]
fn an_update_in_place_has_scouts_of_its_own() {
    let wanted = [
        "run scout-0",
        "run scout-1",
        "run scout-2",
        "run scout-3",
        "run scout-4",
        "run scout-inplace-0",
        "run scout-inplace-1",
    ];
    let in_place = (TYPE, json!("InplaceUpdate"));
    for over in [vec![in_place.clone()], vec![in_place, (PRE_INPLACE, hook())]] {
        let object = shrinking(&over);
        assert_eq!(steps(&decided(&object, &pods(5), &[])), wanted);
        // Each search keeps its own.
        let made: Vec<Run> = created_runs(decided(&object, &pods(5), &[]))
            .map(|run| Run::read(&in_phase(run, Phase::Running)))
            .collect();
        let plan = decided(&object, &pods(5), &made);
        assert_eq!(steps(&plan), [""; 0]);
        assert_eq!(progress(&plan), Some((2, 0, 1)));
    }
}

#[test]
fn the_search_for_pods_to_delete_takes_idle_ones_first() {
    let phases = |idle: &[usize]| {
        [0, 1, 2, 3, 4].map(|at| {
            let phase = if idle.contains(&at) {
                Phase::Successful
            } else {
                Phase::Running
            };
            (at, phase)
        })
    };
    let to_delete = ["select fleet-2 to delete", "select fleet-3 to delete"];
    for (idle, writes, numbers) in [
        (vec![3], vec![to_delete[1]], (4, 0, 1)),
        (vec![2, 3], to_delete.to_vec(), (3, 0, 1)),
        (
            vec![2, 3, 4],
            vec![to_delete[0], to_delete[1], "select fleet-4"],
            (2, 1, 0),
        ),
    ] {
        let plan = decided(&shrinking(&[]), &pods(5), &scouts(&phases(&idle)));
        assert_eq!(steps(&plan), writes, "{idle:?}");
        assert_eq!(progress(&plan), Some(numbers), "{idle:?}");
    }
}
