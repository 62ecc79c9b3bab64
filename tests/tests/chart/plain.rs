//! The plain manifests in `deploy/`.

use serde_json::Value;
use test_kit::{ControlPlane, Options};

use crate::{documents, of_kind, rendered};

const INSTALL: &str = include_str!("../../../deploy/install.yaml");

/// One command on a cluster that has never seen the project, and the same command again.
#[tokio::test]
async fn one_command_installs_everything() {
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    // Budgets have another version in the API server of the tests.
    let text = INSTALL.replace("policy/v1\n", "policy/v1beta1\n");
    let apply = ["apply", "--server-side", "--filename", "-"];
    for _ in 0..2 {
        let said = operator_tests::kubectl(&control_plane, &apply, &text);
        assert_eq!(said.lines().count(), documents(INSTALL).len(), "{said}");
    }
    let ask = [
        "get",
        "deployments",
        "--namespace",
        "hookgate",
        "--output",
        "name",
    ];
    let deployments = operator_tests::kubectl(&control_plane, &ask, "");
    assert_eq!(deployments.lines().count(), 2, "{deployments}");
}

/// Besides the namespace and what only Helm needs, they are what the chart renders.
#[test]
fn nothing_differs_from_the_chart() {
    let mut plain = documents(INSTALL);
    plain.retain(|document| document["kind"] != "Namespace");
    let mut chart = rendered(&["--kube-version", "1.32.0"]);
    for document in &mut chart {
        let metadata = document["metadata"].as_object_mut().unwrap();
        for field in ["labels", "annotations"] {
            if let Some(Value::Object(pairs)) = metadata.get_mut(field) {
                pairs.retain(|name, _| {
                    !name.starts_with("helm.sh/") && name != "app.kubernetes.io/managed-by"
                });
                if pairs.is_empty() {
                    metadata.remove(field);
                }
            }
        }
    }
    let names = |documents: &[Value]| {
        let mut names: Vec<String> = documents
            .iter()
            .map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&plain), names(&chart));
    for document in &plain {
        let same = |other: &&Value| {
            other["kind"] == document["kind"] && other["metadata"]["name"] == document["metadata"]["name"]
        };
        assert_eq!(document, *chart.iter().find(same).as_ref().unwrap());
    }
    assert_eq!(of_kind(&plain, "CustomResourceDefinition").len(), 3);
}
