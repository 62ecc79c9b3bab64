//! Pods that end as soon as they start: few objects, a reason, and no flood.

use kube::api::{Patch, PatchParams};
use operator_tests::assert_has;
use operator_tests::fleet::game;
use serde_json::json;
use shared_api::GameDeployment;

use crate::fleet;

#[tokio::test]
async fn pods_that_end_at_once_are_few_and_are_told_of() {
    let fleet = fleet("ending-pods").await;
    fleet.launch(&game(2, json!({}))).await;
    fleet.settled(2).await;
    for name in fleet.names().await {
        fleet.nodes.pod(&name).evict();
    }
    let message = fleet.says("ScaleBlocked", "PodsEndAtOnce").await;
    assert_has(&message, "Evicted");
    fleet.told("PodsEndAtOnce").await;
    assert_eq!(
        fleet.all_pods().await.len(),
        2,
        "each keeps its place for a while"
    );
    // Then the operator removes and replaces them.
    fleet.until(|status| status.ready_replicas == 2).await;
    fleet.until_pods(|pods| pods.len() == 2).await;
}

#[tokio::test]
async fn a_changed_selector_orphans_nobody() {
    let fleet = fleet("selector").await;
    fleet.launch(&game(2, json!({}))).await;
    fleet.settled(2).await;
    let before = fleet.names().await;
    let other = json!({ "app": "another" });
    let spec = json!({
        "selector": { "matchLabels": other },
        "template": { "metadata": { "labels": other } },
    });
    let patch: Patch<serde_json::Value> = Patch::Merge(json!({ "spec": spec }));
    let games: kube::Api<GameDeployment> = fleet.games();
    // API servers from 1.25 on reject it themselves.
    if games
        .patch(operator_tests::fleet::GAME, &PatchParams::default(), &patch)
        .await
        .is_err()
    {
        return;
    }
    let message = fleet.says("InvalidSpec", "InvalidSpec").await;
    assert_has(&message, "spec.selector");
    assert_has(&message, "the field is immutable");
    fleet.quiet().await;
    assert_eq!(fleet.names().await, before);
}
