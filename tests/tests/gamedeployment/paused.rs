//! `paused` stops only updates.

use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use test_kit::node::{Behaviour, PodSelector};

use crate::fleet;

#[tokio::test]
async fn pods_are_created_and_healed_while_updates_stop() {
    let fleet = fleet("paused").await;
    fleet
        .launch(&game(2, json!({ "updateStrategy": { "paused": true } })))
        .await;
    let old = fleet.names().await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("Progressing", "Paused").await;
    let names: Vec<&str> = old.iter().map(String::as_str).collect();
    let names = names.join(", ");
    assert_eq!(
        message,
        format!(
            "updates are paused at 0 of 2 pods; to continue, set spec.updateStrategy.paused to false; not updated yet: {names}"
        )
    );
    fleet.scale(3);
    fleet
        .until(|status| (status.ready_replicas, status.updated_ready_replicas) == (3, 1))
        .await;
    let sick = old.first().unwrap();
    fleet.nodes.pod(sick).crash();
    fleet.until(|status| status.ready_replicas == 3).await;
    fleet.nodes.pod(sick).behave(Behaviour::NeverReady);
    fleet.until(|status| status.ready_replicas == 2).await;
    fleet.nodes.pod(sick).behave(Behaviour::Normal);
    fleet.delete_pod(old.last().unwrap()).await;
    // The counts stay the same until the operator notices that the pod is gone.
    fleet
        .until(|status| (status.ready_replicas, status.updated_replicas) == (3, 2))
        .await;
    let status = fleet.settled(3).await;
    assert_eq!(
        status.updated_replicas, 2,
        "who was deleted came back updated, the other stays"
    );
    fleet.set(json!({ "updateStrategy": { "paused": false } })).await;
    fleet.settled(3).await;
    fleet.all_run("game:v2", 3).await;
}

#[tokio::test]
async fn a_question_that_was_put_is_withdrawn_and_a_scale_down_goes_on() {
    let fleet = fleet("paused").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(2).await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    fleet.until_runs(<[_]>::is_empty).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.scale(1);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 1);
    assert_eq!(fleet.status().await.updated_replicas, 0);
}

#[tokio::test]
async fn a_scale_down_while_paused_removes_what_is_too_many() {
    let fleet = fleet("paused-surplus").await;
    let strategy = json!({ "type": "RollingUpdate", "paused": true, "maxSurge": 2, "maxUnavailable": 1 });
    fleet
        .launch(&game(10, json!({ "updateStrategy": strategy })))
        .await;
    fleet.set_image("game:v2").await;
    fleet.says("Progressing", "Paused").await;
    fleet.scale(8);
    let status = fleet.settled(8).await;
    assert_eq!((status.updated_replicas, status.surge_replicas), (0, 0));
    assert_eq!(fleet.nodes.terminated_pods().len(), 2);
    // The update keeps the surge pods that it has created. It stops while they are not ready.
    fleet
        .nodes
        .behave(PodSelector::image("game:v2"), Behaviour::NeverReady);
    fleet
        .set(json!({ "updateStrategy": { "paused": false, "maxUnavailable": 0 } }))
        .await;
    fleet.until(|status| status.surge_replicas == 2).await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    fleet.says("Progressing", "Paused").await;
    fleet
        .nodes
        .behave(PodSelector::image("game:v2"), Behaviour::Normal);
    fleet.until(|status| status.ready_replicas == 10).await;
    fleet.quiet().await;
    assert_eq!(fleet.status().await.surge_replicas, 2);
    fleet.scale(6);
    fleet
        .until(|status| (status.replicas, status.ready_replicas) == (8, 8))
        .await;
}
