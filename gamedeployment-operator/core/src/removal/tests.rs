use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::game_deployment::GameDeploymentStatus;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{MAX_REQUESTER_BYTES, RemovalRequests, RemovalType};

use super::*;
use crate::cluster::{FoundTemplate, Node, NodeDisruption, Taint};
use crate::decide::decide;
use crate::plan::Plan;
use crate::samples::{
    FakeCluster, FakeNode, decided, decided_on, names, now, object, pod, pod_to_delete, revisions, view,
};
use crate::view::View;

const ANNOTATION: &str = "/metadata/annotations/tkex.tencent.com~1removal-requested";
const LABEL: &str = "/metadata/labels/tkex.tencent.com~1removal-guard";
const MARK: &str = "/metadata/annotations/io.tencent.bcs.dev~1game-pod-deleting";
const CHOSEN: &str = "/metadata/annotations/tkex.tencent.com~1chosen-for";
const COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";
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

/// Marks that a plan sets or clears, by pod, with the end of the record.
fn marks(plan: &Plan) -> Vec<String> {
    let mark = |action: &Action| match action {
        Action::RecordSelection(pod, text, _) => {
            let (_, end) = text.rsplit_once('Z').unwrap();
            Some(format!("select {}{end}", pod.name))
        }
        Action::ClearSelection(pod, _) => Some(format!("clear {}", pod.name)),
        _ => None,
    };
    let mut marks: Vec<String> = plan.actions.iter().filter_map(mark).collect();
    marks.sort();
    marks
}

#[test]
fn a_pod_whose_request_is_withdrawn_is_kept_though_its_successor_exists() {
    let strategy = json!({ "maxUnavailable": 0, "maxSurge": 1 });
    let object = asks(&[("/spec/updateStrategy", strategy)]);
    let costing = |name: &str, cost: &str, more: &[(&str, Value)]| {
        let mut all = vec![
            (REVISION, json!("new")),
            (LABEL, json!("Ask")),
            (COST, json!(cost)),
        ];
        all.extend_from_slice(more);
        pod(name, &all)
    };
    let eviction = (ANNOTATION, json!(requests(&[("drain", 10)])));
    let marked = [
        (MARK, json!("true")),
        (CHOSEN, json!("delete@2024-05-01T00:00:00Z;replaced")),
    ];
    let first = decided(
        &object,
        &[costing("a", "1", std::slice::from_ref(&eviction)), other()],
        &[],
    );
    assert_eq!(marks(&first), ["select a;replaced"]);
    let successor = || costing("successor", "1", &[]);
    let both: Vec<_> = marked.iter().cloned().chain([eviction]).collect();
    let requested = [costing("a", "9", &both), costing("b", "9", &[]), successor()];
    assert_eq!(marks(&decided(&object, &requested, &[])), [""; 0]);
    let kept = [costing("a", "9", &marked), costing("b", "9", &[]), successor()];
    assert_eq!(
        marks(&decided(&object, &kept, &[])),
        ["clear a", "select successor"]
    );
    // Its hook goes on if it is the first in deletion order.
    let first = [costing("a", "0", &marked), costing("b", "9", &[]), successor()];
    assert_eq!(marks(&decided(&object, &first, &[])), [""; 0]);
    let lasts = (CHOSEN, json!("delete@2024-05-01T00:00:00Z"));
    let lasting = [
        costing("a", "9", &[marked[0].clone(), lasts]),
        costing("b", "9", &[]),
        successor(),
    ];
    assert_eq!(marks(&decided(&object, &lasting, &[])), [""; 0]);
}

#[test]
fn the_selection_of_a_listed_pod_lasts_if_replicas_requires_it() {
    let request = || requested("a", &requests(&[("drain", 10)]));
    for (replicas, listed, record) in [
        (1, true, "select a"),
        (2, true, "select a;replaced"),
        (1, false, "select a;replaced"),
    ] {
        let named = if listed { json!(["a"]) } else { json!([]) };
        let over = [
            ("/spec/replicas", json!(replicas)),
            ("/spec/scaleStrategy", json!({ "podsToDelete": named })),
        ];
        let pods = [request(), other()];
        assert_eq!(
            marks(&decided(&asks(&over), &pods, &[])),
            [record],
            "{replicas} {listed}"
        );
    }
}

#[test]
fn a_scale_down_deletes_a_pod_with_a_request_instead_of_another() {
    let pods = [requested("a", &requests(&[("drain", 10)])), other()];
    let plan = decided(&asks(&[("/spec/replicas", json!(1))]), &pods, &[]);
    assert_eq!(names(&plan), ["mark_pod"]);
}

#[test]
fn an_unknown_policy_expiration_or_effect_of_cordons_makes_the_spec_invalid() {
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
        (
            "/spec/disruption/onCordon",
            json!("Delete"),
            "spec.disruption.onCordon: \"Delete\" must be one of Ignore, Ask",
        ),
    ] {
        let problems = Workload::read(&asks(&[(path, value)])).unwrap_err();
        assert_eq!(problems[0].to_string(), message);
    }
    for valid in [
        // The policy can be changed without another field.
        json!({ "policy": "Unguarded", "onCordon": "Ask" }),
        json!({ "policy": "Ask", "onCordon": "Ask" }),
    ] {
        assert!(Workload::read(&asks(&[("/spec/disruption", valid)])).is_ok());
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

const TAINT_CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";
const ON_CORDON: &str = "/spec/disruption/onCordon";

/// Returns a taint that was added this many seconds ago.
fn taint(added: Option<i64>) -> Taint {
    Taint {
        key: "maintenance".to_owned(),
        value: String::new(),
        added: added.map(seconds_ago),
    }
}

fn tainted(taints: &[Taint]) -> FakeNode {
    FakeNode {
        taints: taints.to_vec(),
        ..FakeNode::default()
    }
}

fn cordoned() -> FakeNode {
    FakeNode {
        is_cordoned: true,
        ..FakeNode::default()
    }
}

fn uncordoned(ago: i64) -> FakeNode {
    FakeNode {
        schedulable_since: Some(seconds_ago(ago)),
        ..FakeNode::default()
    }
}

/// Returns a guarded pod with these tolerations and this annotation.
fn tolerating(tolerations: &Value, requests: Option<String>) -> Pod {
    let mut over = vec![
        (REVISION, json!("new")),
        (LABEL, json!("Ask")),
        ("/spec/tolerations", tolerations.clone()),
    ];
    over.extend(requests.map(|text| (ANNOTATION, json!(text))));
    pod("a", &over)
}

fn guarded() -> Pod {
    tolerating(&json!([]), None)
}

/// Formats a request of this type that was made that many seconds ago.
fn request(requester: &str, type_: RemovalType, ago: i64) -> String {
    let mut requests = RemovalRequests::default();
    requests.record(requester, type_, seconds_ago(ago)).unwrap();
    requests.text()
}

/// Returns the requests that the status lists: requester, type and age in seconds.
fn listed(plan: &Plan) -> Vec<(String, String, i64)> {
    let entries = status(plan).removal_requests.iter();
    let listed = entries.map(|entry| {
        let age = now().as_second() - entry.request_time.timestamp().as_second();
        (entry.requester.clone(), entry.type_.clone(), age)
    });
    listed.collect()
}

fn entry(requester: &str, type_: &str, age: i64) -> (String, String, i64) {
    (requester.to_owned(), type_.to_owned(), age)
}

#[test]
fn a_taint_requests_the_removal_of_pods_that_do_not_tolerate_it() {
    let none = json!([]);
    let a_minute = json!([{ "operator": "Exists", "tolerationSeconds": 60 }]);
    let always = json!([{ "operator": "Exists" }]);
    let tolerated_until = |ago: i64| (None, Some(seconds_ago(ago)));
    for (tolerations, added, (age, wake)) in [
        (&none, Some(20), (Some(20), None)),
        (&none, None, (Some(0), None)),
        (&a_minute, Some(59), tolerated_until(-1)),
        (&a_minute, Some(60), (Some(60), None)),
        (&a_minute, None, (None, None)),
        (&always, Some(1000), (None, None)),
        (&always, None, (None, None)),
    ] {
        let pods = [tolerating(tolerations, None)];
        let one = asks(&[("/spec/replicas", json!(1))]);
        let plan = decided_on(tainted(&[taint(added)]), &one, &pods);
        let requests: Vec<_> = age
            .into_iter()
            .map(|age| entry("node/node", "Taint", age))
            .collect();
        assert_eq!(listed(&plan), requests, "{tolerations} {added:?}");
        let actions: &[&str] = if age.is_some() { &["mark_pod"] } else { &[] };
        assert_eq!(names(&plan), actions, "{tolerations} {added:?}");
        assert_eq!(plan.wake, wake, "{tolerations} {added:?}");
    }
}

#[test]
fn each_taint_has_its_own_time() {
    let pod = tolerating(&json!([{ "operator": "Exists", "tolerationSeconds": 60 }]), None);
    let decided = |taints: &[Taint]| {
        let one = asks(&[("/spec/replicas", json!(1))]);
        decided_on(tainted(taints), &one, std::slice::from_ref(&pod))
    };
    let waiting = decided(&[taint(Some(10)), taint(None), taint(Some(30))]);
    assert_eq!((listed(&waiting), waiting.wake), (vec![], Some(seconds_ago(-30))));
    let requested = decided(&[taint(Some(10)), taint(Some(70)), taint(Some(80))]);
    assert_eq!(listed(&requested), [entry("node/node", "Taint", 80)]);
    assert_eq!(requested.wake, None);
}

#[test]
fn a_deletion_by_a_taint_controller_counts_while_the_taint_exists() {
    let none = json!([]);
    let an_hour = json!([{ "operator": "Exists", "tolerationSeconds": 3600 }]);
    let always = json!([{ "operator": "Exists" }]);
    let recorded = || vec![entry(TAINT_CONTROLLER, "Delete", 10)];
    for (node, tolerations, wanted) in [
        // The watch does not show the node.
        (None, &none, recorded()),
        (Some(tainted(&[])), &none, vec![]),
        (Some(tainted(&[taint(Some(20))])), &always, vec![]),
        // At the end of the hour, the node requests the removal itself.
        (Some(tainted(&[taint(Some(20))])), &an_hour, vec![]),
        (Some(tainted(&[taint(None)])), &an_hour, recorded()),
        (
            Some(tainted(&[taint(Some(20))])),
            &none,
            vec![entry("node/node", "Taint", 20)],
        ),
    ] {
        let text = request(TAINT_CONTROLLER, RemovalType::Delete, 10);
        let pods = [tolerating(tolerations, Some(text))];
        let one = asks(&[("/spec/replicas", json!(1))]);
        let case = format!("{node:?} {tolerations}");
        let plan = match node {
            Some(shown) => decided_on(shown, &one, &pods),
            None => decided(&one, &pods, &[]),
        };
        assert_eq!(listed(&plan), wanted, "{case}");
        let written = names(&plan).contains(&"withdraw_requests");
        assert_eq!(written, wanted.is_empty(), "{case}");
    }
}

#[test]
fn other_deletions_do_not_depend_on_taints() {
    for (requester, type_, name) in [
        ("jane", RemovalType::Delete, "Delete"),
        (TAINT_CONTROLLER, RemovalType::Manual, "Manual"),
    ] {
        let pods = [tolerating(&json!([]), Some(request(requester, type_, 10)))];
        let one = asks(&[("/spec/replicas", json!(1))]);
        let plan = decided_on(tainted(&[]), &one, &pods);
        assert_eq!(listed(&plan), [entry(requester, name, 10)]);
        let plan = decided_on(tainted(&[taint(Some(20))]), &one, &pods);
        assert_eq!(
            listed(&plan),
            [entry("node/node", "Taint", 20), entry(requester, name, 10)]
        );
    }
}

#[test]
fn a_cordon_requests_the_removal_only_if_the_spec_says_so() {
    let ask = || asks(&[(ON_CORDON, json!("Ask"))]);
    let pods = [guarded(), other()];
    let plan = decided_on(cordoned(), &ask(), &pods);
    let both = [entry("node/node", "Cordon", 0), entry("node/node", "Cordon", 0)];
    assert_eq!(listed(&plan), both);
    assert_eq!(status(&plan).removal_pending_replicas, 2);
    assert_eq!(names(&plan), ["mark_pod", "mark_pod"]);
    assert_eq!(plan.wake, None, "it does not expire");
    for (node, object) in [
        (cordoned(), asks(&[])),
        (cordoned(), asks(&[(ON_CORDON, json!("Ignore"))])),
        (uncordoned(10), ask()),
        (FakeNode::default(), ask()),
    ] {
        let plan = decided_on(node.clone(), &object, &pods);
        assert_eq!((listed(&plan), names(&plan)), (vec![], vec![]), "{node:?}");
    }
    let unwatched = decided(&ask(), &pods, &[]);
    assert_eq!(listed(&unwatched), []);
}

#[test]
fn a_pod_has_one_request_of_its_node() {
    let node = FakeNode {
        taints: vec![taint(Some(20))],
        ..cordoned()
    };
    let one = asks(&[(ON_CORDON, json!("Ask")), ("/spec/replicas", json!(1))]);
    let plan = decided_on(node, &one, &[guarded()]);
    assert_eq!(listed(&plan), [entry("node/node", "Taint", 20)]);
    // Anybody who may patch pods can choose the requester, and the API server rejects a list with two equal keys.
    let forged = request("node/node", RemovalType::Manual, 10);
    let pods = [tolerating(&json!([]), Some(forged))];
    let plan = decided_on(cordoned(), &one, &pods);
    assert_eq!(listed(&plan), [entry("node/node", "Cordon", 0)]);
    let plan = decided_on(FakeNode::default(), &one, &pods);
    assert_eq!(listed(&plan), [entry("node/node", "Manual", 10)]);
}

#[test]
fn the_status_keeps_the_time_since_which_a_node_requests_the_removal() {
    let known = |uid: &str, type_: &str| {
        let entry = json!({
            "podName": "a", "podUID": uid, "requester": "node/node", "type": type_,
            "requestTime": "2024-05-31T23:59:00Z",
        });
        asks(&[
            (ON_CORDON, json!("Ask")),
            ("/spec/replicas", json!(1)),
            ("/status", json!({ "removalRequests": [entry] })),
        ])
    };
    let age = |node: FakeNode, object: &GameDeployment| {
        let plan = decided_on(node, object, &[guarded()]);
        let [(_, _, age)] = listed(&plan)[..] else {
            panic!("{:#?}", status(&plan).removal_requests);
        };
        let since = plan.gauges.unwrap().removals.since;
        assert_eq!(since, Some(seconds_ago(age)));
        age
    };
    assert_eq!(age(cordoned(), &known("uid-a", "Cordon")), 60);
    assert_eq!(age(cordoned(), &known("uid-before", "Cordon")), 0);
    assert_eq!(age(cordoned(), &known("uid-a", "Taint")), 0);
    let unknown = || tainted(&[taint(None)]);
    assert_eq!(age(unknown(), &known("uid-a", "Taint")), 60);
    assert_eq!(age(unknown(), &known("uid-a", "Cordon")), 0);
    assert_eq!(age(tainted(&[taint(Some(7))]), &known("uid-a", "Taint")), 7);
}

#[test]
fn evictions_before_an_uncordon_are_ignored() {
    let mut repeated = RemovalRequests::parse(&request("drain", RemovalType::Eviction, 100)).unwrap();
    let repetition = repeated.record("drain", RemovalType::Eviction, seconds_ago(40));
    repetition.unwrap();
    let once = |type_, ago| request("drain", type_, ago);
    for (text, node, is_valid) in [
        (once(RemovalType::Eviction, 100), uncordoned(50), false),
        (once(RemovalType::Eviction, 51), uncordoned(50), false),
        (once(RemovalType::Eviction, 50), uncordoned(50), true),
        (once(RemovalType::Eviction, 40), uncordoned(50), true),
        (repeated.text(), uncordoned(50), true),
        (repeated.text(), uncordoned(30), false),
        (once(RemovalType::Delete, 100), uncordoned(50), true),
        (once(RemovalType::Manual, 100), uncordoned(50), true),
        // The node is cordoned again, or this process has not seen the change.
        (once(RemovalType::Eviction, 100), cordoned(), true),
        (once(RemovalType::Eviction, 100), FakeNode::default(), true),
    ] {
        let case = format!("{text} {node:?}");
        let pods = [tolerating(&json!([]), Some(text))];
        let plan = decided_on(node, &asks(&[("/spec/replicas", json!(1))]), &pods);
        assert_eq!(listed(&plan).len(), usize::from(is_valid), "{case}");
        let action = if is_valid { "mark_pod" } else { "withdraw_requests" };
        assert_eq!(names(&plan), [action], "{case}");
        assert_eq!(
            plan.wake.is_some(),
            is_valid,
            "{case}: only valid requests expire"
        );
    }
}

#[test]
fn only_withdrawn_and_expired_requests_are_removed() {
    let mut all = RemovalRequests::default();
    for (requester, type_, ago) in [
        ("expired", RemovalType::Delete, 901),
        ("drain", RemovalType::Eviction, 100),
        (TAINT_CONTROLLER, RemovalType::Delete, 100),
        ("jane", RemovalType::Delete, 100),
    ] {
        all.record(requester, type_, seconds_ago(ago)).unwrap();
    }
    let left = |text: String| {
        let pods = [tolerating(&json!([]), Some(text)), other()];
        let plan = decided_on(uncordoned(50), &asks(&[]), &pods);
        let written = plan.actions.into_iter().find_map(|action| match action {
            Action::WithdrawRequests(pod, text) => Some((pod.name, text)),
            _ => None,
        });
        let (name, text) = written.unwrap();
        assert_eq!(name, "a");
        text
    };
    // Marked for deletion because of the remaining request, it is written to by the next decision.
    let mut jane = RemovalRequests::parse(&all.text()).unwrap();
    jane.withdraw("jane");
    assert_eq!(left(jane.text()), None);
    let mut selected = pod_to_delete("a");
    let marks = [(key(REVISION), "new".to_owned()), (key(LABEL), "Ask".to_owned())];
    selected.labels.extend(marks);
    selected
        .annotations
        .insert(REMOVAL_REQUESTED.to_owned(), all.text());
    let plan = decided_on(uncordoned(50), &asks(&[]), &[selected, other()]);
    let text = plan.actions.iter().find_map(|action| match action {
        Action::WithdrawRequests(_, text) => text.clone(),
        _ => None,
    });
    let remaining = RemovalRequests::parse(&text.unwrap()).unwrap();
    let requesters: Vec<&str> = remaining
        .iter()
        .map(|request| request.requester.as_str())
        .collect();
    assert_eq!(requesters, ["jane"]);
}

#[test]
fn an_annotation_that_cannot_be_parsed_does_not_hide_the_request_of_the_node() {
    let one = asks(&[(ON_CORDON, json!("Ask")), ("/spec/replicas", json!(1))]);
    let pods = [tolerating(&json!([]), Some("{\"v\":2}".to_owned()))];
    let plan = decided_on(cordoned(), &one, &pods);
    assert_eq!(listed(&plan), [entry("node/node", "Cordon", 0)]);
    let mut conditions = status(&plan).conditions.iter();
    let progressing = conditions.find(|condition| condition.type_ == "Progressing");
    let message = &progressing.unwrap().message;
    assert!(
        message.contains("; the removal requests of pod a are ignored"),
        "{message}"
    );
}

#[test]
fn a_node_requests_nothing_without_the_policy() {
    let object = asks(&[("/spec/disruption/policy", json!("Unguarded"))]);
    let node = FakeNode {
        taints: vec![taint(Some(20))],
        ..cordoned()
    };
    assert_eq!(listed(&decided_on(node, &object, &[guarded(), other()])), []);
}

/// A cluster with an Eviction of the pod `a`.
struct WithEviction {
    others: FakeCluster,
    requests: EvictionRequests,
}

impl Cluster for WithEviction {
    fn template(&self, name: &str) -> FoundTemplate<'_> {
        self.others.template(name)
    }

    fn node(&self, name: &str) -> Node {
        self.others.node(name)
    }

    fn node_disruption(&self, name: &str) -> Option<NodeDisruption<'_>> {
        self.others.node_disruption(name)
    }

    fn eviction_requests(&self, pod_uid: &str) -> Option<&EvictionRequests> {
        (pod_uid == "uid-a").then_some(&self.requests)
    }

    fn node_cost(&self, name: &str) -> Option<f64> {
        self.others.node_cost(name)
    }

    fn is_new_question(&self, pod: &Pod) -> bool {
        self.others.is_new_question(pod)
    }

    fn has_run(&self, namespace: &str, name: &str) -> bool {
        self.others.has_run(namespace, name)
    }
}

/// Decides while these requesters request the eviction of the pod `a`, since this many seconds.
fn decided_on_eviction(
    requesters: &[&str],
    since: Option<i64>,
    node: Option<FakeNode>,
    object: &GameDeployment,
    pods: &[Pod],
) -> Plan {
    let requesters = requesters.iter().map(|name| (*name).to_owned());
    let cluster = WithEviction {
        others: FakeCluster {
            node,
            ..FakeCluster::with_hook()
        },
        requests: EvictionRequests {
            requesters: requesters.collect(),
            since: since.map(seconds_ago),
        },
    };
    let revisions = revisions();
    let (pods, revisions): (Vec<_>, Vec<_>) = (pods.iter().collect(), revisions.iter().collect());
    let view = View {
        accepted: Some("new"),
        cluster: &cluster,
        ..view(object, &pods, &revisions, &cluster.others)
    };
    decide(&view, now())
}

#[test]
fn an_eviction_requests_the_removal_of_its_pod_for_each_requester() {
    let requesters = ["acme.io/upgrade", "acme.io/drain"];
    let pods = [guarded(), other()];
    let plan = decided_on_eviction(&requesters, Some(20), None, &asks(&[]), &pods);
    let type_ = "EvictionRequest";
    let wanted = [
        entry("acme.io/drain", type_, 20),
        entry("acme.io/upgrade", type_, 20),
    ];
    assert_eq!(listed(&plan), wanted);
    let mut entries = status(&plan).removal_requests.iter();
    assert!(entries.all(|entry| entry.pod_name == "a" && entry.pod_uid == "uid-a"));
    assert_eq!(status(&plan).removal_pending_replicas, 1);
    assert_eq!(names(&plan), ["mark_pod"]);
    assert_eq!(plan.wake, None, "it does not expire");
    let removals = plan.gauges.unwrap().removals;
    assert_eq!((removals.pods, removals.since), (1, Some(seconds_ago(20))));
}

#[test]
fn an_eviction_requests_nothing_without_the_policy() {
    let object = asks(&[("/spec/disruption/policy", json!("Unguarded"))]);
    let pods = [guarded(), other()];
    let plan = decided_on_eviction(&["acme.io/drain"], Some(20), None, &object, &pods);
    assert_eq!(listed(&plan), []);
    assert!(!names(&plan).contains(&"mark_pod"));
}

#[test]
fn a_requester_of_an_eviction_is_listed_once() {
    let mut recorded = RemovalRequests::default();
    for requester in ["acme.io/drain", "jane"] {
        recorded
            .record(requester, RemovalType::Eviction, seconds_ago(30))
            .unwrap();
    }
    let one = asks(&[("/spec/replicas", json!(1))]);
    let pods = [tolerating(&json!([]), Some(recorded.text()))];
    let requesters = ["acme.io/drain", "acme.io/drain"];
    let plan = decided_on_eviction(&requesters, Some(20), None, &one, &pods);
    let wanted = [
        entry("jane", "Eviction", 30),
        entry("acme.io/drain", "EvictionRequest", 20),
    ];
    assert_eq!(listed(&plan), wanted);
    assert_eq!(status(&plan).removal_pending_replicas, 1);
    assert_eq!(names(&plan), ["mark_pod"], "the recorded request is kept");
    let expiration = seconds_ago(30 - 900);
    assert_eq!(plan.wake, Some(expiration), "the request of jane expires");
}

#[test]
fn a_requester_of_an_eviction_is_cut_like_that_of_a_recorded_request() {
    let long = |end: &str| format!("acme.io/{}{end}", "é".repeat(MAX_REQUESTER_BYTES));
    let mut recorded = RemovalRequests::default();
    let recording = recorded.record(&long(""), RemovalType::Eviction, seconds_ago(30));
    recording.unwrap();
    let cut = recorded.iter().next().unwrap().requester.clone();
    assert!(cut.len() <= MAX_REQUESTER_BYTES);
    let (first, second) = (long("1"), long("2"));
    let one = asks(&[("/spec/replicas", json!(1))]);
    for requests in [None, Some(recorded.text())] {
        let pods = [tolerating(&json!([]), requests)];
        let plan = decided_on_eviction(&[&first, &second], Some(20), None, &one, &pods);
        assert_eq!(listed(&plan), [entry(&cut, "EvictionRequest", 20)]);
    }
}

#[test]
fn the_status_lists_the_time_since_which_an_eviction_is_active() {
    let known = json!({
        "podName": "a", "podUID": "uid-a", "requester": "acme.io/drain", "type": "EvictionRequest",
        "requestTime": "2024-05-31T23:59:00Z",
    });
    for (since, known, age) in [
        (Some(20), json!([]), 20),
        (Some(20), json!([known]), 20),
        (None, json!([]), 0),
        (None, json!([known]), 60),
    ] {
        let status = json!({ "removalRequests": known });
        let one = asks(&[("/spec/replicas", json!(1)), ("/status", status)]);
        let plan = decided_on_eviction(&["acme.io/drain"], since, None, &one, &[guarded()]);
        let wanted = [entry("acme.io/drain", "EvictionRequest", age)];
        assert_eq!(listed(&plan), wanted, "{since:?} {known}");
    }
}

#[test]
fn a_pod_on_a_cordoned_node_has_the_requests_of_its_eviction_too() {
    let one = asks(&[(ON_CORDON, json!("Ask")), ("/spec/replicas", json!(1))]);
    let node = Some(cordoned());
    let plan = decided_on_eviction(&["acme.io/drain"], Some(20), node, &one, &[guarded()]);
    let wanted = [
        entry("acme.io/drain", "EvictionRequest", 20),
        entry("node/node", "Cordon", 0),
    ];
    assert_eq!(listed(&plan), wanted);
    assert_eq!(status(&plan).removal_pending_replicas, 1);
}
