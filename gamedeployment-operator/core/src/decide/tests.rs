//! Whole decisions about a few pods: who goes, and who stays.

use serde_json::{Value, json};
use shared_api::reason::WorkloadReason;

use super::*;
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{Around, object, pod, revisions};
use crate::view::Trouble;

const REVISION: &str = "/metadata/labels/controller-revision-hash";
const CONDITIONS: &str = "/status/conditions";
const CONTAINERS: &str = "/status/containerStatuses";

fn ready(text: &str, since: &str) -> (&'static str, Value) {
    (
        CONDITIONS,
        json!([{"type": "Ready", "status": text, "lastTransitionTime": since}]),
    )
}

/// Was ready for months, and is not now.
fn blips() -> (&'static str, Value) {
    ready("False", "2024-05-31T23:59:50Z")
}

/// Has not been ready since its kubelet took it on.
fn never_served() -> (&'static str, Value) {
    ready("False", "2024-01-01T00:00:10Z")
}

/// Ready for ten seconds.
fn just_ready() -> (&'static str, Value) {
    ready("True", "2024-05-31T23:59:50Z")
}

fn no_image() -> (&'static str, Value) {
    let waiting = json!({"name": "game", "image": "game:v1", "imageID": "", "restartCount": 0, "ready": false,
        "state": {"waiting": {"reason": "ImagePullBackOff"}}});
    (CONTAINERS, json!([waiting]))
}

fn updated() -> (&'static str, Value) {
    (REVISION, json!("new"))
}

/// A container that is not ready, and has run since then.
fn with(mut container: Value, since: &str) -> Value {
    container["ready"] = json!(false);
    container["state"]["running"]["startedAt"] = json!(since);
    container
}

/// So many pods, each with this written over it.
fn pods(prefix: &str, count: usize, over: &[(&str, Value)]) -> Vec<Pod> {
    (0..count)
        .map(|at| pod(&format!("{prefix}-{at}"), over))
        .collect()
}

fn plan(spec: &[(&str, Value)], pods: &[Pod]) -> Plan {
    plan_with(spec, pods, Some("new"), &Trouble::default())
}

/// The names of the pods that are deleted.
fn deleted(plan: &Plan) -> Vec<&str> {
    let deleted = plan.actions.iter().filter_map(|action| match action {
        Action::DeletePod(delete) => Some(delete.pod().name.as_str()),
        _ => None,
    });
    let mut deleted: Vec<_> = deleted.collect();
    deleted.sort_unstable();
    deleted
}

fn count(plan: &Plan, wanted: fn(&Action) -> bool) -> usize {
    plan.actions.iter().filter(|action| wanted(action)).count()
}

/// Ten replicas, of which one may be missing.
fn ten(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut spec = vec![
        ("/spec/replicas", json!(10)),
        ("/spec/updateStrategy/maxUnavailable", json!(1)),
    ];
    spec.extend_from_slice(more);
    spec
}

#[test]
fn pods_that_are_not_well_for_a_moment_go_one_at_a_time() {
    let min_ready = [("/spec/minReadySeconds", json!(30))];
    for (pods, spec, gone) in [
        (pods("blips", 10, &[blips()]), ten(&[]), 1),
        (pods("ready", 10, &[just_ready()]), ten(&min_ready), 1),
        // Two are missing for good: nothing that may come back goes.
        (pods("blips", 8, &[blips()]), ten(&[]), 0),
        // Those that never served go at once, and cost nothing.
        (pods("new", 10, &[never_served()]), ten(&[]), 10),
        (pods("bad", 10, &[blips(), no_image()]), ten(&[]), 10),
    ] {
        let plan = plan(&spec, &pods);
        assert_eq!(
            deleted(&plan).len(),
            gone,
            "{} of {}: {plan:#?}",
            pods[0].name,
            pods.len()
        );
    }
}

/// Its update in place has just ended; it serves, and has not done so for long.
fn updated_in_place() -> (&'static str, Value) {
    let record =
        json!({"revision": "old", "updateTimestamp": "2024-05-31T23:59:00Z", "lastContainerStatuses": {}});
    (
        "/metadata/annotations",
        json!({"inplace-update-state": record.to_string()}),
    )
}

#[test]
fn pods_whose_update_in_place_has_just_ended_go_one_at_a_time_too() {
    let in_place = ("/spec/updateStrategy/type", json!("InplaceUpdate"));
    let spec = ten(&[in_place, ("/spec/minReadySeconds", json!(30))]);
    let plan = plan(&spec, &pods("ready", 10, &[just_ready(), updated_in_place()]));
    let begun = |action: &Action| matches!(action, Action::TakeOut(..) | Action::WriteUpdate(..));
    assert_eq!(count(&plan, begun), 1, "{plan:#?}");
}

#[test]
fn pods_that_blip_after_a_hot_patch_go_one_at_a_time_too() {
    let patched = |at: &str| {
        let mark =
            json!({"imageID": "sha256:0", "containerID": "zero", "image": "game:v0", "restartCount": 0});
        let record =
            json!({"revision": "old", "updateTimestamp": at, "lastContainerStatuses": {"game": mark}});
        (
            "/metadata/annotations",
            json!({"hotpatch-update-state": record.to_string()}),
        )
    };
    let waiting = json!({"name": "game", "image": "game:v1", "imageID": "sha256:1", "containerID": "one",
        "restartCount": 3, "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let crashes = (CONTAINERS, json!([waiting]));
    for (pods, gone) in [
        // Their containers were replaced in January, and are not ready since May.
        (vec![patched("2024-01-01T00:00:20Z"), blips()], 1),
        (vec![patched("2024-01-01T00:00:20Z"), blips(), crashes.clone()], 1),
        // They have not been ready since the patch.
        (
            vec![
                patched("2024-05-31T23:59:45Z"),
                blips(),
                (
                    CONTAINERS,
                    json!([with(crate::samples::status("one"), "2024-05-31T23:59:55Z")]),
                ),
            ],
            10,
        ),
    ] {
        let plan = plan(&ten(&[]), &self::pods("patched", 10, &pods));
        assert_eq!(deleted(&plan).len(), gone, "{plan:#?}");
    }
}

#[test]
fn a_blip_takes_nothing_from_those_that_serve() {
    let mut all = pods("well", 8, &[]);
    all.extend(pods("blips", 2, &[blips()]));
    let plan = plan(&ten(&[]), &all);
    assert_eq!(
        deleted(&plan),
        ["blips-0"],
        "the floor of available pods is reached already"
    );
}

#[test]
fn a_new_pod_has_to_prove_itself_before_others_go_in_its_stead() {
    let min_ready = [("/spec/minReadySeconds", json!(30))];
    for (service, gone) in [
        (just_ready(), 0),
        (blips(), 0),
        (ready("True", "2024-05-01T00:00:00Z"), 1),
    ] {
        let mut all = pods("old", 9, &[just_ready()]);
        all.extend(pods("new", 1, &[updated(), service]));
        let plan = plan(&ten(&min_ready), &all);
        assert_eq!(deleted(&plan).len(), gone, "{plan:#?}");
    }
}

#[test]
fn an_update_in_place_takes_pods_that_blip_one_at_a_time_too() {
    let in_place = ("/spec/updateStrategy/type", json!("InplaceUpdate"));
    let plan = plan(&ten(&[in_place]), &pods("blips", 10, &[blips()]));
    let begun = |action: &Action| matches!(action, Action::TakeOut(..) | Action::WriteUpdate(..));
    assert_eq!(count(&plan, begun), 1, "{plan:#?}");
}

#[test]
fn surplus_pods_go_though_they_are_not_well() {
    let spec = [
        ("/spec/replicas", json!(8)),
        ("/spec/template", crate::samples::template("game:v1")),
        ("/spec/updateStrategy/maxUnavailable", json!(1)),
    ];
    let gone = |over: &[(&'static str, Value)]| deleted(&plan(&spec, &pods("pod", 10, over))).len();
    assert_eq!((gone(&[]), gone(&[blips()]), gone(&[never_served()])), (2, 2, 2));
}

const PAUSED: &str = "/spec/updateStrategy/paused";
const SURGE: &str = "/spec/updateStrategy/maxSurge";
const PARTITION: &str = "/spec/updateStrategy/partition";
const MADE: &str = "/status/surgeReplicas";

/// So many of ten old pods go when `replicas` becomes 8.
fn gone_of_ten(spec: &[(&'static str, Value)]) -> usize {
    let mut all = vec![
        ("/spec/replicas", json!(8)),
        ("/spec/updateStrategy/maxUnavailable", json!(1)),
    ];
    all.extend_from_slice(spec);
    let plan = plan(&all, &pods("pod", 10, &[]));
    let updates = |action: &Action| {
        matches!(
            action,
            Action::TakeOut(..) | Action::WriteUpdate(..) | Action::CreatePod(_)
        )
    };
    assert_eq!(count(&plan, updates), 0, "{plan:#?}");
    deleted(&plan).len()
}

#[test]
fn what_is_too_many_goes_while_an_update_is_stopped() {
    let none = ("/spec/updateStrategy/maxUnavailable", json!(0));
    let in_place = ("/spec/updateStrategy/type", json!("InplaceUpdate"));
    for (name, spec) in [
        ("paused", vec![(PAUSED, json!(true)), (SURGE, json!(2))]),
        ("much surge", vec![(PAUSED, json!(true)), (SURGE, json!(5))]),
        ("kept back", vec![(PARTITION, json!("100%")), (SURGE, json!(2))]),
        (
            "kept back by number",
            vec![(PARTITION, json!(8)), (SURGE, json!(2))],
        ),
        (
            "in place",
            vec![(PARTITION, json!("100%")), (SURGE, json!(2)), none, in_place],
        ),
    ] {
        assert_eq!(gone_of_ten(&spec), 2, "{name}");
    }
    // These were made for the update, and it will go on.
    assert_eq!(
        gone_of_ten(&[(PAUSED, json!(true)), (SURGE, json!(2)), (MADE, json!(2))]),
        0
    );
    assert_eq!(
        gone_of_ten(&[(PAUSED, json!(true)), (SURGE, json!(2)), (MADE, json!(1))]),
        1
    );
}

#[test]
fn what_was_made_for_an_update_is_recorded() {
    let mut all = pods("old", 10, &[]);
    all.extend(pods("new", 2, &[updated(), never_served()]));
    let made =
        |spec: &[(&'static str, Value)]| plan(&ten(spec), &all).status.map(|status| status.surge_replicas);
    assert_eq!(made(&[(SURGE, json!(2))]), Some(2));
    assert_eq!(made(&[(SURGE, json!(1))]), Some(1));
    assert_eq!(made(&[]), Some(0));
}

#[test]
fn a_canary_step_does_not_wait_for_pods_that_are_to_be_deleted() {
    let marked: [(&str, Value); 2] = [
        (
            "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting",
            json!("true"),
        ),
        (
            "/metadata/annotations/tkex.tencent.com~1chosen-for",
            json!("delete@2024-05-01T00:00:00Z"),
        ),
    ];
    let steps = json!({"steps": [{"partition": 3}, {"partition": 1}]});
    let step = |replicas: usize, chosen: &[(&str, Value)]| {
        let mut all = pods("old", 3, &[]);
        all.extend(pods("new", 1, &[updated()]));
        all.extend(pods("victim", 1, chosen));
        let spec = [
            ("/spec/replicas", json!(replicas)),
            ("/spec/updateStrategy/canary", steps.clone()),
            ("/status/updateRevision", json!("new")),
            ("/status/currentRevision", json!("old")),
        ];
        plan(&spec, &all)
            .status
            .and_then(|status| status.current_step_index)
    };
    assert_eq!(
        step(4, &marked),
        Some(1),
        "one of four is updated, and the fifth goes"
    );
    assert_eq!(step(4, &[]), Some(1), "whether it has been chosen already or not");
    // It was chosen before replicas were raised, and stays.
    assert_eq!((step(5, &marked), step(5, &[])), (Some(0), Some(0)));
}

/// As [`plan`], for an API server that has accepted a pod of this revision, and refuses this.
fn plan_with(spec: &[(&str, Value)], pods: &[Pod], accepted: Option<&str>, trouble: &Trouble) -> Plan {
    let object = object(spec);
    let (around, revisions) = (Around::default(), revisions());
    let pods: Vec<&Pod> = pods.iter().collect();
    let revisions: Vec<&Revision> = revisions.iter().collect();
    let view = View {
        object: &object,
        pods: &pods,
        revisions: &revisions,
        runs: &[],
        accepted,
        trouble: Some(trouble),
        cluster: &around,
    };
    decide(&view, "2024-06-01T00:00:00Z".parse().unwrap())
}

fn tries(plan: &Plan) -> usize {
    count(
        plan,
        |action| matches!(action, Action::TryPod(_, revision) if revision == "new"),
    )
}

#[test]
fn before_the_first_pod_goes_the_api_server_has_accepted_a_new_one() {
    let none = Trouble::default();
    let old = pods("old", 10, &[]);
    let first = plan_with(&ten(&[]), &old, None, &none);
    assert_eq!((tries(&first), deleted(&first).len()), (1, 0));
    let another = plan_with(&ten(&[]), &old, Some("older"), &none);
    assert_eq!((tries(&another), deleted(&another).len()), (1, 0));
    let accepted = plan_with(&ten(&[]), &old, Some("new"), &none);
    assert_eq!((tries(&accepted), deleted(&accepted).len()), (0, 1));
    // A pod that was created says the same, and one that was updated in place does not.
    let mut under_way = pods("old", 9, &[]);
    under_way.extend(pods("new", 1, &[updated()]));
    let created = plan_with(&ten(&[]), &under_way, None, &none);
    assert_eq!((tries(&created), deleted(&created).len()), (0, 1));
    under_way.pop();
    let path = format!(
        "/metadata/annotations/{}",
        shared_api::names::pod::IN_PLACE_STATE.replace('/', "~1")
    );
    under_way.extend(pods("new", 1, &[updated(), (&path, json!("{}"))]));
    let in_place = plan_with(&ten(&[]), &under_way, None, &none);
    assert_eq!((tries(&in_place), deleted(&in_place).len()), (1, 0));
    // What never served goes without it, and what is deleted for another reason too.
    let sick = plan_with(&ten(&[]), &pods("sick", 10, &[never_served()]), None, &none);
    assert_eq!((tries(&sick), deleted(&sick).len()), (0, 10));
    let fewer = plan_with(
        &[("/spec/replicas", json!(8)), (PAUSED, json!(true))],
        &old,
        None,
        &none,
    );
    assert_eq!((tries(&fewer), deleted(&fewer).len()), (0, 2));
}

#[test]
fn while_new_pods_are_refused_none_goes_for_an_update() {
    let refused = Trouble {
        creating: true,
        scaling: Some("exceeded quota".to_owned()),
        ..Trouble::default()
    };
    let half = ("/spec/updateStrategy/maxUnavailable", json!(5));
    let spec = [("/spec/replicas", json!(10)), half];
    let mut all = pods("old", 8, &[]);
    all.extend(pods("sick", 1, &[never_served()]));
    let plan = plan_with(&spec, &all, Some("new"), &refused);
    assert_eq!(deleted(&plan), ["sick-0"], "it does not serve");
    assert_eq!(count(&plan, |action| matches!(action, Action::CreatePod(_))), 1);
    let refused = Trouble {
        pod: Some("limited to 1Gi".to_owned()),
        ..Trouble::default()
    };
    let plan = plan_with(&ten(&[]), &pods("old", 10, &[]), None, &refused);
    let conditions = plan.status.unwrap().conditions;
    let blocked = conditions
        .iter()
        .find(|condition| condition.type_ == "UpdateBlocked")
        .unwrap();
    assert_eq!(blocked.reason, "PodRefused");
    assert!(blocked.message.contains("limited to 1Gi") && blocked.message.contains("spec.template"));
}

#[test]
fn costs_of_only_some_pods_are_told_of_unless_somebody_has_chosen_an_order() {
    let order = |text: &str| {
        let annotation = "/metadata/annotations/io.tencent.bcs.dev~1pod-deletion-cost-sort-method";
        vec![(annotation, json!(text)), ("/spec/replicas", json!(2))]
    };
    let cost = [(
        "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost",
        json!("100"),
    )];
    let told = |spec: &[(&'static str, Value)], without: usize| {
        let mut all = pods("with", 2, &cost);
        all.extend(pods("without", without, &[]));
        let plan = plan(spec, &all);
        plan.warnings
            .iter()
            .any(|warning| warning.reason == WorkloadReason::DeletionCostPartial)
    };
    let fewer = [("/spec/replicas", json!(1))];
    assert!(told(&fewer, 1));
    assert!(!told(&fewer, 0) && !told(&[("/spec/replicas", json!(3))], 1));
    assert!(!told(&order("kubernetes"), 1) && !told(&order("ascend"), 1));
}

#[test]
fn pods_that_were_ready_before_do_not_hold_up_a_batch() {
    let spec = [
        ("/spec/replicas", json!(10)),
        ("/spec/template", crate::samples::template("game:v1")),
        ("/spec/scaleStrategy", json!({"createBatch": 2})),
    ];
    let created = |over: &[(&'static str, Value)]| {
        let mut all = pods("well", 4, &[]);
        all.extend(pods("other", 2, over));
        count(&plan(&spec, &all), |action| {
            matches!(action, Action::CreatePod(_))
        })
    };
    assert_eq!(
        (created(&[blips()]), created(&[never_served()]), created(&[])),
        (2, 0, 2)
    );
}
