//! Tests of a pod's ordinary life: it is bound, becomes ready, and is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use test_kit::node::{EndReason, GameEvent, Options, Timing};

use super::{A_WHILE, NodeHarness, end};

#[tokio::test]
async fn pods_become_ready_with_everything_that_a_kubelet_reports() {
    let harness = NodeHarness::with(
        "ready",
        Options {
            nodes: 2,
            ..Options::default()
        },
    )
    .await;
    let [one, other] = harness.ready(["a", "b"]).await;
    assert_ne!(one.node, other.node, "nodes take turns");
    assert_ne!(one.ip, other.ip);
    let status = harness.status("a").await;
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.pod_ip, one.ip.map(|ip| ip.to_string()));
    assert_eq!(status.pod_ips.unwrap().len(), 1);
    assert!(status.host_ip.unwrap().starts_with("127."));
    assert!(status.start_time.is_some());
    let conditions: BTreeMap<_, _> = status
        .conditions
        .unwrap()
        .into_iter()
        .map(|one| (one.type_, (one.status, one.last_transition_time.is_some())))
        .collect();
    let kinds: Vec<_> = conditions.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["ContainersReady", "Initialized", "PodScheduled", "Ready"]);
    assert!(
        conditions
            .values()
            .all(|(status, since)| status == "True" && *since)
    );
    let game = harness.game("a").await;
    assert_eq!((game.name.as_str(), game.image.as_str()), ("game", "game:1"));
    assert!(game.image_id.starts_with("game@sha256:"), "{}", game.image_id);
    assert!(game.container_id.unwrap().starts_with("containerd://"));
    assert!(game.ready);
    assert_eq!(game.started, Some(true));
    assert_eq!(game.restart_count, 0);
    assert!(game.state.unwrap().running.unwrap().started_at.is_some());
    assert_eq!(harness.ends(), []);
}

#[tokio::test]
async fn readiness_gates_are_honoured_and_conditions_of_others_remain() {
    let harness = NodeHarness::new("gates").await;
    let gate = json!({"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]});
    harness.create_with("p", gate).await;
    harness
        .that("p", |pod| {
            pod.containers.len() == 2 && pod.containers.iter().all(|one| one.ready)
        })
        .await;
    test_kit::eventually(A_WHILE, async || {
        let ready = harness.condition("p", "Ready").await;
        (ready.reason.as_deref() == Some("ReadinessGatesNotReady"))
            .then_some(())
            .ok_or(ready)
    })
    .await;
    for (value, ready) in [("True", true), ("False", false), ("True", true)] {
        let condition = json!({"type": "InPlaceUpdateReady", "status": value, "message": "the operator's"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        harness
            .pods
            .patch_status("p", &PatchParams::default(), &patch)
            .await
            .unwrap();
        harness.that("p", |pod| pod.ready == ready).await;
    }
    let gate = harness.condition("p", "InPlaceUpdateReady").await;
    assert_eq!(gate.message.as_deref(), Some("the operator's"));
    assert_eq!(harness.condition("p", "Ready").await.reason, None);
    assert_eq!(harness.ends(), []);
}

#[tokio::test]
async fn a_ready_pod_is_written_to_by_its_operator_alone() {
    let harness = NodeHarness::new("calm").await;
    harness.ready(["p"]).await;
    let before = harness.pods.get("p").await.unwrap().metadata.resource_version;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"mine": "yes"}}}));
    let written = harness
        .pods
        .patch("p", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_ne!(written.metadata.resource_version, before);
    // The whole life of a second pod gives the node time for a needless write.
    harness.ready(["q"]).await;
    harness.delete("q").await;
    harness.gone("q").await;
    let after = harness.pods.get("p").await.unwrap().metadata;
    assert_eq!(after.resource_version, written.metadata.resource_version);
}

#[tokio::test]
async fn a_deleted_pod_ends_alone_and_its_containers_run_until_then() {
    let harness = NodeHarness::new("deletion").await;
    let [doomed, _] = harness.ready(["doomed", "spared"]).await;
    let started = Instant::now();
    harness.delete("doomed").await;
    let terminating = harness.pods.get_opt("doomed").await.unwrap();
    assert!(terminating.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    harness.gone("doomed").await;
    assert!(harness.pods.get_opt("doomed").await.unwrap().is_none());
    let deleted = harness.nodes.pod("doomed").terminations();
    assert!(deleted[0].at - started >= Options::default().timing.stop);
    assert_eq!(deleted[0].uid, doomed.uid);
    let expected = [
        end("doomed", "game", EndReason::Deleted),
        end("doomed", "sidecar", EndReason::Deleted),
    ];
    assert_eq!(harness.ends(), expected);
    assert_eq!(
        harness.nodes.terminated_pods(),
        BTreeSet::from(["doomed".to_owned()])
    );
    assert_eq!(
        harness.nodes.pod("doomed").history().last().unwrap().what,
        GameEvent::Gone
    );
}

#[tokio::test]
async fn a_pod_removed_from_the_api_by_force_is_recorded_as_removed() {
    // The API server writes the deletion before the removal: a node that stops fast may act on the first.
    let timing = Timing {
        stop: A_WHILE,
        ..Timing::default()
    };
    let options = Options {
        timing,
        ..Options::default()
    };
    let harness = NodeHarness::with("force", options).await;
    harness.ready(["p"]).await;
    harness
        .pods
        .delete("p", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    harness.gone("p").await;
    assert!(harness.ends().contains(&end("p", "game", EndReason::Removed)));
}

#[tokio::test]
async fn a_pod_of_the_same_name_is_another_pod() {
    let harness = NodeHarness::new("same").await;
    let [first] = harness.ready(["p"]).await;
    harness.delete("p").await;
    harness.gone("p").await;
    let [second] = harness.ready(["p"]).await;
    assert_ne!(first.uid, second.uid);
    assert_eq!(harness.ends().len(), 2, "the first one's");
}

#[tokio::test]
async fn nodes_are_ready_and_are_gone_after_a_stop() {
    let harness = NodeHarness::with(
        "nodes",
        Options {
            nodes: 2,
            ..Options::default()
        },
    )
    .await;
    let objects: Api<Node> = Api::all(harness.shared.client());
    let names = harness.nodes.node_names();
    assert_eq!(names.len(), 2);
    for name in &names {
        let node = objects.get(name).await.unwrap();
        let status = node.status.unwrap();
        let conditions = status.conditions.unwrap();
        assert!(
            conditions
                .iter()
                .any(|one| one.type_ == "Ready" && one.status == "True")
        );
        assert!(
            status
                .addresses
                .unwrap()
                .iter()
                .any(|one| one.type_ == "InternalIP")
        );
        assert_eq!(node.spec.unwrap().taints, None);
    }
    let [pod] = harness.ready(["p"]).await;
    let server = std::net::SocketAddr::new(pod.ip.unwrap(), harness.nodes.port());
    assert!(std::net::TcpStream::connect(server).is_ok());
    harness.nodes.stop().await.unwrap();
    for name in &names {
        assert!(objects.get_opt(name).await.unwrap().is_none());
    }
    assert!(std::net::TcpStream::connect(server).is_err());
}

async fn crowd(harness: &NodeHarness, count: usize) -> std::time::Duration {
    let started = Instant::now();
    let creations = (0..count).map(|number| {
        let name = format!("p-{number}");
        async move { harness.create(&name).await }
    });
    let mut creations = futures::StreamExt::buffer_unordered(futures::stream::iter(creations), 16);
    while futures::StreamExt::next(&mut creations).await.is_some() {}
    let ready = harness.nodes.await_ready(count, A_WHILE).await.unwrap();
    let addresses: BTreeSet<_> = ready.iter().map(|pod| pod.ip).collect();
    assert_eq!(addresses.len(), count);
    started.elapsed()
}

#[tokio::test]
async fn a_hundred_pods_are_nothing() {
    let harness = NodeHarness::new("hundred").await;
    crowd(&harness, 100).await;
    assert_eq!(harness.ends(), []);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn a_thousand_pods_are_ready_in_seconds() {
    let harness = NodeHarness::with(
        "thousand",
        Options {
            nodes: 5,
            ..Options::default()
        },
    )
    .await;
    let created = crowd(&harness, 1000).await;
    let started = Instant::now();
    let all = kube::api::ListParams::default();
    harness
        .pods
        .delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    harness
        .nodes
        .await_pods(A_WHILE, |pods| pods.is_empty())
        .await
        .unwrap();
    eprintln!("1000 pods ready in {created:?}, gone in {:?}", started.elapsed());
}
