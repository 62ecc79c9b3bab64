//! Tests of lost and returning nodes.

use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use test_kit::node::{EndReason, Loss, Nodes, Options, PodView};
use test_kit::{ControlPlane, eventually};

use super::servers::{answers, ask};
use super::{A_WHILE, NodeHarness, end};

async fn node_is(harness: &NodeHarness, node: &str, wanted: &str) {
    let nodes: Api<Node> = Api::all(harness.shared.client());
    eventually(A_WHILE, async || {
        let conditions = nodes.get(node).await.unwrap().status.unwrap().conditions.unwrap();
        let ready = conditions.into_iter().find(|one| one.type_ == "Ready").unwrap();
        (ready.status == wanted).then_some(()).ok_or(ready)
    })
    .await;
}

#[tokio::test]
async fn a_silent_node_reports_nothing_while_its_players_play_on() {
    let harness = NodeHarness::with(
        "silent",
        Options {
            nodes: 2,
            ..Options::default()
        },
    )
    .await;
    let [lost, _] = harness.ready(["lost", "other"]).await;
    let node = lost.node.clone().unwrap();
    harness.nodes.lose_node(&node, Loss::Silent).await.unwrap();
    node_is(&harness, &node, "Unknown").await;
    harness.delete("lost").await;
    harness.nodes.pod("lost").crash();
    // The other node is up: the whole life of a pod there leaves time for a mistake here.
    let [next] = harness.ready(["next"]).await;
    assert_ne!(next.node, lost.node, "nothing is bound to a lost node");
    harness.delete("next").await;
    harness.gone("next").await;
    let status = harness.status("lost").await;
    assert!(status.container_statuses.unwrap().iter().all(|one| one.ready));
    assert_eq!(ask(&harness, "lost").await["players"], 0);
    assert!(harness.ends().iter().all(|(pod, ..)| pod == "next"));
    harness.nodes.return_node(&node).await.unwrap();
    node_is(&harness, &node, "True").await;
    harness.gone("lost").await;
    assert!(harness.nodes.pod("other").view().unwrap().ready);
}

#[tokio::test]
async fn a_cordoned_node_gets_no_pod_until_it_is_uncordoned() {
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let harness = NodeHarness::with("cordoned", options).await;
    let [first] = harness.ready(["first"]).await;
    let nodes: Api<Node> = Api::all(harness.shared.client());
    let cordon = async |node: &str, unschedulable: bool| {
        let patch = Patch::Merge(json!({ "spec": { "unschedulable": unschedulable } }));
        nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
    };
    let closed = first.node.unwrap();
    cordon(&closed, true).await;
    for pod in harness.ready(["a", "b", "c"]).await {
        assert_ne!(pod.node.as_deref(), Some(&*closed));
    }
    for node in harness.nodes.node_names() {
        cordon(&node, true).await;
    }
    harness.create("late").await;
    eventually(A_WHILE, async || {
        let conditions = harness.status("late").await.conditions.unwrap_or_default();
        let waits = |one: &PodCondition| one.reason.as_deref() == Some("Unschedulable");
        conditions.iter().any(waits).then_some(()).ok_or(conditions)
    })
    .await;
    cordon(&closed, false).await;
    let pods = harness.nodes.await_ready(5, A_WHILE).await.unwrap();
    let late = pods.iter().find(|pod| pod.name == "late").unwrap();
    assert_eq!(late.node.as_deref(), Some(&*closed));
}

#[tokio::test]
async fn a_dead_node_takes_its_games_with_it_and_returns_with_new_ones() {
    let harness = NodeHarness::new("dead").await;
    let [pod] = harness.ready(["p"]).await;
    let node = pod.node.unwrap();
    harness.nodes.lose_node(&node, Loss::Dead).await.unwrap();
    node_is(&harness, &node, "Unknown").await;
    let silent = harness
        .that("p", |pod| pod.containers.iter().all(|one| !one.running))
        .await;
    assert!(silent.ready, "nobody reports otherwise");
    assert!(!answers(&harness, "p").await);
    harness.nodes.return_node(&node).await.unwrap();
    harness
        .that("p", |pod| {
            pod.ready && pod.containers.iter().all(|one| one.restarts == 1)
        })
        .await;
    assert!(answers(&harness, "p").await);
    let expected = [
        end("p", "game", EndReason::NodeDied),
        end("p", "sidecar", EndReason::NodeDied),
    ];
    assert_eq!(harness.ends(), expected);
}

#[tokio::test]
async fn a_deleted_node_can_be_made_again() {
    let harness = NodeHarness::new("nodeless").await;
    let [pod] = harness.ready(["p"]).await;
    let node = pod.node.unwrap();
    harness.nodes.lose_node(&node, Loss::Deleted).await.unwrap();
    let nodes: Api<Node> = Api::all(harness.shared.client());
    assert!(nodes.get_opt(&node).await.unwrap().is_none());
    assert!(!answers(&harness, "p").await);
    harness.nodes.return_node(&node).await.unwrap();
    node_is(&harness, &node, "True").await;
    harness
        .that("p", |pod| pod.ready && pod.containers[0].restarts == 1)
        .await;
}

#[tokio::test]
async fn a_node_that_is_none_cannot_be_lost() {
    let harness = NodeHarness::new("unknown").await;
    let refused = harness.nodes.lose_node("nowhere", Loss::Dead).await.unwrap_err();
    assert_eq!(refused.to_string(), "there is no simulated node nowhere");
}

#[tokio::test]
async fn nodes_go_on_after_the_api_server_was_away() {
    let own = ControlPlane::start(test_kit::Options {
        controller_manager: false,
        ..test_kit::Options::default()
    })
    .await
    .unwrap();
    if !own.is_own() {
        eprintln!("skipped: an existing cluster is not stopped");
        return;
    }
    let namespace = own.namespace("away").await;
    let nodes = Nodes::start(&own, &namespace, Options::default()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(own.client(), &namespace);
    let pod = |name: &str| {
        let spec = json!({"containers": [{"name": "game", "image": "game:1"}]});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    pods.create(&PostParams::default(), &pod("before")).await.unwrap();
    nodes.await_ready(1, A_WHILE).await.unwrap();
    own.stop_api_server().await.unwrap();
    nodes.pod("before").crash();
    let restarted = |pod: &PodView| pod.containers[0].restarts == 1 && pod.containers[0].ready;
    nodes.pod("before").await_that(A_WHILE, restarted).await.unwrap();
    own.restart_api_server().await.unwrap();
    pods.create(&PostParams::default(), &pod("after")).await.unwrap();
    nodes.await_ready(2, A_WHILE).await.unwrap();
    eventually(A_WHILE, async || {
        let status = pods.get("before").await.unwrap().status.unwrap();
        let count = status.container_statuses.unwrap()[0].restart_count;
        (count == 1).then_some(()).ok_or(count)
    })
    .await;
    assert_eq!(nodes.terminations().len(), 1);
}
