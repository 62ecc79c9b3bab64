//! PreDelete hooks that ask no endpoint: they read what the game server, or its matchmaker, wrote on the pod.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use operator_tests::fleet::{game, hooked};
use operator_tests::hook_rights::{grant_patches, grant_reads, start_with};
use serde_json::{Value, json};
use shared_api::HookRun;

use crate::fleet;

const PLAYERS: &str = "games.example.com/players";
const DRAIN: &str = "games.example.com/drain";

/// Annotates a pod as its server would. The operator decides nothing by these annotations.
async fn annotate(pods: &Api<Pod>, pod: &str, annotations: Value) {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    pods.patch(pod, &PatchParams::default(), &patch).await.unwrap();
}

/// The hook also sets an annotation that asks the server to drain, before it waits for the last player.
#[tokio::test]
async fn exactly_the_pod_that_says_it_is_empty_goes() {
    let mut fleet = fleet("object-hooks").await;
    grant_reads(fleet.control_plane, &fleet.namespace).await;
    grant_patches(fleet.control_plane, &fleet.namespace).await;
    start_with(
        &mut fleet,
        &["--provider-kubernetes", "--patch-annotations=games.example.com/"],
    )
    .await;
    let drain = json!({ "function": "patch", "fields": [{ "path": "metadata.annotations.games.example.com/drain", "value": "true" }] });
    let players = json!({ "function": "get", "fields": [{ "path": format!("metadata.annotations.{PLAYERS}"), "value": "0" }] });
    let template = json!({
        "policy": "Ordered",
        "metrics": [
            { "name": "drain", "provider": { "kubernetes": drain } },
            { "name": "players", "interval": "500ms", "successfulLimit": 1, "failureLimit": -1, "provider": { "kubernetes": players } },
        ],
    });
    fleet.hook("empty", template).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    let before = fleet.names().await;
    for pod in &before {
        annotate(&fleet.pods(), pod, json!({ PLAYERS: "7" })).await;
    }
    fleet.scale(2);
    let status = fleet
        .until(|status| status.pre_delete_hook_condition.len() == 1)
        .await;
    let victim = status.pre_delete_hook_condition[0].pod_name.clone();
    // The server is asked to drain, and stays while it has players.
    fleet
        .until_pods(|pods| {
            let is_drained = |pod: &Pod| pod.annotations().get(DRAIN).is_some_and(|value| value == "true");
            let drained = pods
                .iter()
                .filter(|(_, pod)| is_drained(pod))
                .map(|(name, _)| name);
            drained.eq([&victim])
        })
        .await;
    // Another pod that is empty opens no gate of this one.
    let other = before.iter().find(|name| **name != victim).unwrap();
    annotate(&fleet.pods(), other, json!({ PLAYERS: "0" })).await;
    let failed = |runs: &[HookRun]| {
        let results = runs
            .iter()
            .filter_map(|run| run.status.as_ref()?.metric_results.get(1));
        results.map(|result| result.failed).sum::<i64>()
    };
    let before_that = failed(&fleet.until_runs(|runs| runs.len() == 1).await);
    fleet.until_runs(|runs| failed(runs) >= before_that + 2).await;
    assert_eq!(fleet.names().await, before);
    annotate(&fleet.pods(), &victim, json!({ PLAYERS: "0" })).await;
    fleet.settled(2).await;
    let left = before.into_iter().filter(|name| *name != victim);
    assert_eq!(fleet.names().await, left.collect());
}
