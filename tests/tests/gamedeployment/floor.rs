//! The operator never reduces the available pods below the minimum: pods that are briefly unready come back.

use std::time::Duration;

use operator_tests::fleet::{condition, game};
use operator_tests::{SOON, assert_has};
use serde_json::json;
use test_kit::eventually;
use test_kit::node::{Behaviour, PodSelector};
use test_kit::process::output_of;

use crate::fleet;

#[tokio::test]
async fn pods_that_have_not_been_ready_for_long_are_updated_one_at_a_time() {
    let fleet = fleet("floor-min-ready").await;
    fleet
        .launch(&game(
            10,
            json!({ "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 1 } }),
        ))
        .await;
    fleet.set(json!({ "minReadySeconds": 30 })).await;
    fleet.until(|status| status.available_replicas == 0).await;
    fleet.set_image("game:v2").await;
    let status = fleet
        .until(|status| (status.updated_ready_replicas, status.ready_replicas) == (1, 10))
        .await;
    assert_eq!(status.available_replicas, 0, "ready for less than 30 s");
    fleet.quiet().await;
    assert_eq!(
        fleet.nodes.terminated_pods().len(),
        1,
        "the others wait until the new one is available"
    );
}

#[tokio::test]
async fn a_fleet_that_is_not_ready_for_a_moment_is_not_deleted() {
    let fleet = fleet("floor-blip").await;
    fleet
        .launch(&game(
            10,
            json!({ "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": 1 } }),
        ))
        .await;
    // A pod's status does not show anything shorter than a second.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    fleet
        .nodes
        .behave(PodSelector::image("game:v1"), Behaviour::NeverReady);
    fleet.until(|status| status.ready_replicas == 0).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_replicas == 1).await;
    fleet
        .nodes
        .behave(PodSelector::image("game:v1"), Behaviour::Normal);
    fleet.settled(10).await;
    fleet.all_run("game:v2", 10).await;
    let missing = fleet.nodes.terminations().len();
    assert_eq!(missing, 10, "each was replaced once");
}

#[tokio::test]
async fn a_template_that_the_api_server_refuses_costs_no_pod() {
    let fleet = fleet("pod-refused").await;
    let manifest = game(3, json!({ "updateStrategy": { "type": "RollingUpdate" } }));
    fleet.launch(&manifest).await;
    fleet.apply(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "small" },
        "spec": { "limits": [{ "type": "Container", "max": { "memory": "1Gi" } }] },
    }));
    heeds_limits(&fleet, true).await;
    let template = |memory: &str| {
        let mut template = manifest["spec"]["template"].clone();
        template["spec"]["containers"][0]["image"] = json!("game:v2");
        template["spec"]["containers"][0]["resources"] = json!({ "limits": { "memory": memory } });
        json!({ "spec": { "template": template } })
    };
    fleet.patch(template("2Gi")).await;
    let message = fleet.until_message("UpdateBlocked", "dry run").await;
    assert_has(&message, "1Gi");
    assert_has(&message, "spec.template");
    fleet.told("PodRefused").await;
    fleet.until_message("Progressing", "for a dry run").await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.patch(template("1Gi")).await;
    let status = fleet.settled(3).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    fleet.all_run("game:v2", 3).await;
}

#[tokio::test]
async fn news_do_not_shorten_the_pause_after_a_refusal() {
    let fleet = fleet("refused-writes").await;
    let mut manifest = game(3, json!({}));
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "memory": "2Gi" } });
    fleet.launch(&manifest).await;
    fleet.apply(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "small" },
        "spec": { "limits": [{ "type": "Container", "max": { "memory": "1Gi" } }] },
    }));
    heeds_limits(&fleet, true).await;
    fleet.scale(9);
    fleet.says("ScaleBlocked", "WriteFailed").await;
    let before = refused(&fleet).await;
    let name = fleet.names().await.into_iter().next().unwrap();
    // A decision follows each change.
    for cost in 0..60 {
        let news = json!({ "controller.kubernetes.io/pod-deletion-cost": cost.to_string() });
        fleet.annotate(&name, news).await;
    }
    let calls = refused(&fleet).await - before;
    // The pauses are 0.25, 0.5, 1, 2, 4 s and so on: as many as fit into two minutes.
    assert!(calls <= 10, "{calls} refused calls with 60 news");
    let _ = fleet.kubectl(&["delete", "limitrange", "small"], "");
    heeds_limits(&fleet, false).await;
    // An edit ends the pause.
    fleet.scale(4);
    fleet.settled(4).await;
}

/// Waits until the API server's cache of limits has the latest change.
async fn heeds_limits(fleet: &operator_tests::Fleet<'_>, refuses: bool) {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "probe" }, "spec": { "containers": [
        { "name": "game", "image": "game:v1", "resources": { "limits": { "memory": "2Gi" } } }
    ] } });
    let create = ["create", "--dry-run=server", "--filename", "-"];
    eventually(SOON, || async {
        let mut kubectl = fleet.control_plane.kubectl();
        kubectl.args(["--namespace", &fleet.namespace]).args(create);
        let output = output_of(&mut kubectl, &pod.to_string()).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() == refuses {
            Err(said)
        } else {
            Ok(())
        }
    })
    .await;
}

async fn refused(fleet: &operator_tests::Fleet<'_>) -> u64 {
    let labels = r#"action="create_pod",outcome="refused""#;
    fleet
        .metric("hookgate_gamedeployment_actions_total", labels)
        .await
}
