//! No hook runs for a pod that cannot have players.

use std::collections::BTreeSet;
use std::time::Instant;

use operator_tests::fleet::{condition, game, hooked, until_empty};
use operator_tests::{SOON, assert_has};
use test_kit::eventually;
use test_kit::node::{Behaviour, Loss, PodSelector};

use crate::fleet;

#[tokio::test]
async fn a_pod_without_a_node_goes_at_once() {
    let fleet = fleet("no-players").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    let serving = fleet.names().await;
    fleet.nodes.every_pod().set_players(1);
    fleet
        .nodes
        .behave(PodSelector::future(), Behaviour::Unschedulable);
    fleet.scale(4);
    let message = fleet.until_message("Available", "cannot be scheduled: ").await;
    assert_has(&message, "Insufficient memory");
    fleet.scale(2);
    fleet.settled(2).await;
    fleet.told("the pod is not scheduled").await;
    assert_eq!(fleet.names().await, serving);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    assert!(
        !fleet
            .events()
            .await
            .iter()
            .any(|event| event.contains("is Successful"))
    );
}

#[tokio::test]
async fn a_pod_whose_image_was_never_there_goes_at_once() {
    let fleet = fleet("no-players").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    let serving = fleet.names().await;
    fleet.nodes.every_pod().set_players(1);
    fleet.nodes.behave(PodSelector::future(), Behaviour::CannotPull);
    fleet.scale(3);
    let status = fleet
        .until(|status| {
            condition(status, "Available").is_some_and(|found| found.2.contains("ImagePullBackOff"))
        })
        .await;
    assert_eq!((status.replicas, status.ready_replicas), (3, 1));
    fleet.scale(1);
    fleet.settled(1).await;
    fleet.told("none of its containers has started").await;
    assert_eq!(fleet.names().await, serving);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

/// A kubelet that falls silent after such a report starts the containers all the same, and players may join.
#[tokio::test]
async fn a_pod_whose_kubelet_fell_silent_stays_though_nothing_had_started() {
    let fleet = fleet("no-players").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    let serving = fleet.names().await;
    fleet.nodes.every_pod().set_players(1);
    fleet.nodes.behave(PodSelector::future(), Behaviour::CannotPull);
    fleet.scale(2);
    fleet
        .until(|status| {
            condition(status, "Available").is_some_and(|found| found.2.contains("ImagePullBackOff"))
        })
        .await;
    let pods = fleet.names().await;
    let waiting = pods.difference(&serving).next().unwrap().clone();
    let node = fleet.nodes.pod(&waiting).view().unwrap().node.unwrap();
    fleet.nodes.lose_node(&node, Loss::Silent).await.unwrap();
    fleet.scale(1);
    let asked = fleet.asked(1).await;
    assert_eq!(asked.into_values().collect::<Vec<_>>(), [waiting]);
    fleet.quiet().await;
    assert_eq!(fleet.names().await, pods);
    // Its kubelet reports again that nothing has started. It reports its node first, so the pod stays until the
    // node has been Ready for a minute.
    let returned = Instant::now();
    fleet.nodes.return_node(&node).await.unwrap();
    eventually(2 * SOON, || async {
        let left = fleet.names().await;
        if left == serving {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
    assert!(returned.elapsed() >= SOON);
    fleet.settled(1).await;
    fleet.told("none of its containers has started").await;
    assert_eq!(fleet.names().await, serving);
}

#[tokio::test]
async fn a_pod_that_runs_and_is_not_ready_is_asked() {
    let fleet = fleet("no-players").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let sick = fleet.names().await.first().unwrap().clone();
    fleet.nodes.pod(&sick).behave(Behaviour::NeverReady);
    fleet.until(|status| status.ready_replicas == 1).await;
    fleet.scale(1);
    let asked = fleet.asked(1).await;
    assert_eq!(
        asked.into_values().collect::<Vec<_>>(),
        [sick.clone()],
        "who is not ready goes first"
    );
    fleet.nodes.pod(&sick).set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([sick]));
}
