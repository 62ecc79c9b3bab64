//! `partition` keeps pods at old revisions: raised, lowered, too large, in percent, with pods that appear and
//! die.

use operator_tests::Fleet;
use operator_tests::fleet::game;
use serde_json::{Value, json};

use crate::fleet;

async fn set(fleet: &Fleet<'_>, partition: Value) {
    fleet
        .set(json!({ "updateStrategy": { "partition": partition } }))
        .await;
}

/// Waits until `updated` of `of` pods are updated, and checks that nothing more happens.
async fn updated(fleet: &Fleet<'_>, updated: i32, of: usize) {
    fleet
        .until(|status| status.updated_ready_replicas == updated)
        .await;
    let status = fleet.settled(of).await;
    assert_eq!(status.updated_ready_replicas, updated);
}

#[tokio::test]
async fn it_may_be_moved_while_the_update_goes_on() {
    let fleet = fleet("partition").await;
    fleet
        .launch(&game(4, json!({ "updateStrategy": { "partition": 3 } })))
        .await;
    fleet.set_image("game:v2").await;
    updated(&fleet, 1, 4).await;
    let message = fleet.says("Progressing", "RolloutComplete").await;
    let words = "1 of 4 pods are at the update revision; the rest are held back by spec.updateStrategy.partition; not \
                 updated yet: ";
    assert!(message.starts_with(words), "{message}");
    let status = fleet.status().await;
    assert_ne!(status.current_revision, status.update_revision);
    set(&fleet, json!("50%")).await;
    updated(&fleet, 2, 4).await;
    // Raising it reverts no pod, whatever its size.
    set(&fleet, json!(3)).await;
    updated(&fleet, 2, 4).await;
    set(&fleet, json!(1000)).await;
    updated(&fleet, 2, 4).await;
    set(&fleet, json!(1)).await;
    updated(&fleet, 3, 4).await;
    assert_eq!(fleet.nodes.terminations().len(), 3);
    set(&fleet, json!(0)).await;
    updated(&fleet, 4, 4).await;
    let status = fleet.status().await;
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!(fleet.nodes.terminations().len(), 4);
}

#[tokio::test]
async fn who_dies_comes_back_at_the_revision_that_is_missing() {
    let fleet = fleet("partition").await;
    fleet
        .launch(&game(3, json!({ "updateStrategy": { "partition": 2 } })))
        .await;
    fleet.set_image("game:v2").await;
    updated(&fleet, 1, 3).await;
    let update = fleet.status().await.update_revision.unwrap();
    for was_updated in [false, true] {
        let pods = fleet.all_pods().await;
        let is_updated = |pod: &k8s_openapi::api::core::v1::Pod| {
            let labels = pod.metadata.labels.as_ref().unwrap();
            labels["controller-revision-hash"] == update
        };
        let (name, _) = pods
            .iter()
            .find(|(_, pod)| is_updated(pod) == was_updated)
            .unwrap();
        fleet.delete_pod(name).await;
        fleet
            .until_pods(|now| now.len() == 3 && *now != pods && !is_same(now.get(name), &pods[name]))
            .await;
        updated(&fleet, 1, 3).await;
    }
    // More replicas: the old pods stay, the new ones are updated. Fewer: the number of updated ones stays.
    fleet.scale(4);
    updated(&fleet, 2, 4).await;
    fleet.scale(3);
    let status = fleet.settled(3).await;
    assert_eq!(status.replicas - status.updated_replicas, 2);
}

fn is_same(one: Option<&k8s_openapi::api::core::v1::Pod>, other: &k8s_openapi::api::core::v1::Pod) -> bool {
    one.is_some_and(|one| one.metadata.uid == other.metadata.uid)
}
