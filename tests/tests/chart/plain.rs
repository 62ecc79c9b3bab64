//! Tests of the plain manifests in `deploy/`.

use serde_json::Value;
use test_kit::{ControlPlane, Options};

use crate::{documents, life, of_kind, rendered};

const DEFINITIONS: &str = include_str!("../../../deploy/crds.yaml");
const INSTALL: &str = include_str!("../../../deploy/install.yaml");
const BUDGETS: &str = include_str!("../../../deploy/disruption-budgets.yaml");
const FLOW_SCHEMA: &str = include_str!("../../../deploy/flow-schema.yaml");

/// Two commands on a fresh cluster, and the same commands again. Removing the operators the same way removes
/// no game.
#[tokio::test]
async fn two_files_install_everything_and_the_operators_go_without_the_games() {
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    let apply = ["apply", "--server-side", "--filename", "-"];
    for _ in 0..2 {
        for text in [DEFINITIONS, INSTALL] {
            let said = operator_tests::kubectl(&control_plane, &apply, text);
            assert_eq!(said.lines().count(), documents(text).len(), "{said}");
        }
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
    let budgets = operator_tests::kubectl(&control_plane, &apply, &control_plane.in_its_versions(BUDGETS));
    assert_eq!(budgets.lines().count(), 3, "{budgets}");

    let before = life::launch(&control_plane).await;
    let delete = ["delete", "--wait=false", "--filename", "-"];
    let said = operator_tests::kubectl(&control_plane, &delete, INSTALL);
    let deleted = said.lines().filter(|line| line.contains(" deleted"));
    assert_eq!(deleted.count(), documents(INSTALL).len(), "{said}");
    assert_eq!(
        life::lives(&control_plane).await,
        before,
        "the operators alone are gone"
    );
}

/// Apart from the namespace and Helm's own additions, the manifests equal the rendered chart.
#[test]
fn nothing_differs_from_the_chart() {
    let files = [DEFINITIONS, INSTALL, BUDGETS, FLOW_SCHEMA];
    let mut plain = files.map(documents).concat();
    let optional = |document: &Value| document["metadata"]["name"] == "hookgate-admission";
    plain.retain(|document| document["kind"] != "Namespace" && !optional(document));
    let mut chart = rendered(&["--kube-version", "1.32.0"]);
    for document in plain.iter_mut().chain(&mut chart) {
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
    assert_eq!(of_kind(&plain, "CustomResourceDefinition").len(), 5);
    let installed = documents(INSTALL);
    assert_eq!(of_kind(&installed, "CustomResourceDefinition").len(), 0);
}
