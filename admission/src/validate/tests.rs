use serde_json::json;

use super::*;

fn request(kind: &str, object: &Value, old: &Value) -> AdmissionRequest {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    serde_json::from_value(json!({
        "uid": "u", "kind": { "group": GROUP, "version": "v1alpha1", "kind": kind }, "operation": operation,
        "object": object, "oldObject": old
    }))
    .unwrap()
}

fn game(wrong: Value) -> Value {
    let mut game = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "metadata": { "name": "game" },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "game" } },
            "template": { "metadata": { "labels": { "app": "game" } }, "spec": { "containers": [{ "name": "game" }] } }
        }
    });
    for (key, value) in wrong.as_object().unwrap() {
        game["spec"][key] = value.clone();
    }
    game
}

fn run(condition: &str) -> Value {
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": "run" },
        "spec": { "metrics": [{
            "name": "web", "successCondition": condition, "provider": { "web": { "url": "http://game:9091" } }
        }] }
    })
}

fn refusal(request: &AdmissionRequest) -> String {
    match judge(request) {
        AdmissionDecision::Invalid(message) => message,
        other => panic!("{other:?}"),
    }
}

fn warnings(request: &AdmissionRequest) -> Vec<String> {
    match judge(request) {
        AdmissionDecision::Allowed(warnings) => warnings,
        other => panic!("{other:?}"),
    }
}

fn action(more: Value) -> Value {
    let mut action = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": "freeze" },
        "action": { "exec": { "command": ["freeze.sh"] } }
    });
    for (key, value) in more.as_object().unwrap() {
        action[key] = value.clone();
    }
    action
}

fn execution(more: Value) -> Value {
    let selector = json!({ "podSelector": { "matchLabels": { "app": "game" } }, "containerList": ["game"] });
    let mut hook = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook", "metadata": { "name": "freeze" },
        "spec": { "actionName": "freeze", "podSelection": { "podContainerSelector": selector } }
    });
    for (key, value) in more.as_object().unwrap() {
        hook["spec"][key] = value.clone();
    }
    hook
}

const LATER: &str = "spec.minReadySeconds: -1 must be greater than or equal to 0";
const HISTORY: &str = "spec.revisionHistoryLimit: -2 must be greater than or equal to 0";

#[test]
fn all_problems_are_said_at_once_in_the_operators_words() {
    let bad = game(json!({ "minReadySeconds": -1, "revisionHistoryLimit": -2 }));
    let said = refusal(&request("GameDeployment", &bad, &Value::Null));
    let object: GameDeployment = serde_json::from_value(bad).unwrap();
    assert_eq!(said, workload::sentence(&Workload::read(&object).unwrap_err()));
    assert!(said.contains(LATER) && said.contains(HISTORY), "{said}");
    let said = refusal(&request("HookRun", &run("result >"), &Value::Null));
    assert!(
        said.starts_with("hook spec invalid: metrics[0].successCondition: "),
        "{said}"
    );
    let said = refusal(&request("HookTemplate", &run("result >"), &Value::Null));
    assert!(said.starts_with("metrics[0].successCondition: "), "{said}");
}

#[test]
fn an_update_is_refused_for_what_it_makes_wrong_alone() {
    let old = game(json!({ "minReadySeconds": -1 }));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    let known = [format!("pre-existing problem, allowed: {LATER}")];
    assert_eq!(warnings(&request("GameDeployment", &labelled, &old)), known);
    let worse = game(json!({ "minReadySeconds": -1, "revisionHistoryLimit": -2 }));
    assert_eq!(refusal(&request("GameDeployment", &worse, &old)), HISTORY);
    let other = game(json!({ "minReadySeconds": -7 }));
    assert!(refusal(&request("GameDeployment", &other, &old)).contains("-7"));
    let good = game(json!({}));
    assert_eq!(warnings(&request("GameDeployment", &good, &old)), [""; 0]);
    assert_eq!(
        refusal(&request("GameDeployment", &old, &good)),
        LATER,
        "it was good"
    );
}

#[test]
fn what_cannot_be_read_is_refused_unless_it_could_not_before() {
    let bad = game(json!({ "minReadySeconds": 5_000_000_000_i64 }));
    let said = refusal(&request("GameDeployment", &bad, &Value::Null));
    assert!(
        said.starts_with("the GameDeployment cannot be parsed: ") && said.contains("5000000000"),
        "{said}"
    );
    assert_eq!(warnings(&request("GameDeployment", &bad, &bad)).len(), 1);
    // This parse error hid all other problems.
    let half = game(json!({ "minReadySeconds": -1 }));
    assert_eq!(refusal(&request("GameDeployment", &half, &bad)), LATER);
    let mut unreadable = run("true");
    unreadable["spec"]["metrics"][0]["count"] = json!(5_000_000_000_i64);
    let said = refusal(&request("HookRun", &unreadable, &Value::Null));
    assert!(
        said.starts_with("hook spec invalid: ") && said.ends_with("recreate the HookRun"),
        "{said}"
    );
    let said = refusal(&request("HookTemplate", &unreadable, &Value::Null));
    assert!(said.starts_with("the spec cannot be parsed: "), "{said}");
}

#[test]
fn what_is_being_deleted_and_parts_of_objects_pass() {
    let bad = game(json!({ "minReadySeconds": -1 }));
    let mut ends = bad.clone();
    ends["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(
        warnings(&request("GameDeployment", &ends, &game(json!({})))),
        [""; 0]
    );
    let mut status = request("GameDeployment", &bad, &game(json!({})));
    status.sub_resource = Some("status".to_owned());
    assert_eq!(warnings(&status), [""; 0]);
    let mut deletion = request("GameDeployment", &bad, &Value::Null);
    deletion.operation = "DELETE".to_owned();
    assert_eq!(warnings(&deletion), [""; 0]);
    let mut other = request("GameDeployment", &bad, &Value::Null);
    other.kind.group = "apps".to_owned();
    assert_eq!(warnings(&other), [""; 0]);
}

#[test]
fn a_certificate_that_is_not_checked_is_a_warning() {
    let mut risky = run("result == 0");
    risky["spec"]["metrics"][0]["provider"]["web"]["insecureSkipVerify"] = json!(true);
    let warnings = warnings(&request("HookRun", &risky, &Value::Null));
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("metrics[0].provider.web.insecureSkipVerify: "),
        "{warnings:?}"
    );
}

#[test]
fn the_question_of_a_workload_cannot_be_edited_and_can_be_ended() {
    let owned = |condition: &str| {
        let mut run = run(condition);
        run["metadata"]["ownerReferences"] =
            json!([{ "kind": "GameDeployment", "name": "arena", "uid": "u", "controller": true }]);
        run
    };
    let edited = request("HookRun", &owned("result >= 0"), &owned("result == 0"));
    let AdmissionDecision::Forbidden(words) = judge(&edited) else {
        panic!("{:?}", judge(&edited));
    };
    assert!(
        words.contains("GameDeployment arena") && words.contains("edit the HookTemplate"),
        "{words}"
    );
    // Nor by a user who removes the owner in the same update.
    let disowned = request("HookRun", &run("result >= 0"), &owned("result == 0"));
    assert!(matches!(judge(&disowned), AdmissionDecision::Forbidden(_)));
    let mut ended = owned("result == 0");
    ended["spec"]["terminate"] = json!(true);
    ended["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(
        warnings(&request("HookRun", &ended, &owned("result == 0"))),
        [""; 0]
    );
    let own = request("HookRun", &run("result >= 0"), &run("result == 0"));
    assert_eq!(warnings(&own), [""; 0], "a run of nobody's may be edited");
}

#[test]
fn only_the_operator_makes_questions_of_a_workload() {
    let mut claimed = run("true");
    claimed["metadata"]["ownerReferences"] =
        json!([{ "kind": "GameDeployment", "name": "arena", "uid": "u", "controller": true }]);
    let operator = ["operator".to_owned()];
    let by = |user: &str, run: &Value| {
        let mut request = request("HookRun", run, &Value::Null);
        request.user_info.username = Some(user.to_owned());
        request
    };
    let Some(AdmissionDecision::Forbidden(words)) = forged(&by("jane", &claimed), &operator) else {
        panic!("it passes");
    };
    assert!(
        words.contains("GameDeployment arena") && words.contains("jane"),
        "{words}"
    );
    assert_eq!(forged(&by("operator", &claimed), &operator), None);
    assert_eq!(forged(&by("jane", &run("true")), &operator), None);
    assert_eq!(forged(&by("jane", &claimed), &[]), None, "nobody said who it is");
    // Claiming a run that was measured before is the same.
    let updated = |new: &Value, old: &Value| {
        let mut request = request("HookRun", new, old);
        request.user_info.username = Some("jane".to_owned());
        forged(&request, &operator)
    };
    let mut of_another = claimed.clone();
    of_another["metadata"]["ownerReferences"][0]["uid"] = json!("v");
    for before in [&run("true"), &of_another] {
        let decision = updated(&claimed, before);
        assert!(
            matches!(decision, Some(AdmissionDecision::Forbidden(_))),
            "{before}"
        );
    }
    assert_eq!(updated(&claimed, &claimed), None, "it is the operator's");
    assert_eq!(updated(&run("true"), &claimed), None, "it is given up");
}

#[test]
fn a_manifest_that_would_end_canary_pauses_is_accepted_with_a_warning() {
    let strategy = |paused: Value| {
        let steps = json!([{ "partition": 1 }, { "pause": {} }]);
        game(json!({ "updateStrategy": { "paused": paused, "canary": { "steps": steps } } }))
    };
    let warned = |paused: Value, old: &Value| {
        let warnings = warnings(&request("GameDeployment", &strategy(paused), old));
        let is_it = |warning: &String| warning.starts_with("spec.updateStrategy.paused: ");
        assert!(warnings.iter().all(is_it), "{warnings:?}");
        !warnings.is_empty()
    };
    assert!(warned(json!(false), &Value::Null));
    assert!(warned(json!(true), &Value::Null));
    assert!(!warned(Value::Null, &Value::Null));
    assert!(warned(json!(false), &strategy(json!(true))), "applied again");
    assert!(
        !warned(json!(true), &strategy(json!(false))),
        "as the operator and kubectl game pause do"
    );
    assert!(
        !warned(Value::Null, &strategy(json!(true))),
        "as kubectl game resume does"
    );
}

#[test]
fn all_problems_of_an_action_and_an_execution_are_said_in_the_operators_words() {
    let kinds = [
        ("HookAction", action(json!({}))),
        ("ExecutionHook", execution(json!({}))),
    ];
    for (kind, good) in kinds {
        assert_eq!(warnings(&request(kind, &good, &Value::Null)), [""; 0]);
    }
    let bad = action(json!({ "action": { "exec": { "comand": ["freeze.sh"] } }, "callTimeoutSeconds": 0 }));
    let said = refusal(&request("HookAction", &bad, &Value::Null));
    let read: HookAction = serde_json::from_value(bad).unwrap();
    assert_eq!(said, resolve_action(&read).unwrap_err().to_string());
    for words in [
        "callTimeoutSeconds: 0 must be between 1 and 3600",
        "action.exec.comand: unknown field; did you mean command?",
        "action.exec.command: must be set; list the program",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let bad = execution(json!({ "parallelism": 0, "terminat": true, "podSelection": {} }));
    let said = refusal(&request("ExecutionHook", &bad, &Value::Null));
    let read: ExecutionHook = serde_json::from_value(bad).unwrap();
    assert_eq!(said, resolve_hook(&read.spec).unwrap_err().to_string());
    for words in [
        "spec.parallelism: 0 must be between 1 and 1024",
        "spec.terminat: unknown field; did you mean terminate?",
        "spec.podSelection: one of podContainerNamesList and podContainerSelector must be set",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn an_action_or_execution_that_was_invalid_can_be_labelled_and_ended() {
    let kinds = [
        ("HookAction", action(json!({ "callTimeoutSeconds": 0 }))),
        ("ExecutionHook", execution(json!({ "parallelism": 0 }))),
    ];
    for (kind, old) in kinds {
        let mut labelled = old.clone();
        labelled["metadata"]["labels"] = json!({ "a": "b" });
        let known = warnings(&request(kind, &labelled, &old));
        assert_eq!(known.len(), 1, "{known:?}");
        assert!(
            known[0].starts_with("pre-existing problem, allowed: "),
            "{known:?}"
        );
    }
    let old = execution(json!({ "parallelism": 0 }));
    let ended = execution(json!({ "parallelism": 0, "terminate": true }));
    assert_eq!(warnings(&request("ExecutionHook", &ended, &old)).len(), 1);
    let worse = execution(json!({ "parallelism": 0, "ttlSecondsAfterFinished": -1 }));
    let said = refusal(&request("ExecutionHook", &worse, &old));
    assert_eq!(
        said,
        "spec: only terminate may be changed; create a new ExecutionHook instead"
    );
}

#[test]
fn an_action_or_execution_that_cannot_be_read_is_refused() {
    let kinds = [
        (
            "HookAction",
            action(json!({ "callTimeoutSeconds": 5_000_000_000_i64 })),
        ),
        (
            "ExecutionHook",
            execution(json!({ "parallelism": 5_000_000_000_i64 })),
        ),
    ];
    for (kind, bad) in kinds {
        let said = refusal(&request(kind, &bad, &Value::Null));
        let start = format!("the {kind} cannot be parsed: ");
        let is_readable = said.starts_with(&start) && said.ends_with("; fix the field");
        assert!(is_readable && said.contains("5000000000"), "{said}");
        assert_eq!(warnings(&request(kind, &bad, &bad)).len(), 1);
    }
}

#[test]
fn settings_without_effect_are_accepted_with_warnings() {
    let object = game(json!({
        "disruption": { "policy": "Ask" }, "scaleStrategy": { "firstIdle": { "candidates": 2 } },
    }));
    let found = warnings(&request("GameDeployment", &object, &Value::Null));
    let [policy, options] = &found[..] else {
        panic!("{found:?}")
    };
    assert!(
        policy.starts_with("spec.disruption.policy: \"Ask\" does not guard the pods"),
        "{policy}"
    );
    assert!(
        options.starts_with("spec.scaleStrategy.firstIdle: has no effect while"),
        "{options}"
    );
}
