//! Life of a release on a real API server: installed, upgraded from each set of values to the next, rolled
//! back, uninstalled, installed again. The games and CRDs survive all of it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::ResourceExt as _;
use serde_json::json;
use shared_api::GameDeployment;
use test_kit::{ControlPlane, Options};

use crate::{CHART, helm_on, value_sets};

#[tokio::test]
async fn games_live_through_upgrades_and_an_uninstall() {
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    let helm = |arguments: &[&str]| {
        helm_on(&control_plane, arguments).unwrap_or_else(|complaint| panic!("{arguments:?}: {complaint}"))
    };
    let said = helm(&["install", "hookgate", CHART, "--create-namespace"]);
    assert!(said.contains("An uninstall keeps games"), "{said}");
    let before = launch(&control_plane).await;

    // Return to the first one at the end, so that objects of only some sets are removed, too.
    let sets = value_sets();
    for set in sets.iter().chain([&sets[0]]) {
        if needs_others_definitions(set) {
            continue;
        }
        helm(&[
            "upgrade",
            "hookgate",
            CHART,
            "--reset-values",
            "--values",
            set.to_str().unwrap(),
        ]);
        assert_eq!(lives(&control_plane).await, before, "after {}", set.display());
    }
    helm(&[
        "upgrade",
        "hookgate",
        CHART,
        "--reuse-values",
        "--set",
        "log.level=debug",
    ]);
    helm(&["rollback", "hookgate"]);
    assert_eq!(lives(&control_plane).await, before, "after the rollback");

    helm(&["uninstall", "hookgate", "--wait"]);
    assert_eq!(lives(&control_plane).await, before, "after the uninstall");
    let ask = [
        "get",
        "deployments,services,leases,configmaps,serviceaccounts",
        "--all-namespaces",
        "--output",
        "name",
    ];
    let left = operator_tests::kubectl(&control_plane, &ask, "");
    assert!(!left.contains("operator") && !left.contains("hookgate"), "{left}");

    helm(&["install", "hookgate", CHART]);
    assert_eq!(
        lives(&control_plane).await,
        before,
        "after it was installed again"
    );
}

/// Whether the set needs the CRDs of the Prometheus operator, without which its objects cannot be created.
fn needs_others_definitions(set: &std::path::Path) -> bool {
    let text = std::fs::read_to_string(set).unwrap();
    text.contains("serviceMonitor") || text.contains("prometheusRule")
}

/// Creates a game. Returns the UIDs that must stay.
pub(crate) async fn launch(control_plane: &ControlPlane) -> Vec<String> {
    let game = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": { "name": "arena", "namespace": "default" },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "arena" } },
            "template": {
                "metadata": { "labels": { "app": "arena" } },
                "spec": { "containers": [{ "name": "game", "image": "game:v1" }] }
            }
        }
    });
    let _ = operator_tests::kubectl(control_plane, &["apply", "--filename", "-"], &game.to_string());
    lives(control_plane).await
}

/// Returns the UIDs of the CRDs and the game; asserts that none is terminating.
pub(crate) async fn lives(control_plane: &ControlPlane) -> Vec<String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(control_plane.client());
    let mut uids = Vec::new();
    for definition in shared_api::crd::all() {
        let found = definitions.get(&definition.name_any()).await.unwrap();
        assert_eq!(found.metadata.deletion_timestamp, None, "{}", found.name_any());
        uids.extend(found.uid());
    }
    let games: Api<GameDeployment> = Api::namespaced(control_plane.client(), "default");
    let game = games.get("arena").await.unwrap();
    assert_eq!(game.metadata.deletion_timestamp, None);
    uids.extend(game.uid());
    uids
}
