//! Complete decisions about a few pods: which go and which stay.

use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::reason::WorkloadReason;

use super::*;
use crate::plan::GatedWrite;
use crate::pod::Pod;
use crate::revision::Revision;
use crate::samples::{FakeCluster, object, pod, revisions, view};
use crate::view::WriteErrors;

pub(super) const REVISION: &str = "/metadata/labels/controller-revision-hash";
pub(super) const CONDITIONS: &str = "/status/conditions";
pub(super) const CONTAINERS: &str = "/status/containerStatuses";

pub(super) fn ready(text: &str, since: &str) -> (&'static str, Value) {
    (
        CONDITIONS,
        json!([{"type": "Ready", "status": text, "lastTransitionTime": since}]),
    )
}

/// Condition of a pod that was ready for months and is unready now.
pub(super) fn blips() -> (&'static str, Value) {
    ready("False", "2024-05-31T23:59:50Z")
}

/// Condition of a pod that has been unready since its kubelet accepted it.
pub(super) fn never_served() -> (&'static str, Value) {
    ready("False", "2024-01-01T00:00:10Z")
}

/// Condition of a pod that has been ready for ten seconds.
pub(super) fn just_ready() -> (&'static str, Value) {
    ready("True", "2024-05-31T23:59:50Z")
}

pub(super) fn updated() -> (&'static str, Value) {
    (REVISION, json!("new"))
}

/// Creates this many pods with these overrides.
pub(super) fn pods(prefix: &str, count: usize, over: &[(&str, Value)]) -> Vec<Pod> {
    (0..count)
        .map(|at| pod(&format!("{prefix}-{at}"), over))
        .collect()
}

pub(super) fn plan(spec: &[(&str, Value)], pods: &[Pod]) -> Plan {
    plan_with(spec, pods, Some("new"), &WriteErrors::default())
}

/// Returns the names of the deleted pods.
pub(super) fn deleted(plan: &Plan) -> Vec<&str> {
    let deleted = plan.actions.iter().filter_map(|action| match action {
        Action::Gated(GatedWrite::DeletePod(delete)) => Some(delete.pod().name.as_str()),
        _ => None,
    });
    let mut deleted: Vec<_> = deleted.collect();
    deleted.sort_unstable();
    deleted
}

pub(super) fn count(plan: &Plan, wanted: fn(&Action) -> bool) -> usize {
    plan.actions.iter().filter(|action| wanted(action)).count()
}

/// Spec with ten replicas, one of which may be unavailable.
pub(super) fn ten(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut spec = vec![
        ("/spec/replicas", json!(10)),
        ("/spec/updateStrategy/maxUnavailable", json!(1)),
    ];
    spec.extend_from_slice(more);
    spec
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

/// A workload of type Recreate whose pods go to revision `new`.
fn recreates(more: &[(&'static str, Value)]) -> GameDeployment {
    let mut fields = vec![
        ("/spec/replicas", json!(3)),
        ("/spec/updateStrategy", json!({ "type": "Recreate" })),
        (
            "/status",
            json!({ "currentRevision": "old", "updateRevision": "new" }),
        ),
    ];
    fields.extend_from_slice(more);
    object(&fields)
}

#[test]
fn recreate_counts_pods_that_are_about_to_be_adopted() {
    let orphan = ("/metadata/ownerReferences", json!([]));
    for over in [
        vec![orphan.clone()],
        vec![
            orphan,
            ("/metadata/deletionTimestamp", json!("2024-06-01T00:00:00Z")),
        ],
    ] {
        let plan = crate::samples::decided(&recreates(&[]), &pods("pod", 1, &over), &[]);
        assert_eq!(
            count(&plan, |action| matches!(action, Action::CreatePod(_))),
            0,
            "{plan:#?}"
        );
    }
}

#[test]
fn recreate_creates_no_old_pod_beside_new_ones_while_the_template_is_invalid() {
    let invalid = ("/spec/template/spec/containers", json!([]));
    for (updated_pods, created) in [(0, 3), (2, 0)] {
        let mut all = pods("new", updated_pods, &[updated()]);
        all.extend(pods("old", 0, &[]));
        let plan = crate::samples::decided(&recreates(std::slice::from_ref(&invalid)), &all, &[]);
        let names = |action: &Action| matches!(action, Action::CreatePod(_));
        assert_eq!(count(&plan, names), created, "{plan:#?}");
    }
}

const PAUSED: &str = "/spec/updateStrategy/paused";
const SURGE: &str = "/spec/updateStrategy/maxSurge";
const PARTITION: &str = "/spec/updateStrategy/partition";
const MADE: &str = "/status/surgeReplicas";

/// Returns how many of ten old pods are deleted when `replicas` becomes 8.
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
            Action::Gated(GatedWrite::SetNotReady(..) | GatedWrite::WriteUpdate(..)) | Action::CreatePod(_)
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
    // These were created for the update, which will continue.
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
    // The pod was selected before `replicas` was raised, and stays.
    assert_eq!((step(5, &marked), step(5, &[])), (Some(0), Some(0)));
}

/// Same as [`plan`], with an API server that accepted a pod of this revision and rejects these writes.
fn plan_with(
    spec: &[(&str, Value)],
    pods: &[Pod],
    accepted: Option<&str>,
    write_errors: &WriteErrors,
) -> Plan {
    let object = object(spec);
    let (around, revisions) = (FakeCluster::default(), revisions());
    let pods: Vec<&Pod> = pods.iter().collect();
    let revisions: Vec<&Revision> = revisions.iter().collect();
    let view = View {
        accepted,
        write_errors: Some(write_errors),
        ..view(&object, &pods, &revisions, &around)
    };
    decide(&view, "2024-06-01T00:00:00Z".parse().unwrap())
}

fn tries(plan: &Plan) -> usize {
    count(
        plan,
        |action| matches!(action, Action::DryRunPod(_, revision) if revision == "new"),
    )
}

#[test]
fn before_the_first_pod_goes_the_api_server_has_accepted_a_new_one() {
    let none = WriteErrors::default();
    let old = pods("old", 10, &[]);
    let first = plan_with(&ten(&[]), &old, None, &none);
    assert_eq!((tries(&first), deleted(&first).len()), (1, 0));
    let another = plan_with(&ten(&[]), &old, Some("older"), &none);
    assert_eq!((tries(&another), deleted(&another).len()), (1, 0));
    let accepted = plan_with(&ten(&[]), &old, Some("new"), &none);
    assert_eq!((tries(&accepted), deleted(&accepted).len()), (0, 1));
    // A created pod proves acceptance too; a pod updated in place does not.
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
    // A pod that never served needs no dry run to go, nor does a pod deleted for another reason.
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
    let refused = WriteErrors {
        creating: true,
        scaling: Some("exceeded quota".to_owned()),
        ..WriteErrors::default()
    };
    let half = ("/spec/updateStrategy/maxUnavailable", json!(5));
    let spec = [("/spec/replicas", json!(10)), half];
    let mut all = pods("old", 8, &[]);
    all.extend(pods("sick", 1, &[never_served()]));
    let plan = plan_with(&spec, &all, Some("new"), &refused);
    assert_eq!(deleted(&plan), ["sick-0"], "it does not serve");
    assert_eq!(count(&plan, |action| matches!(action, Action::CreatePod(_))), 1);
    let refused = WriteErrors {
        pod: Some("limited to 1Gi".to_owned()),
        ..WriteErrors::default()
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

#[test]
fn a_mark_is_taken_off_before_an_update_is_confirmed() {
    let spec = [
        ("/spec/replicas", json!(1)),
        (
            "/spec/postInplaceUpdateStrategy",
            json!({"hook": {"templateName": "ready"}}),
        ),
    ];
    let since = "2024-01-01T00:01:00Z";
    let conditions = ["Ready", "InPlaceUpdateReady"]
        .map(|name| json!({"type": name, "status": "True", "lastTransitionTime": since}));
    let confirmed = |more: Value| {
        let record = json!({"revision": "new", "lastContainerStatuses": {}}).to_string();
        let mut annotations =
            json!({"inplace-update-state": record, "tkex.tencent.com/skip-hook": "uid-pod-0"});
        annotations
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let over = [
            updated(),
            (CONDITIONS, json!(conditions)),
            ("/metadata/annotations", annotations),
        ];
        let plan = plan(&spec, &pods("pod", 1, &over));
        let confirms = count(&plan, |action| {
            matches!(action, Action::Gated(GatedWrite::Confirm(_)))
        });
        (
            confirms,
            count(&plan, |action| matches!(action, Action::ClearSelection(..))),
        )
    };
    assert_eq!(confirmed(json!({})), (1, 0));
    // Two writes cannot use the same resource version of the pod.
    let marked = json!({"io.tencent.bcs.dev/game-pod-deleting": "true"});
    assert_eq!(confirmed(marked), (0, 1));
}
