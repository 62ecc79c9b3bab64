//! Pods that vanish while they wait for their hook: their run is removed, and a replacement appears only if
//! the count requires it.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DeleteParams;
use operator_tests::Fleet;
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use shared_api::names::pod::DELETING;
use test_kit::ControlPlane;
use test_kit::eventually;
use test_kit::node::{Loss, Options};

use crate::{PROGRAMS, fleet};

/// Time limit for a lost node to count as gone, and for its pods to be deleted.
const GONE: Duration = Duration::from_mins(2);

/// Launches busy pods and scales down by one. Returns the pod selected for deletion.
async fn draining(fleet: &Fleet<'_>, replicas: usize) -> String {
    let mut hook = until_empty();
    hook["metrics"][0]["consecutiveErrorLimit"] = json!(0);
    fleet.hook("empty", hook).await;
    fleet.launch(&game(replicas, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(replicas - 1);
    fleet.asked(1).await.into_values().next().unwrap()
}

#[tokio::test]
async fn a_victim_deleted_by_hand_is_not_replaced() {
    let fleet = fleet("vanishing-pods").await;
    let victim = draining(&fleet, 3).await;
    let before = fleet.names().await;
    fleet.delete_pod(&victim).await;
    fleet.settled(2).await;
    let gone = BTreeSet::from([victim]);
    assert_eq!(fleet.nodes.terminated_pods(), gone);
    assert_eq!(fleet.names().await, before.difference(&gone).cloned().collect());
}

#[tokio::test]
async fn another_pod_deleted_by_hand_saves_the_victim() {
    let fleet = fleet("vanishing-pods").await;
    let victim = draining(&fleet, 3).await;
    let other = fleet
        .names()
        .await
        .into_iter()
        .find(|name| *name != victim)
        .unwrap();
    fleet.delete_pod(&other).await;
    fleet.settled(2).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([other]));
    assert!(fleet.names().await.contains(&victim));
}

#[tokio::test]
async fn an_evicted_victim_takes_its_question_with_it() {
    let fleet = fleet("vanishing-pods").await;
    let victim = draining(&fleet, 2).await;
    fleet.nodes.pod(&victim).evict();
    fleet.until_runs(<[_]>::is_empty).await;
    fleet
        .until(|status| {
            (
                status.replicas,
                status.ready_replicas,
                status.hook_pending_replicas,
            ) == (1, 1, 0)
        })
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.all_pods().await.len(), 1, "a pod that has ended is removed");
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([victim]));
}

#[tokio::test]
async fn a_pod_that_ends_by_itself_is_replaced_without_a_question() {
    let fleet = fleet("vanishing-pods").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let names = fleet.names().await;
    let (first, second) = (names.first().unwrap(), names.last().unwrap());
    let before: Vec<_> = fleet
        .all_pods()
        .await
        .into_values()
        .map(|pod| pod.metadata.uid)
        .collect();
    fleet.nodes.pod(first).succeed();
    // It ended soon after its start: its replacement backs off, and the object stays meanwhile.
    fleet.says("ScaleBlocked", "PodsEndAtOnce").await;
    fleet.delete_pod(second).await;
    fleet
        .until_pods(|pods| pods.len() == 2 && pods.values().all(|pod| !before.contains(&pod.metadata.uid)))
        .await;
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), names);
}

#[tokio::test]
async fn on_a_node_that_is_gone_nobody_plays() {
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let fleet = Fleet::with(control_plane, PROGRAMS, "vanishing-pods", options).await;
    let victim = draining(&fleet, 4).await;
    let node = fleet.nodes.pod(&victim).view().unwrap().node.unwrap();
    fleet.nodes.lose_node(&node, Loss::Deleted).await.unwrap();
    // A node that registers again does so soon: until its absence is certain, hooks run for its pods as
    // usual.
    fleet.quiet().await;
    assert!(fleet.names().await.contains(&victim));
    eventually(GONE, || async {
        let told = fleet.events().await;
        let words = "its node no longer exists";
        told.iter().any(|event| event.contains(words)).then_some(())
    })
    .await;
    fleet.until_runs(<[_]>::is_empty).await;
    let pods = fleet.all_pods().await;
    let deleted = pods
        .values()
        .filter(|pod| pod.metadata.deletion_timestamp.is_some());
    assert_eq!(
        deleted.map(ResourceExt::name_any).collect::<Vec<_>>(),
        [victim.clone()]
    );
    // The cluster's garbage collector ends the pods that no kubelet can.
    let at_once = DeleteParams::default().grace_period(0);
    fleet.pods().delete(&victim, &at_once).await.unwrap();
    fleet.settled(3).await;
}

#[tokio::test]
async fn on_a_node_that_is_silent_somebody_may_play() {
    let options = Options {
        nodes: 2,
        ..Options::default()
    };
    let control_plane = ControlPlane::shared(shared_api::crd::all).await;
    let fleet = Fleet::with(control_plane, PROGRAMS, "vanishing-pods", options).await;
    let victim = draining(&fleet, 2).await;
    let node = fleet.nodes.pod(&victim).view().unwrap().node.unwrap();
    fleet.nodes.lose_node(&node, Loss::Dead).await.unwrap();
    // The hook runs and gets no response: the pod stays, and the status says so.
    let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert!(
        message.contains(&victim) && message.contains("retry to true"),
        "{message}"
    );
    fleet.quiet().await;
    let pod = fleet.pods().get(&victim).await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none() && pod.annotations().contains_key(DELETING));
    // The node comes back with new containers: no hook has run for those.
    fleet.nodes.return_node(&node).await.unwrap();
    fleet.asked(1).await;
    fleet.cleared("ScaleBlocked").await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}
