//! A node missing from the watch is not necessarily gone: it registers again, or the watch is late or broken.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use operator_tests::Fleet;
use operator_tests::fleet::Who;
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use test_kit::api_proxy::{Failure, Matcher};
use test_kit::node::Options;
use test_kit::{ApiProxy, ControlPlane};

use crate::PROGRAMS;

async fn on_two_nodes() -> Fleet<'static> {
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    Fleet::with(control_plane, PROGRAMS, "node-returns", options).await
}

/// Launches four busy pods.
async fn busy(fleet: &Fleet<'_>) {
    let mut hook = until_empty();
    hook["metrics"][0]["consecutiveErrorLimit"] = json!(0);
    fleet.hook("empty", hook).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(7);
}

/// Deletes the Node object. Its containers keep running.
async fn unregister(fleet: &Fleet<'_>, name: &str) -> Node {
    let nodes: Api<Node> = Api::all(fleet.client());
    let node = nodes.get(name).await.unwrap();
    nodes.delete(name, &DeleteParams::default()).await.unwrap();
    node
}

/// Registers the node again, like its kubelet.
async fn register(fleet: &Fleet<'_>, mut node: Node) {
    let nodes: Api<Node> = Api::all(fleet.client());
    node.metadata.resource_version = None;
    node.metadata.uid = None;
    nodes.create(&PostParams::default(), &node).await.unwrap();
}

async fn all_stay(fleet: &Fleet<'_>) {
    fleet.quiet().await;
    fleet.asked(2).await;
    assert_eq!(fleet.names().await.len(), 4);
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn players_on_a_node_that_registers_again_play_on() {
    let fleet = on_two_nodes().await;
    busy(&fleet).await;
    fleet.scale(2);
    let victims = fleet.asked(2).await;
    let mut nodes: Vec<String> = victims
        .values()
        .map(|victim| fleet.nodes.pod(victim).view().unwrap().node.unwrap())
        .collect();
    nodes.dedup();
    for node in nodes {
        let object = unregister(&fleet, &node).await;
        register(&fleet, object).await;
    }
    all_stay(&fleet).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
}

#[tokio::test]
async fn players_on_a_node_that_a_broken_watch_has_never_shown_play_on() {
    let mut fleet = on_two_nodes().await;
    fleet.kill_workloads();
    let proxy = ApiProxy::start(ControlPlane::shared(shared_api::crd::all).await).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    busy(&fleet).await;
    // The operator starts while one node is not registered, and never sees it.
    fleet.kill_workloads();
    let node = unregister(&fleet, &fleet.nodes.node_names()[0]).await;
    fleet.start_behind(&proxy, Who::Workloads).await;
    proxy.fail_next(
        Matcher::new("GET", "/api/v1/nodes"),
        Failure::refused(403),
        u32::MAX,
    );
    proxy.cut_watches();
    register(&fleet, node).await;
    fleet.scale(2);
    all_stay(&fleet).await;
    proxy.clear_faults();
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
}
