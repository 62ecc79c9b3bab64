//! Never fewer pods because of us than may serve: pods that are not well for a moment come back.

use std::time::Duration;

use operator_tests::fleet::game;
use serde_json::json;
use test_kit::node::{Behaviour, Which};

use crate::fleet;

#[tokio::test]
async fn pods_that_have_not_been_ready_for_long_are_updated_one_at_a_time() {
    let fleet = fleet("floor-min-ready").await;
    fleet
        .launch(&game(10, json!({ "updateStrategy": { "maxUnavailable": 1 } })))
        .await;
    fleet.patch(json!({ "spec": { "minReadySeconds": 30 } })).await;
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
        .launch(&game(10, json!({ "updateStrategy": { "maxUnavailable": 1 } })))
        .await;
    // What was shorter than a second is not seen in a pod's status.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    fleet.nodes.behave(Which::image("game:v1"), Behaviour::NeverReady);
    fleet.until(|status| status.ready_replicas == 0).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_replicas == 1).await;
    fleet.nodes.behave(Which::image("game:v1"), Behaviour::Normal);
    fleet.settled(10).await;
    fleet.all_run("game:v2", 10).await;
    let missing = fleet.nodes.terminations().len();
    assert_eq!(missing, 10, "each was replaced once");
}
