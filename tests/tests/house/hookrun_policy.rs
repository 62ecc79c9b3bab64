//! Checks the rules of `deploy/hookrun-policy.yaml`. The oldest supported API server has no such policies, so the
//! tests evaluate each.

use std::collections::HashMap;

use cel::{Context, Program, Value, to_value};
use serde_json::{Value as Json, json};

const POLICY: &str = include_str!("../../../deploy/hookrun-policy.yaml");
const OPERATOR: &str = "system:serviceaccount:hookgate:gamedeployment-operator";

/// Returns the messages of the rules that deny a write.
fn denials(user: &str, object: &Json, old: &Json) -> Vec<String> {
    let manifests: Vec<Json> = serde_saphyr::from_multiple(POLICY).unwrap();
    let spec = &manifests[0]["spec"];
    let evaluate = |rule: &Json, variables: &HashMap<String, Value>| {
        let mut context = Context::default();
        for (name, value) in [("object", object), ("oldObject", old)] {
            context.add_variable(name, to_value(value).unwrap()).unwrap();
        }
        let request = json!({ "userInfo": { "username": user } });
        context
            .add_variable("request", to_value(request).unwrap())
            .unwrap();
        context
            .add_variable("variables", Value::from(variables.clone()))
            .unwrap();
        let rule = rule["expression"].as_str().unwrap();
        let value = Program::compile(rule).unwrap().execute(&context);
        value.unwrap_or_else(|error| panic!("{rule}: {error}"))
    };
    let mut variables = HashMap::new();
    for variable in spec["variables"].as_array().unwrap() {
        let value = evaluate(variable, &variables);
        variables.insert(variable["name"].as_str().unwrap().to_owned(), value);
    }
    let rules = spec["validations"].as_array().unwrap().iter();
    let denying = rules.filter(|rule| match evaluate(rule, &variables) {
        Value::Bool(allows) => !allows,
        other => panic!("{rule}: {other:?}"),
    });
    let messages = denying.map(|rule| rule["message"].as_str().unwrap().to_owned());
    messages.collect()
}

fn run(owners: &[&str], spec: Json) -> Json {
    let owner = |uid: &&str| json!({ "kind": "GameDeployment", "uid": uid, "controller": true });
    let owners: Vec<Json> = owners.iter().map(owner).collect();
    json!({ "metadata": { "name": "players", "ownerReferences": owners }, "spec": spec })
}

fn spec() -> Json {
    json!({ "metrics": [{ "name": "players", "successCondition": "result == 0" }], "policy": "Ordered" })
}

fn with(field: &str, value: Json) -> Json {
    let mut spec = spec();
    spec[field] = value;
    spec
}

#[test]
fn the_run_of_a_workload_keeps_its_spec() {
    let denied = |new: Json, owners: &[&str]| {
        let messages = denials("jane", &run(owners, new), &run(&["w"], spec()));
        messages.iter().any(|message| message.contains("is immutable"))
    };
    assert!(!denied(spec(), &["w"]));
    assert!(!denied(with("terminate", json!(true)), &["w"]));
    let edits = [
        with("metrics", json!([])),
        with("policy", json!("Parallel")),
        with("args", json!([])),
        with("unknown", json!(1)),
        json!({ "metrics": spec()["metrics"] }),
        json!({ "metrics": spec()["metrics"], "terminate": true }),
    ];
    for edit in edits {
        assert!(denied(edit.clone(), &["w"]), "{edit}");
        assert!(denied(edit.clone(), &[]), "{edit}, and the owner is removed");
        // Other HookRuns may be edited.
        assert_eq!(denials("jane", &run(&[], edit), &run(&[], spec())), [""; 0]);
    }
}

#[test]
fn only_the_operator_makes_the_runs_of_a_workload() {
    let old = [
        Json::Null,
        run(&[], spec()),
        run(&["v"], spec()),
        json!({ "metadata": {}, "spec": spec() }),
    ];
    for old in &old {
        let new = run(&["w"], spec());
        assert_eq!(denials("jane", &new, old).len(), 1, "{old}");
        assert_eq!(denials(OPERATOR, &new, old), [""; 0], "{old}");
        for unowned in [run(&[], spec()), json!({ "metadata": {}, "spec": spec() })] {
            assert_eq!(denials("jane", &unowned, old), [""; 0], "{old}");
        }
    }
    let mut of_rollout = run(&["r"], spec());
    of_rollout["metadata"]["ownerReferences"][0]["kind"] = json!("ControllerRevision");
    assert_eq!(denials("jane", &of_rollout, &Json::Null).len(), 1);
    assert_eq!(denials(OPERATOR, &of_rollout, &Json::Null), [""; 0]);
    let mut other_kind = run(&["w"], spec());
    other_kind["metadata"]["ownerReferences"][0]["kind"] = json!("ConfigMap");
    let mut no_controller = run(&["w"], spec());
    no_controller["metadata"]["ownerReferences"][0] = json!({ "kind": "GameDeployment", "uid": "w" });
    for new in [other_kind, no_controller] {
        assert_eq!(denials("jane", &new, &Json::Null), [""; 0], "{new}");
    }
}
