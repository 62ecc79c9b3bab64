//! Users' manifests survive the API server unchanged: those of all generations of the original
//! (`tests/manifests`) and the project's own examples.

use std::path::{Path, PathBuf};

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use test_kit::ControlPlane;

use crate::kubectl::kubectl;
use crate::shared;

/// Directory with the manifests of the original's generations.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
/// Directory with the project's own examples.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

#[tokio::test]
async fn manifests_of_every_generation_are_stored_whole() {
    let names = assert_stored_whole(MANIFESTS).await;
    assert!(names.len() >= 14, "{names:?}");
}

#[tokio::test]
async fn examples_are_stored_whole() {
    let names = assert_stored_whole(EXAMPLES).await;
    assert!(!names.is_empty());
}

#[tokio::test]
async fn every_field_of_a_status_is_stored() {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("manifests").await;
    for file in [
        "hook-run.yaml",
        "hook-run-all-fields.yaml",
        "game-deployment-all-fields.yaml",
    ] {
        for wanted in documents(&Path::new(MANIFESTS).join(file)) {
            apply(control_plane, &namespace, &wanted);
            let api = api(control_plane, &namespace, &wanted);
            let patch = Patch::Merge(json!({ "status": wanted["status"] }));
            let name = wanted["metadata"]["name"].as_str().unwrap();
            let stored = api
                .patch_status(name, &PatchParams::default(), &patch)
                .await
                .unwrap();
            let mut lost = Vec::new();
            compare(&wanted["status"], &stored.data["status"], "/status", &mut lost);
            assert_eq!(lost, [""; 0], "{file}");
        }
    }
}

#[tokio::test]
async fn a_field_that_nobody_knows_is_not_refused() {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("manifests").await;
    let mut wanted = documents(&Path::new(MANIFESTS).join("hook-run.yaml")).remove(0);
    wanted["spec"]["fieldOfTheFuture"] = json!({ "nested": true });
    wanted["spec"]["metrics"][0]["provider"]["web"]["fieldOfTheFuture"] = json!(1);
    let object = serde_json::from_value(wanted.clone()).unwrap();
    let stored = api(control_plane, &namespace, &wanted)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let mut lost = Vec::new();
    compare(&wanted["spec"], &stored.data["spec"], "", &mut lost);
    // The spec preserves unknown fields, so that the operator sees a typo.
    assert_eq!(lost, [""; 0]);
}

/// Applies every document below a directory and compares it with the stored object. Returns the file names.
async fn assert_stored_whole(directory: &str) -> Vec<PathBuf> {
    let control_plane = shared().await;
    let namespace = control_plane.namespace("manifests").await;
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    for file in &files {
        for wanted in documents(file) {
            let stored = apply(control_plane, &namespace, &wanted);
            let mut lost = Vec::new();
            for part in ["apiVersion", "kind", "metadata", "spec", "data"] {
                compare(&wanted[part], &stored[part], &format!("/{part}"), &mut lost);
            }
            assert_eq!(
                lost,
                [""; 0],
                "{} of {}",
                wanted["metadata"]["name"],
                file.display()
            );
        }
    }
    files
}

/// Applies a document with only its namespace changed; returns the stored object.
fn apply(control_plane: &ControlPlane, namespace: &str, document: &Value) -> Value {
    let named = document["metadata"]["generateName"].is_null();
    let arguments = [
        ["--namespace", namespace, if named { "apply" } else { "create" }],
        ["--output=json", "--filename=-", "--validate=true"],
    ];
    let applied = kubectl(control_plane, arguments.as_flattened(), &document.to_string());
    serde_json::from_str(&applied).unwrap()
}

fn api(control_plane: &ControlPlane, namespace: &str, document: &Value) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("tkex.tencent.com", "v1alpha1", document["kind"].as_str().unwrap());
    Api::namespaced_with(control_plane.client(), namespace, &ApiResource::from_gvk(&kind))
}

fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    // Pod disruption budgets and autoscalers use newer versions than the tests' API server has.
    documents.retain(|document| {
        ["v1", "tkex.tencent.com/v1alpha1"].contains(&document["apiVersion"].as_str().unwrap())
    });
    for document in &mut documents {
        document["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    documents
}

/// Collects the paths of all values that were not stored as written.
fn compare(wanted: &Value, stored: &Value, path: &str, lost: &mut Vec<String>) {
    match (wanted, stored) {
        (Value::Object(wanted), Value::Object(stored)) => {
            for (key, value) in wanted {
                compare(
                    value,
                    stored.get(key).unwrap_or(&Value::Null),
                    &format!("{path}/{key}"),
                    lost,
                );
            }
        }
        (Value::Array(wanted), Value::Array(stored)) if wanted.len() == stored.len() => {
            for (index, (wanted, stored)) in wanted.iter().zip(stored).enumerate() {
                compare(wanted, stored, &format!("{path}/{index}"), lost);
            }
        }
        (Value::Null, _) => {}
        (wanted, stored) if wanted == stored => {}
        _ => lost.push(path.to_owned()),
    }
}
