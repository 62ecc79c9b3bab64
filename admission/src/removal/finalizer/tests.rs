use serde_json::{Value, json};

use super::*;
use crate::review;

const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";
const KEPT: &str = "example.com/kept";

/// Returns a GameDeployment that is being deleted with these finalizers, with another value of this field.
fn workload(finalizers: &[&str], path: &str, value: Value) -> Value {
    let mut workload = json!({
        "metadata": {
            "name": "arena", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers, "labels": {},
        },
        "spec": {
            "disruption": { "policy": "Ask" },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } },
        },
        "status": { "replicas": 3 },
    });
    let field = path
        .split(' ')
        .fold(&mut workload, |object, name| &mut object[name]);
    *field = value;
    workload
}

fn held() -> Value {
    workload(&[KEPT, ASK_BEFORE_REMOVAL], "metadata labels", json!({}))
}

fn released() -> Value {
    workload(&[KEPT], "metadata labels", json!({}))
}

/// Judges an update with these changes of the request.
fn judged(object: &Value, old: &Value, changes: Value) -> Option<AdmissionDecision> {
    let mut request = json!({
        "uid": "u", "kind": { "group": "tkex.tencent.com", "version": "v1alpha1", "kind": "GameDeployment" },
        "operation": "UPDATE", "name": "arena", "namespace": "games", "userInfo": { "username": "jane" },
        "object": object, "oldObject": old,
    });
    for (field, value) in changes.as_object().into_iter().flatten() {
        request[field] = value.clone();
    }
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let received = review::read(review.to_string().as_bytes()).unwrap();
    received.finalizer_removal(&[OPERATOR.to_owned()])
}

#[test]
fn the_finalizer_is_not_removed_while_pods_are_left() {
    let message = "the finalizer tkex.tencent.com/ask-before-removal of GameDeployment arena must not be removed while \
                   its pods are being deleted, because they would be deleted without running their hooks; to do that, \
                   set spec.disruption.policy to Unguarded";
    let denial = Some(AdmissionDecision::Forbidden(message.to_owned()));
    assert_eq!(judged(&released(), &held(), json!({})), denial);
    assert_eq!(judged(&released(), &held(), json!({ "dryRun": true })), denial);
    let user = json!({ "userInfo": { "username": "" } });
    assert_eq!(judged(&released(), &held(), user), denial);
    let new_without = |path: &str, value: Value| workload(&[KEPT], path, value);
    for (path, value) in [
        ("metadata finalizers", Value::Null),
        ("metadata finalizers", json!([])),
        // The API server restores it.
        ("metadata deletionTimestamp", Value::Null),
        // The old status counts.
        ("status replicas", json!(0)),
    ] {
        let new = new_without(path, value);
        assert_eq!(judged(&new, &held(), json!({})), denial, "{new}");
    }
    for (path, value) in [
        ("spec disruption policy", json!("Unguarded")),
        ("spec preDeleteUpdateStrategy", Value::Null),
        ("status replicas", Value::Null),
        ("status", Value::Null),
        ("status", json!({ "replicas": "none" })),
    ] {
        let old = workload(&[ASK_BEFORE_REMOVAL], path, value);
        assert_eq!(judged(&released(), &old, json!({})), denial, "{old}");
    }
}

#[test]
fn all_other_updates_are_allowed() {
    for (path, value) in [
        ("metadata labels", json!({ "a": "b" })),
        ("metadata deletionTimestamp", Value::Null),
        ("status replicas", json!(0)),
    ] {
        let old = workload(&[ASK_BEFORE_REMOVAL], path, value);
        let kept = workload(&[ASK_BEFORE_REMOVAL], "metadata labels", json!({}));
        assert_eq!(judged(&kept, &old, json!({})), None, "{old}");
        let is_held = path == "metadata labels";
        assert_eq!(judged(&released(), &old, json!({})).is_some(), is_held, "{old}");
    }
    assert_eq!(judged(&released(), &released(), json!({})), None);
    for (path, value) in [
        ("spec disruption policy", json!("Unguarded")),
        ("spec disruption", Value::Null),
        ("spec preDeleteUpdateStrategy", Value::Null),
    ] {
        let new = workload(&[KEPT], path, value);
        assert_eq!(judged(&new, &held(), json!({})), None, "{new}");
    }
    for changes in [
        json!({ "userInfo": { "username": OPERATOR } }),
        json!({ "subResource": "status" }),
        json!({ "operation": "CREATE" }),
        json!({ "operation": "DELETE" }),
        json!({ "kind": { "group": "tkex.tencent.com", "kind": "HookRun" } }),
        json!({ "kind": { "group": "apps", "kind": "GameDeployment" } }),
        json!({ "object": null }),
        json!({ "oldObject": null }),
        json!({ "oldObject": [1] }),
    ] {
        assert_eq!(judged(&released(), &held(), changes.clone()), None, "{changes}");
    }
}

#[test]
fn an_object_that_no_parser_can_follow_keeps_its_finalizer() {
    let deep = json!({ "deep": null }).to_string();
    let deep = deep.replace(
        "null",
        &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
    );
    let with = |object: Value| {
        let text = object.to_string();
        text.replacen(r#""labels":{}"#, &format!(r#""labels":{deep}"#), 1)
    };
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"UPDATE",
        "kind":{{"group":"tkex.tencent.com","kind":"GameDeployment"}},"object":{},"oldObject":{}}}}}"#,
        with(released()),
        with(held())
    );
    assert!(body.len() > 400_000);
    let received = review::read(body.as_bytes()).unwrap();
    assert!(received.finalizer_removal(&[]).is_some());
}
