use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::GameDeploymentStatus;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{RemovalRequests, RemovalType};

use super::*;
use crate::plan::Plan;
use crate::samples::{decided, names, now, object, pod, pod_to_delete};

const ANNOTATION: &str = "/metadata/annotations/tkex.tencent.com~1removal-requested";
const LABEL: &str = "/metadata/labels/tkex.tencent.com~1removal-guard";
const REVISION: &str = "/metadata/labels/controller-revision-hash";

fn seconds_ago(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

/// Formats requests that were made this many seconds ago.
fn requests(made: &[(&str, i64)]) -> String {
    let mut requests = RemovalRequests::default();
    for (requester, ago) in made {
        let type_ = RemovalType::Eviction;
        requests.record(requester, type_, seconds_ago(*ago)).unwrap();
    }
    requests.text()
}

fn requested(name: &str, text: &str) -> Pod {
    pod(
        name,
        &[
            (REVISION, json!("new")),
            (LABEL, json!("Ask")),
            (ANNOTATION, json!(text)),
        ],
    )
}

/// A workload with two pods and a hook that runs before a deletion.
fn asks(more: &[(&str, Value)]) -> GameDeployment {
    let mut over = vec![
        ("/spec/replicas", json!(2)),
        ("/spec/disruption/policy", json!("Ask")),
        ("/metadata/finalizers", json!([ASK_BEFORE_REMOVAL])),
        (
            "/spec/preDeleteUpdateStrategy",
            json!({ "hook": { "templateName": "ask" } }),
        ),
    ];
    over.extend_from_slice(more);
    object(&over)
}

/// Returns the key at the end of a path.
fn key(path: &str) -> String {
    path.rsplit_once('/').unwrap().1.replace("~1", "/")
}

fn status(plan: &Plan) -> &GameDeploymentStatus {
    plan.status.as_deref().unwrap()
}

fn other() -> Pod {
    pod("other", &[(REVISION, json!("new")), (LABEL, json!("Ask"))])
}

#[test]
fn a_pod_with_a_request_is_selected_for_deletion() {
    let pods = [requested("a", &requests(&[("drain", 10)])), other()];
    let plan = decided(&asks(&[]), &pods, &[]);
    assert_eq!(names(&plan), ["mark_pod"]);
    let status = status(&plan);
    assert_eq!(status.removal_pending_replicas, 1);
    let entry = &status.removal_requests[0];
    assert_eq!(
        (
            entry.pod_name.as_str(),
            entry.pod_uid.as_str(),
            entry.requester.as_str()
        ),
        ("a", "uid-a", "drain")
    );
    assert_eq!(
        (entry.type_.as_str(), entry.request_time.timestamp()),
        ("Eviction", seconds_ago(10))
    );
    assert_eq!(plan.gauges.unwrap().removals.pods, 1);
}

#[test]
fn a_request_has_no_effect_without_the_policy() {
    let pods = [requested("a", &requests(&[("drain", 10)])), other()];
    for policy in [json!("Unguarded"), Value::Null] {
        let plan = decided(&asks(&[("/spec/disruption/policy", policy)]), &pods, &[]);
        assert_eq!(names(&plan), ["label_pod", "label_pod", "remove_finalizer"]);
        assert_eq!(status(&plan).removal_requests, []);
    }
}

#[test]
fn a_pod_is_kept_once_its_last_request_has_expired() {
    let expired = requests(&[("drain", 900), ("late", 901)]);
    let mut selected = pod_to_delete("a");
    selected.labels.extend(
        [REVISION, LABEL]
            .map(key)
            .into_iter()
            .zip(["new", "Ask"].map(str::to_owned)),
    );
    let key = REMOVAL_REQUESTED.to_owned();
    selected.annotations.insert(key.clone(), expired);
    let plan = decided(&asks(&[]), &[selected.clone(), other()], &[]);
    assert_eq!(names(&plan), ["unmark_pod"]);
    assert_eq!(status(&plan).removal_pending_replicas, 0);
    // The workload is checked again when the next request expires.
    selected
        .annotations
        .insert(key.clone(), requests(&[("drain", 899), ("late", 100)]));
    let plan = decided(&asks(&[]), &[selected.clone(), other()], &[]);
    assert_eq!(plan.wake, Some(seconds_ago(-1)));
    let short = asks(&[("/spec/disruption/requestExpirationSeconds", json!(60))]);
    assert_eq!(names(&decided(&short, &[selected, other()], &[])), ["unmark_pod"]);
}

#[test]
fn withdrawing_one_of_two_requests_keeps_the_other() {
    let mut both = RemovalRequests::parse(&requests(&[("drain", 10), ("person", 5)])).unwrap();
    assert!(both.withdraw("drain"));
    let plan = decided(&asks(&[]), &[requested("a", &both.text()), other()], &[]);
    assert_eq!(names(&plan), ["mark_pod"]);
    assert!(both.withdraw("person"));
    let plan = decided(&asks(&[]), &[requested("a", &both.text()), other()], &[]);
    assert_eq!(names(&plan), Vec::<&str>::new());
}

#[test]
fn a_request_that_cannot_be_parsed_is_ignored_and_reported() {
    for text in ["", "true", "{\"v\":2}", "{\"v\":1,\"requests\":[{}]}"] {
        let plan = decided(&asks(&[]), &[requested("a", text), other()], &[]);
        assert_eq!(names(&plan), Vec::<&str>::new(), "{text}");
        let conditions = &status(&plan).conditions;
        let progressing = conditions
            .iter()
            .find(|condition| condition.type_ == "Progressing");
        let message = &progressing.unwrap().message;
        assert!(
            message.contains("; the removal requests of pod a are ignored, because its annotation"),
            "{message}"
        );
    }
}

#[test]
fn a_successor_is_created_first_if_no_pod_may_be_unavailable() {
    let strategy = json!({ "maxUnavailable": 0, "maxSurge": 1 });
    let object = asks(&[("/spec/updateStrategy", strategy)]);
    let plan = decided(
        &object,
        &[requested("a", &requests(&[("drain", 10)])), other()],
        &[],
    );
    assert_eq!(names(&plan), ["create_pod", "mark_pod"]);
}

#[test]
fn a_scale_down_deletes_a_pod_with_a_request_instead_of_another() {
    let pods = [requested("a", &requests(&[("drain", 10)])), other()];
    let plan = decided(&asks(&[("/spec/replicas", json!(1))]), &pods, &[]);
    assert_eq!(names(&plan), ["mark_pod"]);
}

#[test]
fn an_unknown_policy_or_expiration_makes_the_spec_invalid() {
    for (path, value, message) in [
        (
            "/spec/disruption/policy",
            json!("ask"),
            "spec.disruption.policy: \"ask\" must be one of Unguarded, Ask",
        ),
        (
            "/spec/disruption/requestExpirationSeconds",
            json!(59),
            "spec.disruption.requestExpirationSeconds: 59 must be between 60 and 86400, or unset",
        ),
    ] {
        let problems = Workload::read(&asks(&[(path, value)])).unwrap_err();
        assert_eq!(problems[0].to_string(), message);
    }
}

#[test]
fn pods_get_the_label_of_guarded_pods_and_lose_it_with_the_policy() {
    let bare = || pod("bare", &[(REVISION, json!("new"))]);
    let ask = |more: &[(&str, Value)]| decided(&asks(more), &[other(), bare()], &[]);
    let written = |plan: &Plan| {
        let written = plan.actions.iter().filter_map(|action| match action {
            Action::SetGuardLabel(pod, is_set) => Some((pod.name.clone(), *is_set)),
            _ => None,
        });
        written.collect::<Vec<_>>()
    };
    assert_eq!(written(&ask(&[])), [("bare".to_owned(), true)]);
    let unguarded = ask(&[("/spec/disruption/policy", json!("Unguarded"))]);
    assert_eq!(written(&unguarded), [("other".to_owned(), false)]);
    // A pod that is written anyway is labelled later.
    let selected = ask(&[("/spec/scaleStrategy/podsToDelete", json!(["bare"]))]);
    assert_eq!(names(&selected), ["mark_pod"]);
    // New pods have the label from the start.
    let more = ask(&[("/spec/replicas", json!(3))]);
    let new = more.actions.iter().find_map(|action| match action {
        Action::CreatePod(new) => Some(new),
        _ => None,
    });
    let labels = &new.unwrap().manifest["metadata"]["labels"];
    assert_eq!(labels["tkex.tencent.com/removal-guard"], "Ask");
}

/// Anybody who evicts a pod could otherwise stop an update or a rollback for the length of a match.
#[test]
fn a_busy_pod_with_a_request_leaves_the_slots_to_the_update() {
    let mut pods = vec![requested("a", &requests(&[("drain", 10)]))];
    pods[0].annotations.extend(pod_to_delete("a").annotations);
    pods.extend((0..3).map(|number| pod(&format!("old-{number}"), &[(LABEL, json!("Ask"))])));
    let strategy = json!({ "type": "RollingUpdate", "maxUnavailable": 1 });
    let object = |more: &[(&str, Value)]| {
        let mut over = vec![
            ("/spec/replicas", json!(4)),
            ("/spec/updateStrategy", strategy.clone()),
        ];
        over.extend_from_slice(more);
        asks(&over)
    };
    let selected = |plan: &Plan| {
        let is_selection = |action: &&Action| matches!(action, Action::RecordSelection(..));
        plan.actions.iter().filter(is_selection).count()
    };
    assert_eq!(selected(&decided(&object(&[]), &pods, &[])), 1);
    let named = object(&[("/spec/scaleStrategy/podsToDelete", json!(["a"]))]);
    assert_eq!(selected(&decided(&named, &pods, &[])), 0);
}
