//! Deletion order of pods, by their deletion cost.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use operator_tests::Fleet;
use operator_tests::fleet::game;
use serde_json::json;
use shared_api::names::NODE_DELETION_COST;
use shared_api::names::pod::DELETION_COST;
use shared_api::names::workload::COST_ORDER;
use test_kit::ControlPlane;
use test_kit::node::Options;

use crate::{PROGRAMS, fleet};

async fn set_costs(fleet: &Fleet<'_>) -> Vec<String> {
    let names: Vec<String> = fleet.names().await.into_iter().collect();
    for (name, cost) in names.iter().zip(["10", "-5", "7"]) {
        fleet.annotate(name, json!({ DELETION_COST: cost })).await;
    }
    names
}

#[tokio::test]
async fn the_cheapest_pod_goes_first_and_one_without_a_cost_last() {
    let fleet = fleet("deletion-cost").await;
    fleet.launch(&game(4, json!({}))).await;
    let names = set_costs(&fleet).await;
    for (replicas, gone) in [(3, 1), (2, 2), (1, 0)] {
        fleet.scale(replicas);
        fleet.settled(replicas).await;
        assert!(fleet.nodes.terminated_pods().contains(&names[gone]), "{replicas}");
    }
    assert_eq!(fleet.names().await, BTreeSet::from([names[3].clone()]));
}

#[tokio::test]
async fn descending_order_turns_it_round() {
    let fleet = fleet("deletion-cost").await;
    let mut manifest = game(3, json!({}));
    manifest["metadata"]["annotations"] = json!({ COST_ORDER: "descend" });
    fleet.launch(&manifest).await;
    let names = set_costs(&fleet).await;
    for (replicas, gone) in [(2, 0), (1, 2)] {
        fleet.scale(replicas);
        fleet.settled(replicas).await;
        assert!(fleet.nodes.terminated_pods().contains(&names[gone]), "{replicas}");
    }
    assert_eq!(fleet.names().await, BTreeSet::from([names[1].clone()]));
}

#[tokio::test]
async fn the_cheapest_node_is_emptied_first() {
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let fleet = Fleet::with(control_plane, PROGRAMS, "deletion-cost", options).await;
    fleet.launch(&game(4, json!({}))).await;
    let nodes: Api<Node> = Api::all(fleet.client());
    for (node, cost) in fleet.nodes.node_names().iter().zip(["9", "1"]) {
        let before = fleet.decisions().await;
        let patch = json!({ "metadata": { "annotations": { NODE_DELETION_COST: cost } } });
        nodes
            .patch(node, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
        fleet.decided_since(before).await;
    }
    let cheap = fleet.nodes.node_names()[1].clone();
    let on_it = |pod: &test_kit::node::PodView| pod.node.as_deref() == Some(cheap.as_str());
    let there: BTreeSet<String> = fleet
        .nodes
        .pods()
        .into_iter()
        .filter(on_it)
        .map(|pod| pod.name)
        .collect();
    assert_eq!(there.len(), 2);
    fleet.scale(2);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), there);
}
