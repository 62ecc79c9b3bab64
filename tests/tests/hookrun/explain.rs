//! Schemas in the API server: `kubectl explain` shows every field, and null means unset.

use std::collections::BTreeSet;

use operator_tests::SOON;
use serde_json::{Map, Value, json};
use shared_api::{GameDeployment, HookRun, HookTemplate};
use test_kit::process::output_of;
use test_kit::{ControlPlane, eventually};

use crate::kubectl::kubectl;
use crate::shared;

const VERSION: &str = "tkex.tencent.com/v1alpha1";

#[tokio::test]
async fn kubectl_explains_every_field() {
    let control_plane = shared().await;
    for kind in ["hooktemplates", "hookruns", "gamedeployments"] {
        published(control_plane, kind).await;
    }
    for (path, fields) in [
        (
            "gd.spec.updateStrategy",
            &["type", "maxUnavailable", "canary"][..],
        ),
        ("gd.spec.preDeleteUpdateStrategy.hook", &["templateName", "args"]),
        ("gd.status", &["observedGeneration", "preDeleteHookCondition"]),
        ("hr.status", &["phase", "metricResults"]),
        ("ht.status", &["observedGeneration", "conditions"]),
    ] {
        let shown = shown(control_plane, path);
        for field in fields {
            assert!(shown.contains(*field), "kubectl explain {path}: {shown:?}");
        }
    }
    for definition in shared_api::crd::all() {
        let definition = json!(definition);
        let names = &definition["spec"]["names"];
        let plural = names["plural"].as_str().unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let about = kubectl(control_plane, &["explain", plural], "");
        let first = schema["description"].as_str().unwrap();
        let words: Vec<_> = about.split_whitespace().collect();
        assert!(words.join(" ").contains(first), "{about}");
        explained(control_plane, plural, schema);
    }
}

/// Checks that every field of the schema is shown, at every depth. A field that preserves unknown fields is
/// published without its known ones.
fn explained(control_plane: &ControlPlane, path: &str, schema: &Value) {
    let schema = if schema["items"].is_object() {
        &schema["items"]
    } else {
        schema
    };
    let Some(fields) = schema["properties"].as_object() else {
        return;
    };
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let shown = shown(control_plane, path);
    for (name, field) in fields {
        assert!(
            shown.contains(name),
            "kubectl explain {path} does not show {name}: {shown:?}"
        );
        if name != "metadata" {
            explained(control_plane, &format!("{path}.{name}"), field);
        }
    }
}

/// Waits for the schemas, which an API server publishes some seconds after it starts serving the CRDs.
async fn published(control_plane: &ControlPlane, kind: &str) {
    eventually(SOON, || async {
        let output = output_of(control_plane.kubectl().args(["explain", kind]), "").unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
}

/// Returns the fields that `kubectl explain` lists for this path.
fn shown(control_plane: &ControlPlane, path: &str) -> BTreeSet<String> {
    let text = kubectl(control_plane, &["explain", path], "");
    let fields = text.split_once("\nFIELDS:\n").map_or("", |(_, fields)| fields);
    let names = fields.lines().filter(|line| line.contains('\t'));
    names
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn a_null_is_a_field_that_is_not_set() {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("nulls").await;
    for definition in shared_api::crd::all() {
        let definition = json!(definition);
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        // No tool writes nulls into these yet.
        if matches!(kind, "HookAction" | "ExecutionHook") {
            continue;
        }
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut filled = filled(spec);
        if kind == "GameDeployment" {
            filled["selector"] = json!({ "matchLabels": { "app": "nulls" }, "matchExpressions": null });
            // In Go's notation.
            filled["template"] = json!({ "metadata": { "creationTimestamp": null, "labels": { "app": "nulls" } },
                "spec": { "containers": [{ "name": "game", "image": "game:1", "resources": {} }] } });
        } else {
            let web = &mut filled["metrics"][0]["provider"];
            web["web"] = json!({ "url": "http://game", "method": "POST", "body": null, "headers": null,
                "jsonBody": { "note": null }, "caBundle": "" });
        }
        let object = json!({ "apiVersion": VERSION, "kind": kind,
            "metadata": { "name": "nulls", "namespace": namespace, "creationTimestamp": null }, "spec": filled });
        kubectl(control_plane, &["create", "--filename", "-"], &object.to_string());
        let name = format!("{kind}/nulls");
        let stored = kubectl(
            control_plane,
            &["--namespace", &namespace, "get", &name, "--output", "json"],
            "",
        );
        let stored: Value = serde_json::from_str(&stored).unwrap();
        let mut nulls = Vec::new();
        find_nulls("spec", &stored["spec"], &mut nulls);
        let kept = match kind {
            "GameDeployment" => "spec.template.metadata.creationTimestamp",
            _ => "spec.metrics[0].provider.web.jsonBody.note",
        };
        assert!(
            nulls.iter().any(|null| null == kept),
            "what has no schema is kept as it is: {nulls:?}"
        );
        // Null strings are stored as null, all other nulls are dropped; both read as unset fields.
        for null in nulls.iter().filter(|null| *null != kept) {
            let steps = null.split('.').map(|step| step.split('[').next().unwrap_or(step));
            let field = steps.skip(1).fold(spec, |schema, step| {
                let schema = &schema["properties"][step];
                if schema["items"].is_object() {
                    &schema["items"]
                } else {
                    schema
                }
            });
            assert_eq!(field["nullable"], true, "{null}");
        }
        read(kind, &stored);
        // kubectl drops them itself.
        kubectl(control_plane, &["apply", "--filename", "-"], &object.to_string());
    }
}

/// Checks that the operators' types can parse it.
fn read(kind: &str, stored: &Value) {
    let stored = stored.clone();
    match kind {
        "GameDeployment" => {
            let _: GameDeployment = serde_json::from_value(stored).unwrap();
        }
        "HookRun" => {
            let run: HookRun = serde_json::from_value(stored).unwrap();
            assert_eq!(run.spec.args, None);
            assert_eq!(run.spec.metrics[0].interval.as_ref(), None);
        }
        _ => {
            let _: HookTemplate = serde_json::from_value(stored).unwrap();
        }
    }
}

/// Builds a value of this schema in which every optional field is null.
fn filled(schema: &Value) -> Value {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let value = fields.map(|(name, field)| {
                let needed = required.contains(&&json!(name));
                (name.clone(), if needed { filled(field) } else { Value::Null })
            });
            Value::Object(value.collect::<Map<_, _>>())
        }
        Some("array") => json!([filled(&schema["items"])]),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("text"),
    }
}

fn find_nulls(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                find_nulls(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                find_nulls(&format!("{path}[{index}]"), value, found);
            }
        }
        _ => {}
    }
}
