//! `scaleStrategy.podsToDelete`: the named pods go first, gated like all others.

use std::collections::BTreeSet;

use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;

use crate::fleet;

#[tokio::test]
async fn a_named_pod_goes_when_it_is_empty_and_is_replaced_then() {
    let fleet = fleet("pods-to-delete").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let named = before.iter().nth(1).unwrap().clone();
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [named] } }))
        .await;
    assert_eq!(
        fleet.asked(1).await.into_values().collect::<Vec<_>>(),
        [named.clone()]
    );
    fleet.quiet().await;
    assert_eq!(
        fleet.names().await,
        before,
        "a replacement comes when the pod has gone"
    );
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([named.clone()]));
    assert!(!fleet.names().await.contains(&named));
}

#[tokio::test]
async fn named_pods_are_the_ones_that_a_lower_count_takes() {
    let fleet = fleet("pods-to-delete").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    let before: Vec<String> = fleet.names().await.into_iter().collect();
    let named = json!([before[3], before[1], "no-such-pod"]);
    fleet
        .set(json!({ "replicas": 2, "scaleStrategy": { "podsToDelete": named } }))
        .await;
    fleet.settled(2).await;
    assert_eq!(
        fleet.nodes.terminated_pods(),
        BTreeSet::from([before[1].clone(), before[3].clone()])
    );
}

#[tokio::test]
async fn a_name_that_is_taken_off_the_list_is_let_go() {
    let fleet = fleet("pods-to-delete").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let named = before.first().unwrap();
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [named] } }))
        .await;
    fleet.asked(1).await;
    fleet
        .set(json!({ "scaleStrategy": { "podsToDelete": [] } }))
        .await;
    fleet.settled(2).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, before);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}
