//! Nodes that are lost and return.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use test_kit::eventually;
use test_kit::node::{Loss, Options, Why};

use super::servers::{answers, ask};
use super::{A_WHILE, World, end};

async fn node_is(world: &World, node: &str, wanted: &str) {
    let nodes: Api<Node> = Api::all(world.shared.client());
    eventually(A_WHILE, async || {
        let conditions = nodes.get(node).await.unwrap().status.unwrap().conditions.unwrap();
        let ready = conditions.into_iter().find(|one| one.type_ == "Ready").unwrap();
        (ready.status == wanted).then_some(()).ok_or(ready)
    })
    .await;
}

#[tokio::test]
async fn a_silent_node_reports_nothing_while_its_players_play_on() {
    let world = World::with(
        "silent",
        Options {
            nodes: 2,
            ..Options::default()
        },
    )
    .await;
    let [lost, _] = world.ready(["lost", "other"]).await;
    let node = lost.node.clone().unwrap();
    world.nodes.lose_node(&node, Loss::Silent).await.unwrap();
    node_is(&world, &node, "Unknown").await;
    world.delete("lost").await;
    world.nodes.pod("lost").crash();
    // The other node lives: a whole life there is time enough for a mistake here.
    let [next] = world.ready(["next"]).await;
    assert_ne!(next.node, lost.node, "nothing is bound to a lost node");
    world.delete("next").await;
    world.gone("next").await;
    let status = world.status("lost").await;
    assert!(status.container_statuses.unwrap().iter().all(|one| one.ready));
    assert_eq!(ask(&world, "lost").await["players"], 0);
    assert!(world.ends().iter().all(|(pod, ..)| pod == "next"));
    world.nodes.return_node(&node).await.unwrap();
    node_is(&world, &node, "True").await;
    world.gone("lost").await;
    assert!(world.nodes.pod("other").view().unwrap().ready);
}

#[tokio::test]
async fn a_dead_node_takes_its_games_with_it_and_returns_with_new_ones() {
    let world = World::new("dead").await;
    let [pod] = world.ready(["p"]).await;
    let node = pod.node.unwrap();
    world.nodes.lose_node(&node, Loss::Dead).await.unwrap();
    node_is(&world, &node, "Unknown").await;
    let silent = world
        .that("p", |pod| pod.containers.iter().all(|one| !one.running))
        .await;
    assert!(silent.ready, "nobody reports otherwise");
    assert!(!answers(&world, "p").await);
    world.nodes.return_node(&node).await.unwrap();
    world
        .that("p", |pod| {
            pod.ready && pod.containers.iter().all(|one| one.restarts == 1)
        })
        .await;
    assert!(answers(&world, "p").await);
    let expected = [
        end("p", "game", Why::NodeDied),
        end("p", "sidecar", Why::NodeDied),
    ];
    assert_eq!(world.ends(), expected);
}

#[tokio::test]
async fn a_deleted_node_can_be_made_again() {
    let world = World::new("nodeless").await;
    let [pod] = world.ready(["p"]).await;
    let node = pod.node.unwrap();
    world.nodes.lose_node(&node, Loss::Deleted).await.unwrap();
    let nodes: Api<Node> = Api::all(world.shared.client());
    assert!(nodes.get_opt(&node).await.unwrap().is_none());
    assert!(!answers(&world, "p").await);
    world.nodes.return_node(&node).await.unwrap();
    node_is(&world, &node, "True").await;
    world
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
}

#[tokio::test]
async fn a_node_that_is_none_cannot_be_lost() {
    let world = World::new("unknown").await;
    let refused = world.nodes.lose_node("nowhere", Loss::Dead).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is no simulated node nowhere");
}
