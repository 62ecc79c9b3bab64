use gamedeployment_core::workload::Workload;
use serde_json::{Value, json};
use shared_api::GameDeployment;
use shared_api::names::pod::SKIP_HOOK;
use shared_api::time::Time;

use super::*;
use crate::review;

const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// Paths of fields, as names separated by spaces.
const LABELS: &str = "metadata labels";
const ANNOTATIONS: &str = "metadata annotations";
const OWNERS: &str = "metadata ownerReferences";
const TERMINATING: &str = "metadata deletionTimestamp";

/// Returns the owner references of a pod that this object controls.
fn owners(api_version: &str, kind: &str, controller: Value) -> Value {
    json!([
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "arena", "uid": "other" },
        { "apiVersion": api_version, "kind": kind, "name": "arena", "uid": "owner", "controller": controller },
    ])
}

/// Returns a running pod of a GameDeployment.
fn guarded() -> Value {
    json!({
        "metadata": {
            "name": "arena-0", "namespace": "games", "uid": "pod", "resourceVersion": "7",
            "labels": { "app": "arena", REMOVAL_GUARD: REMOVAL_GUARD_ASK }, "annotations": { "room": "7" },
            "ownerReferences": owners("tkex.tencent.com/v1alpha1", "GameDeployment", json!(true)),
        },
        "spec": { "nodeName": "node-0", "containers": [{ "name": "game" }] },
        "status": { "phase": "Running" },
    })
}

/// Returns the same pod with another value of this field.
fn changed(path: &str, value: Value) -> Value {
    let mut pod = guarded();
    let field = path.split(' ').fold(&mut pod, |object, name| &mut object[name]);
    *field = value;
    pod
}

fn parsed(pod: &Value) -> GuardedPod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// Judges a request with these changes.
fn judged(request: Value) -> RemovalDecision {
    judged_after(&RecentDenials::default(), 1000, request)
}

/// Judges a request with these changes at this second, after these denials.
fn judged_after(recent: &RecentDenials, second: i64, request: Value) -> RemovalDecision {
    let mut whole = json!({
        "uid": "u", "kind": { "group": "", "version": "v1", "kind": "Pod" }, "operation": "DELETE",
        "namespace": "games", "userInfo": { "username": "jane" },
    });
    for (field, value) in request.as_object().unwrap() {
        whole[field] = value.clone();
    }
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole });
    let received = review::read(review.to_string().as_bytes()).unwrap();
    let operators = [OPERATOR.to_owned()];
    let entries = GuardEntries::Complete;
    judge(
        received.removal().unwrap(),
        &operators,
        recent,
        entries,
        at(second),
    )
}

fn eviction(delete_options: Value) -> Value {
    json!({
        "kind": { "group": "policy", "version": "v1", "kind": "Eviction" }, "operation": "CREATE",
        "subResource": "eviction", "name": "arena-0",
        "object": { "metadata": { "name": "arena-0" }, "deleteOptions": delete_options },
    })
}

fn needed(decision: RemovalDecision) -> Removal {
    match decision {
        RemovalDecision::NeedsPod(removal) => removal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_running_guarded_pod_is_kept_and_all_others_are_not() {
    let label = format!("{LABELS} {REMOVAL_GUARD}");
    let skip = format!("{ANNOTATIONS} {SKIP_HOOK}");
    let (label, skip) = (label.as_str(), skip.as_str());
    let group = "tkex.tencent.com";
    for (path, value, is_kept) in [
        (ANNOTATIONS, Value::Null, true),
        (LABELS, Value::Null, false),
        (label, json!("Off"), false),
        (TERMINATING, json!("2026-01-01T00:00:00Z"), false),
        (OWNERS, Value::Null, false),
        (
            OWNERS,
            owners(&format!("{group}/v1"), "GameDeployment", json!(true)),
            true,
        ),
        (
            OWNERS,
            owners(&format!("{group}/v1"), "GameDeployment", json!(false)),
            false,
        ),
        (
            OWNERS,
            owners(&format!("{group}/v1"), "GameDeployment", Value::Null),
            false,
        ),
        (
            OWNERS,
            owners(&format!("{group}/v1"), "ReplicaSet", json!(true)),
            false,
        ),
        (
            OWNERS,
            owners("example.com/v1", "GameDeployment", json!(true)),
            false,
        ),
        ("spec nodeName", Value::Null, false),
        ("spec nodeName", json!(""), false),
        ("status phase", json!("Pending"), true),
        ("status phase", json!("Unknown"), true),
        ("status phase", json!("Succeeded"), false),
        ("status phase", json!("Failed"), false),
        (skip, json!("pod"), false),
        (skip, json!("other"), true),
        (skip, json!(""), true),
    ] {
        let pod = changed(path, value);
        let decision = judged(json!({ "oldObject": pod }));
        assert_eq!(decision != RemovalDecision::Allowed, is_kept, "deletion: {pod}");
        let removal = needed(judged(eviction(Value::Null)));
        let is_evicted = removal.keeper(&parsed(&pod)).is_none();
        // The operator may not have set the label yet.
        let is_kept = is_kept || path.starts_with(LABELS);
        assert_eq!(is_evicted, !is_kept, "eviction: {pod}");
    }
}

#[test]
fn only_the_operator_is_let_through_and_only_with_the_uid_of_the_pod() {
    for (user, uid, is_kept) in [
        (OPERATOR, json!("pod"), false),
        (OPERATOR, json!(""), true),
        (OPERATOR, Value::Null, true),
        (COLLECTOR, json!("pod"), true),
        ("", json!("pod"), true),
    ] {
        let options = json!({ "preconditions": { "uid": uid }, "gracePeriodSeconds": 30 });
        let user_info = json!({ "username": user });
        let deletion = json!({ "oldObject": guarded(), "options": options, "userInfo": user_info });
        let decision = judged(deletion);
        assert_eq!(
            decision != RemovalDecision::Allowed,
            is_kept,
            "deletion: {user} {uid}"
        );
        let mut eviction = eviction(options);
        eviction["userInfo"] = user_info;
        let removal = needed(judged(eviction));
        let keeper = removal.keeper(&parsed(&guarded())).is_some();
        assert_eq!(keeper, is_kept, "eviction: {user} {uid}");
    }
    let of_another = eviction(json!({ "preconditions": { "uid": "another" } }));
    let removal = needed(judged(of_another));
    assert_eq!(removal.keeper(&parsed(&guarded())), None);
}

#[test]
fn a_removal_has_the_name_the_requester_and_both_kinds_of_dry_run() {
    let options = |stages: Value| json!({ "dryRun": stages });
    let deletion = |options: Value| json!({ "oldObject": guarded(), "name": "", "options": options });
    for (request, type_, is_dry_run) in [
        (deletion(Value::Null), RemovalType::Delete, false),
        (deletion(options(json!(["All"]))), RemovalType::Delete, true),
        (eviction(Value::Null), RemovalType::Eviction, false),
        (eviction(options(json!([]))), RemovalType::Eviction, false),
        (eviction(options(json!(["All"]))), RemovalType::Eviction, true),
    ] {
        for in_query in [false, true] {
            let mut request = request.clone();
            request["dryRun"] = json!(in_query);
            let removal = needed(judged(request));
            let wanted = Removal {
                type_,
                requester: "jane".to_owned(),
                namespace: "games".to_owned(),
                pod_name: "arena-0".to_owned(),
                uid: None,
                is_by_operator: false,
                is_dry_run: is_dry_run || in_query,
            };
            assert_eq!(removal, wanted);
        }
    }
}

#[test]
fn other_writes_are_allowed() {
    let pod = guarded();
    for request in [
        json!({ "operation": "CREATE", "object": pod }),
        json!({ "operation": "DELETE", "oldObject": pod, "subResource": "status" }),
        json!({ "operation": "UPDATE", "object": null, "oldObject": pod, "subResource": "status" }),
        json!({ "operation": "CONNECT", "subResource": "exec" }),
        json!({ "oldObject": pod, "kind": { "group": "", "kind": "Service" } }),
        json!({ "operation": "UPDATE", "object": null, "oldObject": null, "kind": { "kind": "Namespace" } }),
    ] {
        assert_eq!(judged(request.clone()), RemovalDecision::Allowed, "{request}");
    }
}

#[test]
fn only_the_operator_removes_the_label() {
    let label = format!("{LABELS} {REMOVAL_GUARD}");
    let without = || changed(&label, Value::Null);
    let terminating = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod
    };
    let mut free = changed(OWNERS, Value::Null);
    free["metadata"]["labels"] = Value::Null;
    for (user, old, new, is_allowed) in [
        ("jane", guarded(), guarded(), true),
        ("jane", without(), guarded(), true),
        ("jane", guarded(), without(), false),
        ("jane", guarded(), changed(&label, json!("Off")), false),
        ("jane", guarded(), changed(LABELS, Value::Null), false),
        ("jane", guarded(), free.clone(), false),
        ("jane", changed(OWNERS, Value::Null), free, true),
        ("jane", terminating(guarded()), terminating(without()), true),
        (COLLECTOR, guarded(), changed(OWNERS, Value::Null), true),
        (OPERATOR, guarded(), without(), true),
    ] {
        let request = json!({
            "operation": "UPDATE", "object": new, "oldObject": old, "userInfo": { "username": user },
        });
        let decision = judged(request);
        assert_eq!(decision == RemovalDecision::Allowed, is_allowed, "{user} {new}");
        if !is_allowed {
            assert_eq!(decision, label_denial());
        }
    }
}

/// Returns the denial of an update that removes the label.
fn label_denial() -> RemovalDecision {
    let message = "the label tkex.tencent.com/removal-guard of pod arena-0 must not be changed, because it guards the \
                   pod against removal; to remove it from all pods of the GameDeployment, set spec.disruption.policy \
                   to Unguarded";
    RemovalDecision::Denied(AdmissionDecision::ForbiddenWithCause(GUARDED, message.to_owned()))
}

/// The operator sends it to check whether the guard is in effect.
#[test]
fn a_dry_run_that_removes_the_label_is_denied_to_the_operator_as_well() {
    let label = format!("{LABELS} {REMOVAL_GUARD}");
    let mut orphan = changed(&label, Value::Null);
    orphan["metadata"]["ownerReferences"] = Value::Null;
    let ending = changed(TERMINATING, json!("2026-01-01T00:00:00Z"));
    for (old, new, is_allowed) in [
        (guarded(), changed(&label, Value::Null), false),
        (guarded(), changed(&label, json!("Off")), false),
        (guarded(), guarded(), true),
        (changed(&label, Value::Null), changed(&label, Value::Null), true),
        (changed(OWNERS, Value::Null), orphan, true),
        (ending, changed(&label, Value::Null), true),
    ] {
        for user in [OPERATOR, "jane"] {
            let request = json!({
                "operation": "UPDATE", "object": new, "oldObject": old, "dryRun": true,
                "userInfo": { "username": user },
            });
            let wanted = if is_allowed {
                RemovalDecision::Allowed
            } else {
                label_denial()
            };
            assert_eq!(judged(request), wanted, "{user} {new}");
        }
    }
}

/// The label stays in any case.
#[test]
fn only_a_check_by_the_operator_reports_missing_entries() {
    let unlabelled = changed(&format!("{LABELS} {REMOVAL_GUARD}"), Value::Null);
    let answered = |user: &str, entries: GuardEntries| {
        let request = json!({
            "uid": "u", "kind": { "group": "", "version": "v1", "kind": "Pod" }, "operation": "UPDATE",
            "namespace": "games", "userInfo": { "username": user }, "dryRun": true,
            "object": unlabelled, "oldObject": guarded(),
        });
        let review =
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
        let received = review::read(review.to_string().as_bytes()).unwrap();
        let (operators, recent) = ([OPERATOR.to_owned()], RecentDenials::default());
        judge(
            received.removal().unwrap(),
            &operators,
            &recent,
            entries,
            at(1000),
        )
    };
    let missing = || GuardEntries::Incomplete("webhook evictions is missing".to_owned());
    for entries in [GuardEntries::Complete, missing(), GuardEntries::Unknown] {
        assert_eq!(answered("jane", entries), label_denial());
    }
    assert_eq!(answered(OPERATOR, GuardEntries::Complete), label_denial());
    let incomplete =
        AdmissionDecision::ForbiddenWithCause(INCOMPLETE, "webhook evictions is missing".to_owned());
    assert_eq!(answered(OPERATOR, missing()), RemovalDecision::Denied(incomplete));
    let unknown = AdmissionDecision::Forbidden(UNKNOWN.to_owned());
    assert_eq!(
        answered(OPERATOR, GuardEntries::Unknown),
        RemovalDecision::Denied(unknown)
    );
}

#[test]
fn the_response_to_the_removal_of_the_label_has_the_cause() {
    let decision = AdmissionDecision::ForbiddenWithCause(GUARDED, "kept".to_owned());
    let cause = json!({ "reason": "RemovalGuarded", "message": "kept", "field": "metadata.labels" });
    let status = json!({
        "status": "Failure", "code": 403, "reason": "Forbidden", "message": "kept",
        "details": { "causes": [cause] },
    });
    assert_eq!(
        review::answer("u", &decision)["response"],
        json!({ "uid": "u", "allowed": false, "status": status })
    );
    assert_eq!(decision.as_str(), "refused");
}

#[test]
fn the_deletion_of_a_namespace_depends_on_its_pods_unless_it_is_terminating() {
    let kind = json!({ "kind": "Namespace" });
    let deletion = |old: Value| judged(json!({ "kind": kind, "name": "games", "oldObject": old }));
    let pending = RemovalDecision::NeedsNamespace(NamespaceDeletion::new("games"));
    let terminating = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    for (old, wanted) in [
        (json!({ "metadata": { "name": "games" } }), &pending),
        (json!({ "metadata": { "deletionTimestamp": null } }), &pending),
        (json!({}), &pending),
        (Value::Null, &pending),
        (terminating, &RemovalDecision::Allowed),
    ] {
        assert_eq!(deletion(old.clone()), *wanted, "{old}");
    }
    for (field, value) in [
        ("dryRun", json!(true)),
        ("options", json!({ "dryRun": ["All"] })),
        ("userInfo", json!({ "username": OPERATOR })),
    ] {
        let mut request = json!({ "kind": kind, "name": "games" });
        request[field] = value;
        assert_eq!(judged(request), pending, "{field}");
    }
}

#[test]
fn a_pod_that_no_parser_can_follow_is_judged() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = guarded().to_string();
    let text = text.replacen(r#""containers""#, &format!(r#""deep":{deep},"containers""#), 1);
    assert!(text.len() > 200_000);
    let pod: GuardedPod = serde_json::from_str(&text).unwrap();
    assert_eq!(pod, parsed(&guarded()));
}

/// Returns a GameDeployment that keeps its pods, with another value of this field.
fn workload(path: &str, value: Value) -> Value {
    let mut workload = json!({
        "metadata": { "name": "arena", "uid": "owner" },
        "spec": {
            "disruption": { "policy": "Ask", "requestExpirationSeconds": 60 },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "empty", "args": [] }, "retry": false },
        },
    });
    let field = path
        .split(' ')
        .fold(&mut workload, |object, name| &mut object[name]);
    *field = value;
    workload
}

/// Returns the same GameDeployment while it is being deleted with these finalizers.
fn terminating(mut workload: Value, finalizers: Value) -> Value {
    workload["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    workload["metadata"]["finalizers"] = finalizers;
    workload
}

#[test]
fn a_workload_with_a_hook_keeps_its_pods_until_its_policy_changes_or_it_is_deleted_without_the_finalizer() {
    let pod = parsed(&guarded());
    let owner = pod.controller().unwrap();
    let (policy, hook) = ("spec disruption policy", "spec preDeleteUpdateStrategy");
    let guarded = || workload("metadata name", json!("arena"));
    let ours = || json!(["example.com/kept", ASK_BEFORE_REMOVAL]);
    let recorded = |seconds| Some(Keeping::Recorded(SignedDuration::from_secs(seconds)));
    for (found, wanted) in [
        (guarded(), recorded(60)),
        (
            workload("spec disruption requestExpirationSeconds", Value::Null),
            recorded(900),
        ),
        (workload("metadata finalizers", ours()), recorded(60)),
        (workload("metadata uid", json!("other")), None),
        (workload("metadata uid", json!("")), None),
        (workload("spec disruption", Value::Null), None),
        (workload(policy, json!("Unguarded")), None),
        (workload(policy, Value::Null), None),
        // A PodDisruptionBudget decides.
        (workload(hook, Value::Null), None),
        (workload(hook, json!({})), None),
        (workload(hook, json!({ "hook": null, "retry": true })), None),
        (terminating(guarded(), ours()), Some(Keeping::BeingDeleted)),
        (terminating(guarded(), Value::Null), None),
        (terminating(guarded(), json!([])), None),
        (
            terminating(guarded(), json!(["orphan", "foregroundDeletion"])),
            None,
        ),
        (terminating(workload(policy, json!("Unguarded")), ours()), None),
        (terminating(workload(hook, Value::Null), ours()), None),
        (
            terminating(workload("metadata uid", json!("other")), ours()),
            None,
        ),
    ] {
        let read: KeepingWorkload = serde_json::from_value(found.clone()).unwrap();
        assert_eq!(KeepingWorkload::keeping(Some(&read), owner), wanted, "{found}");
    }
    assert_eq!(KeepingWorkload::keeping(None, owner), None);
}

/// The removal is then denied, because the lookup has failed.
#[test]
fn a_workload_with_a_field_of_another_type_is_not_read() {
    for (path, value) in [
        ("metadata", json!([1])),
        ("metadata uid", json!(1)),
        ("metadata deletionTimestamp", json!(1)),
        ("metadata finalizers", json!({})),
        ("metadata finalizers", json!([1])),
        ("spec", json!("Ask")),
        ("spec disruption", json!("Ask")),
        ("spec disruption policy", json!(1)),
        ("spec disruption requestExpirationSeconds", json!("60")),
        ("spec preDeleteUpdateStrategy", json!("empty")),
    ] {
        let found = workload(path, value);
        let read: Result<KeepingWorkload, _> = serde_json::from_value(found.clone());
        assert!(read.is_err(), "{found}");
    }
}

#[test]
fn the_default_expiration_is_that_of_the_workload() {
    let template = json!({
        "metadata": { "labels": { "app": "arena" } },
        "spec": { "containers": [{ "name": "game", "image": "game:v1" }] },
    });
    let game: GameDeployment = serde_json::from_value(json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": { "name": "arena", "namespace": "games" },
        "spec": { "selector": { "matchLabels": { "app": "arena" } }, "template": template },
    }))
    .unwrap();
    let expiration = Workload::read(&game).unwrap().disruption.request_expiration;
    assert_eq!(
        expiration,
        SignedDuration::from_secs(DEFAULT_EXPIRATION_SECONDS.into())
    );
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Returns a pod with this annotation.
fn requested(annotation: &str) -> Value {
    changed(&format!("{ANNOTATIONS} {REMOVAL_REQUESTED}"), json!(annotation))
}

/// Returns the annotation that records an eviction by a user at second 1000. Requests are valid for 60 s.
fn annotated(user: &str, before: &str) -> Result<Option<String>, Recording> {
    let mut request = eviction(Value::Null);
    request["userInfo"] = json!({ "username": user });
    let pod = parsed(&requested(before));
    needed(judged(request)).annotation(&pod, at(1000), SignedDuration::from_secs(60))
}

#[test]
fn a_request_is_recorded_once_and_its_repetition_after_a_quarter_of_its_validity() {
    let long = "x".repeat(300);
    for user in ["jane", long.as_str()] {
        let recorded = |seconds: &[i64]| {
            let mut requests = RemovalRequests::default();
            for second in seconds {
                requests.record("other", RemovalType::Delete, at(990)).unwrap();
                requests.record(user, RemovalType::Eviction, at(*second)).unwrap();
            }
            requests.text()
        };
        let now = |before: &str| {
            let mut requests = RemovalRequests::parse(before).unwrap_or_default();
            requests.record(user, RemovalType::Eviction, at(1000)).unwrap();
            Some(requests.text())
        };
        for (before, wanted) in [
            // The clock of another replica may be ahead.
            (recorded(&[1010]), None),
            (recorded(&[1000]), None),
            (recorded(&[986]), None),
            (recorded(&[945, 986]), None),
            (recorded(&[985]), now(&recorded(&[985]))),
            (recorded(&[945, 985]), now(&recorded(&[945, 985]))),
            (String::new(), now("")),
            ("{}".to_owned(), now("")),
        ] {
            assert_eq!(annotated(user, &before), Ok(wanted), "{before}");
        }
    }
}

#[test]
fn a_longer_validity_needs_fewer_records() {
    let removal = needed(judged(eviction(Value::Null)));
    for (second, is_recorded) in [(776, false), (775, true)] {
        let mut requests = RemovalRequests::default();
        requests
            .record("jane", RemovalType::Eviction, at(second))
            .unwrap();
        let pod = parsed(&requested(&requests.text()));
        let written = removal.annotation(&pod, at(1000), SignedDuration::from_secs(900));
        assert_eq!(written.unwrap().is_some(), is_recorded, "{second}");
    }
}

/// An uncordon withdraws evictions, but no confirmed deletion.
#[test]
fn a_deletion_is_recorded_after_an_eviction_by_the_same_user_and_stays_one() {
    let valid_for = SignedDuration::from_secs(60);
    let deletion = needed(judged(json!({ "oldObject": guarded() })));
    let after = |type_, second| {
        let mut requests = RemovalRequests::default();
        requests.record("jane", type_, at(second)).unwrap();
        requested(&requests.text())
    };
    let types = |written: Option<String>| {
        let requests = RemovalRequests::parse(&written.unwrap()).unwrap();
        requests.iter().map(|request| request.type_).collect::<Vec<_>>()
    };
    let evicted = after(RemovalType::Eviction, 999);
    let written = deletion.annotation(&parsed(&evicted), at(1000), valid_for);
    assert_eq!(types(written.unwrap()), [RemovalType::Delete]);
    let recent = RecentDenials::default();
    recent.record(
        &deletion,
        &parsed(&evicted),
        at(1000),
        Keeping::Recorded(valid_for),
    );
    needed(judged_after(&recent, 1001, json!({ "oldObject": evicted })));
    let eviction = needed(judged(eviction(Value::Null)));
    for type_ in [RemovalType::Delete, RemovalType::Manual] {
        let annotated = |second| eviction.annotation(&parsed(&after(type_, second)), at(1000), valid_for);
        assert_eq!(annotated(999), Ok(None));
        assert_eq!(types(annotated(985).unwrap()), [type_]);
    }
}

#[test]
fn the_annotation_of_a_newer_version_is_not_replaced() {
    let reason = "annotation tkex.tencent.com/removal-requested has version 2; this version of hookgate supports \
                  version 1";
    let written = annotated("jane", r#"{"v":2,"requests":[]}"#);
    assert_eq!(written, Err(Recording::Failed(reason.to_owned())));
}

/// They request a deletion only once.
#[test]
fn the_deletions_of_taint_controllers_are_valid_for_a_day() {
    let account = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    let deletion = json!({ "oldObject": guarded() });
    for (user, mut request, expiration) in [
        (
            account("node-controller"),
            deletion.clone(),
            Some(at(1000 + 86_400)),
        ),
        (
            account("taint-eviction-controller"),
            deletion.clone(),
            Some(at(1000 + 86_400)),
        ),
        (account("node-controller"), eviction(Value::Null), None),
        (account("replicaset-controller"), deletion, None),
    ] {
        request["userInfo"] = json!({ "username": user });
        let removal = needed(judged(request));
        let valid_for = SignedDuration::from_secs(60);
        let written = removal.annotation(&parsed(&guarded()), at(1000), valid_for);
        let requests = RemovalRequests::parse(&written.unwrap().unwrap()).unwrap();
        let recorded = requests.of(&user).unwrap();
        let found = recorded.expiration_time.map(Time::timestamp);
        assert_eq!(found, expiration, "{user}");
        let validity = expiration.map_or(60, |_| 86_400);
        assert_eq!(removal.validity(valid_for), SignedDuration::from_secs(validity));
    }
}

#[test]
fn a_deletion_that_was_just_denied_is_denied_again_without_lookups() {
    let valid_for = SignedDuration::from_secs(60);
    let mut requests = RemovalRequests::default();
    requests.record("jane", RemovalType::Delete, at(1000)).unwrap();
    let pod = requested(&requests.text());
    let deletion = json!({ "oldObject": pod });
    let removal = needed(judged(deletion.clone()));
    let recent = RecentDenials::default();
    recent.record(&removal, &parsed(&pod), at(1000), Keeping::Recorded(valid_for));
    let other_pod = {
        let mut pod = pod.clone();
        pod["metadata"]["uid"] = json!("other");
        json!({ "oldObject": pod })
    };
    let with = |field: &str, value: Value| {
        let mut request = deletion.clone();
        request[field] = value;
        request
    };
    for (second, request, is_denied) in [
        (1000, deletion.clone(), true),
        (1014, deletion.clone(), true),
        (1015, deletion.clone(), false),
        (999, deletion.clone(), false),
        (1001, with("dryRun", json!(true)), false),
        (1001, with("userInfo", json!({ "username": "joe" })), false),
        (1001, other_pod, false),
        // It was withdrawn.
        (1001, json!({ "oldObject": guarded() }), false),
    ] {
        let message = removal.message(&Recording::Recorded(valid_for));
        match judged_after(&recent, second, request) {
            RemovalDecision::Denied(found) => {
                assert!(is_denied, "{second}");
                assert_eq!(found, AdmissionDecision::Forbidden(message));
            }
            RemovalDecision::NeedsPod(_) => assert!(!is_denied, "{second}"),
            RemovalDecision::Allowed | RemovalDecision::NeedsNamespace(_) => panic!("{second}"),
        }
    }
    // The repetition must be recorded before the request expires.
    recent.record(&removal, &parsed(&pod), at(1014), Keeping::Recorded(valid_for));
    needed(judged_after(&recent, 1016, deletion));
}

/// Nothing is recorded on the pod.
#[test]
fn a_deletion_that_was_just_denied_because_its_game_deployment_is_being_deleted_is_denied_again() {
    let deletion = json!({ "oldObject": guarded() });
    let removal = needed(judged(deletion.clone()));
    let recent = RecentDenials::default();
    recent.record(&removal, &parsed(&guarded()), at(1000), Keeping::BeingDeleted);
    let message = removal.message(&Recording::BeingDeleted("arena".to_owned()));
    let with = |field: &str, value: Value| {
        let mut request = deletion.clone();
        request[field] = value;
        request
    };
    for (second, request) in [
        (1000, deletion.clone()),
        (1014, deletion.clone()),
        (1001, with("dryRun", json!(true))),
    ] {
        let decision = judged_after(&recent, second, request);
        let denial = AdmissionDecision::Forbidden(message.clone());
        assert_eq!(decision, RemovalDecision::Denied(denial), "{second}");
    }
    for (second, request) in [
        (1015, deletion.clone()),
        (999, deletion.clone()),
        (1001, with("userInfo", json!({ "username": "joe" }))),
        (
            1001,
            json!({ "oldObject": changed("metadata uid", json!("other")) }),
        ),
    ] {
        needed(judged_after(&recent, second, request));
    }
    let approved = json!({ "username": OPERATOR });
    let mut approved = with("userInfo", approved);
    approved["options"] = json!({ "preconditions": { "uid": "pod" } });
    assert_eq!(judged_after(&recent, 1001, approved), RemovalDecision::Allowed);
}

/// Returns a guarded pod with this UID, and with the requests of these users at second 1000.
fn requested_by(users: &[&str], uid: &str) -> Value {
    let mut requests = RemovalRequests::default();
    for user in users {
        requests.record(user, RemovalType::Delete, at(1000)).unwrap();
    }
    let mut pod = requested(&requests.text());
    pod["metadata"]["uid"] = json!(uid);
    pod
}

/// Returns the code of the denial that needs no lookups.
fn code(decision: RemovalDecision) -> u64 {
    let RemovalDecision::Denied(denial) = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(denial.as_str(), "refused");
    let status = &review::answer("u", &denial)["response"]["status"];
    let (code, details) = (status["code"].as_u64().unwrap(), &status["details"]);
    if code == 429 {
        assert_eq!(*details, json!({ "retryAfterSeconds": 5 }));
        assert_eq!(status["reason"], "TooManyRequests");
    } else {
        assert_eq!(*details, Value::Null);
    }
    code
}

#[test]
fn a_deletion_that_is_denied_too_often_in_a_short_time_makes_the_client_wait() {
    let valid_for = SignedDuration::from_secs(900);
    let recent = RecentDenials::default();
    let users = ["jane", "joe"];
    let pod = requested_by(&users, "pod");
    let by = |user: &str, pod: &Value| json!({ "oldObject": pod, "userInfo": { "username": user } });
    let deletion = by("jane", &pod);
    let record = |request: &Value, second: i64| {
        let removal = needed(judged(request.clone()));
        let pod = parsed(&request["oldObject"]);
        recent.record(&removal, &pod, at(second), Keeping::Recorded(valid_for));
    };
    let repeat = |request: &Value, second: i64| judged_after(&recent, second, request.clone());
    let other_pod = by("jane", &requested_by(&users, "other"));
    for request in [&deletion, &by("joe", &pod), &other_pod] {
        record(request, 1000);
    }
    let mut dry_run = deletion.clone();
    dry_run["dryRun"] = json!(true);
    // The denial that was recorded is the first one.
    for denial in 2..=MAX_FORBIDDEN {
        assert_eq!(code(repeat(&deletion, 1001)), 403, "{denial}");
        needed(repeat(&dry_run, 1001));
    }
    for second in [1001, 1014] {
        assert_eq!(code(repeat(&deletion, second)), 429, "{second}");
    }
    for request in [by("joe", &pod), other_pod] {
        assert_eq!(code(repeat(&request, 1014)), 403, "{request}");
    }
    needed(repeat(&dry_run, 1014));
    // The denial is no longer recent, so the pod is looked up again.
    needed(repeat(&deletion, 1015));
    record(&deletion, 1015);
    for denial in 2..=MAX_FORBIDDEN {
        assert_eq!(code(repeat(&deletion, 1016)), 403, "{denial}");
    }
    assert_eq!(code(repeat(&deletion, 1016)), 429);
}

#[test]
fn a_denial_that_makes_the_client_wait_says_why() {
    let deletion = needed(judged(json!({ "oldObject": guarded() })));
    let repetition = Repetition {
        recording: Recording::Recorded(SignedDuration::from_secs(900)),
        is_too_frequent: true,
    };
    let message = "pod arena-0 is kept until its PreDelete hook succeeds; it is then deleted and replaced. Details: \
                   kubectl game why pod/arena-0 -n games. The request is recorded, and expires within 15m unless it \
                   is repeated. This deletion was denied at least";
    let wanted = AdmissionDecision::TooFrequent {
        message: format!("{message} {MAX_FORBIDDEN} times within 15s; wait 5s before you repeat it"),
        retry_after_seconds: 5,
    };
    assert_eq!(deletion.repeated_denial(&repetition), wanted);
}

/// The garbage collector would wait in one of its few workers.
#[test]
fn repeated_deletions_of_a_pod_whose_game_deployment_is_being_deleted_do_not_make_the_client_wait() {
    let recent = RecentDenials::default();
    let deletion = json!({ "oldObject": guarded(), "userInfo": { "username": COLLECTOR } });
    let removal = needed(judged(deletion.clone()));
    recent.record(&removal, &parsed(&guarded()), at(1000), Keeping::BeingDeleted);
    for denial in 2..=2 * MAX_FORBIDDEN {
        assert_eq!(
            code(judged_after(&recent, 1001, deletion.clone())),
            403,
            "{denial}"
        );
    }
}

#[test]
fn a_flood_of_denials_does_not_fill_the_memory() {
    let recent = RecentDenials::default();
    let valid_for = SignedDuration::from_secs(60);
    let denied = |number: usize, second: i64| {
        let requester = format!("user-{number}");
        let mut requests = RemovalRequests::default();
        requests
            .record(&requester, RemovalType::Delete, at(second))
            .unwrap();
        let pod = requested(&requests.text());
        let request = json!({ "oldObject": pod, "userInfo": { "username": requester } });
        let removal = needed(judged(request.clone()));
        recent.record(&removal, &parsed(&pod), at(second), Keeping::Recorded(valid_for));
        judged_after(&recent, second, request)
    };
    for number in 0..1024 {
        assert!(matches!(denied(number, 1000), RemovalDecision::Denied(_)));
    }
    assert!(matches!(denied(1024, 1000), RemovalDecision::NeedsPod(_)));
    assert!(matches!(denied(1025, 1015), RemovalDecision::Denied(_)));
}

#[test]
fn expired_requests_make_room_for_a_new_one() {
    let full = |second: i64| {
        let mut requests = RemovalRequests::default();
        for number in 0..8 {
            let requester = format!("drain-{number}");
            requests
                .record(&requester, RemovalType::Eviction, at(second))
                .unwrap();
        }
        requests.text()
    };
    assert_eq!(
        annotated("jane", &full(950)),
        Err(Recording::TooMany(TooManyRequests))
    );
    assert_eq!(annotated("drain-7", &full(990)), Ok(None));
    let written = annotated("jane", &full(940)).unwrap().unwrap();
    let requests = RemovalRequests::parse(&written).unwrap();
    let requesters: Vec<&str> = requests
        .iter()
        .map(|request| request.requester.as_str())
        .collect();
    assert_eq!(requesters, ["jane"]);
}

#[test]
fn a_validity_is_written_in_its_largest_whole_unit() {
    for (seconds, text) in [
        (0, "0s"),
        (60, "60s"),
        (90, "90s"),
        (120, "2m"),
        (150, "150s"),
        (900, "15m"),
        (3600, "60m"),
        (5400, "90m"),
        (86_400, "24h"),
    ] {
        assert_eq!(short(SignedDuration::from_secs(seconds)), text);
    }
}

#[test]
fn a_denial_says_whether_the_request_is_recorded() {
    let kept = "pod arena-0 is kept until its PreDelete hook succeeds; it is then deleted and replaced. Details: \
                kubectl game why pod/arena-0 -n games";
    let deleted = "pod arena-0 is kept until its PreDelete hook succeeds; it is then deleted, because GameDeployment \
                   arena is being deleted. Details: kubectl game why pod/arena-0 -n games";
    let failed = Recording::Failed("failed to read the pod: timeout (504)".to_owned());
    let not_recorded =
        "pod arena-0 is kept, and the request is not recorded (failed to read the pod: timeout (504))";
    let deletion = needed(judged(json!({ "oldObject": guarded() })));
    let eviction = needed(judged(eviction(Value::Null)));
    let others =
        "This request is not recorded, because 8 others have already requested the removal of this pod";
    for (recording, of_eviction, of_deletion) in [
        (
            Recording::Recorded(SignedDuration::from_secs(900)),
            kept.to_owned(),
            format!("{kept}. The request is recorded, and expires within 15m unless it is repeated"),
        ),
        (Recording::DryRun, kept.to_owned(), kept.to_owned()),
        (
            Recording::BeingDeleted("arena".to_owned()),
            deleted.to_owned(),
            deleted.to_owned(),
        ),
        (
            Recording::TooMany(TooManyRequests),
            format!("{kept}. {others}"),
            format!("{kept}. {others}"),
        ),
        (
            failed,
            format!("{not_recorded}; kubectl drain repeats it, and other clients must send it again"),
            format!("{not_recorded}; run the command again"),
        ),
    ] {
        assert_eq!(
            eviction.denial(&recording),
            AdmissionDecision::Pending(of_eviction)
        );
        assert_eq!(
            deletion.denial(&recording),
            AdmissionDecision::Forbidden(of_deletion)
        );
    }
    let denied = review::answer("u", &AdmissionDecision::Pending("wait".to_owned()));
    let status = json!({ "status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "wait" });
    assert_eq!(
        denied["response"],
        json!({ "uid": "u", "allowed": false, "status": status })
    );
}
