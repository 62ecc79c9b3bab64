//! Checks the rules (`x-kubernetes-validations`) that API servers from 1.25 on apply. The oldest supported
//! server drops them, so the tests compile and evaluate each: an unreadable rule would make the CRDs
//! impossible to install.

use cel::{Context, Program, Value, to_value};
use serde_json::{Value as Json, json};

/// Collects every rule of a schema, with the path of its field.
fn rules(path: &str, schema: &Json, found: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        found.push((path.to_owned(), rule["rule"].as_str().unwrap().to_owned()));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        rules(&format!("{path}.{name}"), field, found);
    }
    if schema["items"].is_object() {
        rules(&format!("{path}[]"), &schema["items"], found);
    }
}

fn all_rules() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for definition in shared_api::crd::all() {
        let definition = serde_json::to_value(definition).unwrap();
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        rules(
            kind,
            &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            &mut found,
        );
    }
    found
}

/// Whether an object passes all rules at a path.
fn passes(path: &str, object: &Json) -> bool {
    let mut asked = 0;
    let passes = all_rules().iter().filter(|(at, _)| at == path).all(|(_, rule)| {
        asked += 1;
        let mut context = Context::default();
        context.add_variable("self", to_value(object).unwrap()).unwrap();
        match Program::compile(rule).unwrap().execute(&context) {
            Ok(Value::Bool(holds)) => holds,
            other => panic!("{rule} on {object}: {other:?}"),
        }
    });
    assert!(asked > 0, "no rule at {path}");
    passes
}

#[test]
fn every_rule_compiles() {
    let rules = all_rules();
    assert!(rules.len() > 20, "{rules:?}");
    for (path, rule) in rules {
        assert!(Program::compile(&rule).is_ok(), "{path}: {rule}");
    }
}

#[test]
fn rules_let_good_manifests_pass_and_stop_bad_ones() {
    let metric = "HookRun.spec.metrics[]";
    let provider = "HookRun.spec.metrics[].provider";
    let web = "HookRun.spec.metrics[].provider.web";
    let header = "HookRun.spec.metrics[].provider.web.headers[]";
    let argument = "HookTemplate.spec.args[]";
    let lifecycle_hook = "GameDeployment.spec.lifecycleHooks[]";
    let of_rollout = |failure: Json, abort: Json| json!({ "name": "a", "jobSpec": {}, "failurePolicy": failure, "abortAction": abort });
    let good = [
        (metric, json!({ "name": "m" })),
        (
            metric,
            json!({ "name": "m", "count": 3, "interval": "60s", "failureLimit": 2 }),
        ),
        (
            metric,
            json!({ "name": "m", "count": 0, "interval": "5s", "consecutiveSuccessfulLimit": 3 }),
        ),
        (metric, json!({ "name": "m", "count": 1, "failureLimit": -1 })),
        (
            metric,
            json!({ "name": "m", "count": null, "failureLimit": null }),
        ),
        (provider, json!({ "web": {} })),
        (provider, json!({ "web": {}, "exec": null })),
        (web, json!({ "url": "u" })),
        (web, json!({ "url": "u", "method": "POST", "body": "b" })),
        (header, json!({ "key": "k", "value": "" })),
        (argument, json!({ "name": "PodIP" })),
        (lifecycle_hook, json!({ "name": "a", "jobSpec": {} })),
        (lifecycle_hook, of_rollout(json!("Ignore"), json!("Hold"))),
        (lifecycle_hook, of_rollout(json!("Abort"), json!("Rollback"))),
        (lifecycle_hook, of_rollout(json!(null), json!("Rollback"))),
    ];
    let bad = [
        (metric, json!({ "name": "m", "count": 2, "interval": null })),
        (metric, json!({ "name": "m", "count": 2 })),
        (metric, json!({ "name": "m", "count": 2, "interval": "" })),
        (metric, json!({ "name": "m", "count": -1 })),
        (metric, json!({ "name": "m", "failureLimit": -2 })),
        (metric, json!({ "name": "m", "consecutiveSuccessfulLimit": 0 })),
        (provider, json!({})),
        (provider, json!({ "web": {}, "prometheus": {} })),
        (web, json!({ "url": "u", "body": "b" })),
        (web, json!({ "url": "u", "method": "GET", "body": "" })),
        (header, json!({ "key": "k" })),
        (header, json!({ "key": "k", "value": "v", "valueFrom": {} })),
        (argument, json!({ "name": "a", "value": "v", "valueFrom": {} })),
        (lifecycle_hook, json!({ "name": "a" })),
        (lifecycle_hook, json!({ "name": "a", "jobSpec": {}, "hook": {} })),
        (lifecycle_hook, of_rollout(json!("Ignore"), json!("Rollback"))),
    ];
    for (path, object) in good {
        assert!(passes(path, &object), "{path} on {object}");
    }
    for (path, object) in bad {
        assert!(!passes(path, &object), "{path} on {object}");
    }
}

/// API servers estimate the cost of a rule from the longest lists that a schema allows, and reject a CRD
/// whose rules could cost too much: a list with rules in it needs a bound.
#[test]
fn lists_with_rules_in_them_are_bounded() {
    fn check(path: &str, schema: &Json) {
        let mut inside = Vec::new();
        rules(path, &schema["items"], &mut inside);
        if !inside.is_empty() {
            assert!(
                schema["maxItems"].is_u64(),
                "{path} has no bound, and rules inside"
            );
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{path}.{name}"), field);
        }
        if schema["items"].is_object() {
            check(&format!("{path}[]"), &schema["items"]);
        }
    }
    for definition in shared_api::crd::all() {
        let definition = serde_json::to_value(definition).unwrap();
        check(
            "",
            &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        );
    }
}

/// Rules cannot see untyped fields: the API server cannot compile a rule that names one.
#[test]
fn rules_speak_of_typed_fields_only() {
    fn check(schema: &Json) {
        let mut here = Vec::new();
        rules(
            "",
            &json!({ "x-kubernetes-validations": schema["x-kubernetes-validations"] }),
            &mut here,
        );
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let named = here
                .iter()
                .any(|(_, rule)| rule.contains(&format!("self.{name})")));
            assert!(
                !named || field["type"].is_string(),
                "a rule speaks of {name}, which has no type"
            );
            check(field);
        }
        if schema["items"].is_object() {
            check(&schema["items"]);
        }
    }
    for definition in shared_api::crd::all() {
        let definition = serde_json::to_value(definition).unwrap();
        check(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    }
}
