//! The operator dies while pods drain: its successor continues with the same pods.

use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use shared_api::names::pod::DELETION_COST;

use crate::fleet;

#[tokio::test]
async fn a_successor_goes_on_with_the_same_victims_and_their_runs() {
    let mut fleet = fleet("operator-restarted").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(2);
    let victims = fleet.asked(2).await;
    fleet.kill_workloads();
    // A new selection would pick other pods.
    for name in fleet.names().await {
        let cost = if victims.values().any(|victim| *victim == name) {
            "100"
        } else {
            "-100"
        };
        fleet.annotate(&name, json!({ DELETION_COST: cost })).await;
    }
    fleet.start_workloads().await;
    fleet.quiet().await;
    assert_eq!(fleet.asked(2).await, victims);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), victims.into_values().collect());
}

#[tokio::test]
async fn a_verdict_that_came_just_now_counts_and_a_withdrawn_intent_does_not() {
    let mut fleet = fleet("operator-restarted").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let victims = fleet.asked(2).await;
    fleet.kill_workloads();
    fleet.nodes.every_pod().set_players(0);
    fleet.approved().await;
    // The hooks allow both, but only one has to go now. For an older verdict, see `verdict_age`.
    fleet.scale(2);
    fleet.start_workloads().await;
    fleet.settled(2).await;
    let gone = fleet.nodes.terminated_pods();
    assert_eq!(gone.len(), 1);
    assert!(
        gone.iter()
            .all(|pod| victims.values().any(|victim| victim == pod))
    );
}
