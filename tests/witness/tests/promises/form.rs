//! Tests of preconditions, names, permissions and secrets.

use serde_json::{Value, json};

use crate::log::{Call, HOOKS, Log, OPERATOR, SOMEBODY};

fn empty() -> Log {
    Log::of(json!({ "replicas": 9 }))
}

/// Logs one refused write of the operator: its form counts all the same.
fn sent(call: Call<'_>, request: Value) -> Log {
    let mut log = empty();
    log.answered(call, "x", (request, json!({ "kind": "Status" })), 409);
    log
}

#[test]
fn a_pod_is_deleted_only_as_the_one_and_in_the_state_that_was_decided_on() {
    let call = Call(OPERATOR, "delete", "pods", "");
    let whole = json!({ "preconditions": { "uid": "u", "resourceVersion": "1" } });
    sent(call, whole).is_clean();
    sent(call, json!({ "preconditions": { "uid": "u" } }))
        .is_caught("without /preconditions/resourceVersion");
    sent(call, Value::Null).is_caught("without /preconditions/uid and /preconditions/resourceVersion");
}

#[test]
fn pods_and_workloads_are_patched_only_under_preconditions() {
    for (resource, subresource) in [("pods", ""), ("pods", "status"), ("gamedeployments", "status")] {
        let call = Call(OPERATOR, "patch", resource, subresource);
        sent(
            call,
            json!({ "metadata": { "uid": "u", "resourceVersion": "1" } }),
        )
        .is_clean();
        sent(call, json!({ "metadata": { "uid": "u" } })).is_caught("without /metadata/resourceVersion");
        sent(call, json!([{ "op": "replace" }])).is_caught("without /metadata/uid and");
    }
}

#[test]
fn a_run_is_deleted_only_as_the_one_that_is_meant() {
    let call = Call(OPERATOR, "delete", "hookruns", "");
    sent(call, json!({ "preconditions": { "uid": "u" } })).is_clean();
    sent(call, json!({})).is_caught("without /preconditions/uid");
    // Kubernetes 1.20 records no request of this kind.
    sent(call, Value::Null).is_clean();
}

#[test]
fn names_are_not_random() {
    let call = Call(OPERATOR, "create", "pods", "");
    sent(call, json!({ "metadata": { "name": "arena-x" } })).is_clean();
    sent(call, json!({ "metadata": { "generateName": "arena-" } })).is_caught("under a random name arena-");
}

#[test]
fn each_operator_keeps_to_its_own_objects() {
    let mut log = empty();
    log.newborn("a");
    log.ask("run", "a", "delete", json!({}));
    log.say_yes(HOOKS, "run");
    log.is_clean();
    log.write(Call(HOOKS, "patch", "pods", "status"), "a", json!({}), json!({}));
    log.is_caught("hook-operator wrote a pod");

    let mut log = empty();
    log.newborn("a");
    log.ask("run", "a", "delete", json!({}));
    log.say_yes(OPERATOR, "run");
    log.is_caught("gamedeployment-operator wrote a verdict itself");
}

#[test]
fn hooks_set_annotations_of_pods_that_open_no_gate() {
    let account = "system:serviceaccount:games:hookgate-hooks";
    let patch = Call(account, "patch", "pods", "");
    let annotations = |key: &str| json!({ "metadata": { "uid": "u", "annotations": { key: "1" } } });
    sent(patch, annotations("games.example.com/drain")).is_clean();
    sent(patch, json!({ "metadata": { "annotations": { "drain": "1" } } })).is_clean();
    sent(Call(account, "create", "jobs", ""), json!({ "spec": {} })).is_clean();
    for key in [
        "tkex.tencent.com/skip-hook",
        "inplace-update-state",
        "controller.kubernetes.io/pod-deletion-cost",
    ] {
        sent(patch, annotations(key)).is_caught("which belongs to the system");
    }
    let more = "a hook wrote more of a pod than its annotations";
    sent(patch, json!({ "metadata": { "annotations": {}, "labels": {} } })).is_caught(more);
    sent(patch, json!({ "metadata": { "annotations": {} }, "spec": {} })).is_caught(more);
    sent(patch, json!([{ "op": "add" }])).is_caught(more);
    sent(Call(account, "patch", "pods", "status"), annotations("a")).is_caught(more);
    sent(Call(account, "delete", "pods", ""), Value::Null).is_caught(more);
}

#[test]
fn a_missing_right_is_seen() {
    let mut log = empty();
    log.newborn("a");
    log.is_clean();
    let call = Call(HOOKS, "delete", "hookruns", "");
    log.answered(call, "run", (json!({}), json!({ "kind": "Status" })), 403);
    log.is_clean();
    let last = log.lines.pop().unwrap();
    let mut refused: Value = serde_json::from_str(&last).unwrap();
    refused["annotations"] = json!({ "authorization.k8s.io/decision": "forbid" });
    log.lines.push(refused.to_string());
    log.is_caught("hook-operator has no right to this");
}

#[test]
fn others_may_do_what_they_like() {
    let mut log = empty();
    log.newborn("a");
    log.line(
        Call(SOMEBODY, "delete", "pods", ""),
        "a",
        Value::Null,
        json!({ "kind": "Status" }),
    );
    log.is_clean();
}

#[test]
fn a_secret_is_seen_wherever_it_stands_and_not_repeated() {
    let mut log = empty();
    log.newborn("a");
    log.lines
        .push(r#"{"objectRef": {"namespace": "elsewhere"}, "requestURI": "/?token=hunter2"}"#.to_owned());
    let report = log.report_with(&["hunter3".to_owned()]);
    assert_eq!(report.violations, []);
    let report = log.report_with(&["hunter2".to_owned()]);
    let texts: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert!(
        texts.len() == 1 && texts[0].contains("elsewhere") && !texts[0].contains("hunter2"),
        "{texts:#?}"
    );
}

#[test]
fn a_line_that_cannot_be_read_is_no_line_to_pass_over() {
    let mut log = empty();
    log.newborn("a");
    log.lines.push(r#"{"objectRef": {"namespace": "games"#.to_owned());
    log.is_caught("a line of the audit log cannot be read");
}

#[test]
fn what_was_only_tried_out_or_read_is_no_write() {
    let mut log = empty();
    log.newborn("a");
    let judged = log.report().judged;
    log.line(Call(OPERATOR, "get", "pods", ""), "a", Value::Null, Value::Null);
    log.line(
        Call(OPERATOR, "delete", "pods", ""),
        "a?dryRun=All",
        Value::Null,
        Value::Null,
    );
    log.is_clean();
    assert_eq!((judged, log.report().judged), (1, 1));
}
