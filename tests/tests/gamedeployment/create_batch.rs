//! The operator creates pods in batches: the next one follows when the previous one is ready.

use operator_tests::fleet::game;
use serde_json::json;
use test_kit::node::{Behaviour, PodSelector};

use crate::fleet;

#[tokio::test]
async fn a_batch_that_is_not_ready_holds_up_the_next_one_and_is_named() {
    let fleet = fleet("create-batch").await;
    fleet
        .nodes
        .behave(PodSelector::image("game:v1"), Behaviour::NeverReady);
    let batch = json!({ "scaleStrategy": { "createBatch": 2 } });
    fleet.apply(&game(5, batch));
    fleet.until(|status| status.replicas == 2).await;
    let message = fleet.until_message("Progressing", "createBatch").await;
    for name in fleet.names().await {
        assert!(message.contains(&name), "{message}");
    }
    assert_eq!(fleet.names().await.len(), 2);
    fleet.nodes.behave(PodSelector::all(), Behaviour::Normal);
    fleet.settled(5).await;
    assert_eq!(fleet.images().await.len(), 1);
}
