//! The subresource `scale`, as used by an autoscaler.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use serde_json::json;
use shared_api::names::pod::DELETING;

use crate::fleet;

/// Returns desired and current replicas, and the selector.
async fn scale(fleet: &Fleet<'_>) -> (i32, i32, String) {
    let scale = fleet.games().get_scale(GAME).await.unwrap();
    let status = scale.status.unwrap();
    (
        scale.spec.unwrap().replicas.unwrap_or(0),
        status.replicas,
        status.selector.unwrap(),
    )
}

async fn set(fleet: &Fleet<'_>, replicas: i32) {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    fleet
        .games()
        .patch_scale(GAME, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[tokio::test]
async fn it_counts_every_pod_that_is_there_and_selects_exactly_these() {
    let fleet = fleet("scale").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    let rule = json!({ "key": "tier", "operator": "In", "values": ["arena", "lobby"] });
    spec["selector"] =
        json!({ "matchExpressions": [rule, { "key": "retired", "operator": "DoesNotExist" }] });
    spec["template"] = json!({ "metadata": { "labels": { "tier": "arena" } } });
    fleet.launch(&game(2, spec)).await;
    let (wanted, there, selector) = scale(&fleet).await;
    assert_eq!((wanted, there), (2, 2));
    assert_eq!(selector, format!("app={GAME},tier in (arena,lobby),!retired"));
    let selected = fleet
        .pods()
        .list(&ListParams::default().labels(&selector))
        .await
        .unwrap();
    let selected: BTreeSet<String> = selected.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(selected, fleet.names().await);
    set(&fleet, 4).await;
    fleet.settled(4).await;
    assert_eq!(scale(&fleet).await, (4, 4, selector.clone()));
    // Down: a pod counts as long as it serves, whatever the desired number.
    fleet.nodes.every_pod().set_players(1);
    set(&fleet, 1).await;
    fleet.asked(3).await;
    fleet.until(|status| status.hook_pending_replicas == 3).await;
    fleet.quiet().await;
    assert_eq!(scale(&fleet).await, (1, 4, selector.clone()));
    // An autoscaler that reverts its decision kills no pod.
    set(&fleet, 3).await;
    fleet.asked(1).await;
    set(&fleet, 4).await;
    fleet.settled(4).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(4).await;
    assert_eq!(scale(&fleet).await, (4, 4, selector));
    assert_eq!(fleet.nodes.terminations().len(), 0);
    let marked = |pod: &k8s_openapi::api::core::v1::Pod| pod.annotations().contains_key(DELETING);
    assert!(!fleet.all_pods().await.values().any(marked));
}

#[tokio::test]
async fn zero_is_a_number_of_replicas_and_none_means_one() {
    let fleet = fleet("scale").await;
    let mut manifest = game(1, json!({}));
    manifest["spec"].as_object_mut().unwrap().remove("replicas");
    fleet.launch(&manifest).await;
    fleet.settled(1).await;
    fleet.scale(0);
    let status = fleet.settled(0).await;
    assert_eq!((status.replicas, status.available_replicas), (0, 0));
    assert_eq!(scale(&fleet).await.1, 0);
    fleet.scale(2);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}
