//! One pod whose players stay for hours blocks no other pod.

use std::collections::BTreeSet;

use kube::api::{Patch, PatchParams};
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use shared_api::names::pod::INSTANCE;

use crate::fleet;

#[tokio::test]
async fn ten_idle_pods_leave_though_the_first_victim_is_busy_and_its_question_stays_the_same() {
    let fleet = fleet("head-of-line").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(12, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    // The busy pod is selected first, and its hook runs as long as it takes.
    fleet.scale(11);
    let (run, busy) = fleet.asked(1).await.into_iter().next().unwrap();
    let uid = fleet.runs().get(&run).await.unwrap().metadata.uid;
    let all = fleet.names().await;
    for name in all.iter().filter(|name| **name != busy) {
        fleet.nodes.pod(name).set_players(0);
    }
    fleet.scale(1);
    let left = fleet.until_pods(|pods| pods.len() == 2).await;
    assert!(left.contains_key(&busy));
    let status = fleet
        .until(|status| (status.replicas, status.hook_pending_replicas) == (2, 1))
        .await;
    assert_eq!(status.ready_replicas, 2);
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!((&entry.pod_name, entry.hook_run.as_ref()), (&busy, Some(&run)));
    fleet.quiet().await;
    assert_eq!(
        fleet.runs().get(&run).await.unwrap().metadata.uid,
        uid,
        "it was asked only once"
    );
    let gone = fleet.nodes.terminated_pods();
    assert_eq!(gone.len(), 10);
    assert!(!gone.contains(&busy));
    fleet.nodes.pod(&busy).set_players(0);
    fleet.settled(1).await;
    let gone = fleet.nodes.terminated_pods();
    assert!(gone.len() == 11 && gone.contains(&busy));
    let stays: BTreeSet<String> = all.difference(&gone).cloned().collect();
    assert_eq!(fleet.names().await, stays);
}

/// Users and the original can give two pods the same instance id, which HookRuns are named after.
#[tokio::test]
async fn of_two_pods_with_one_instance_id_each_is_asked() {
    let fleet = fleet("twins").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let twins = json!({ "metadata": { "labels": { INSTANCE: "twins" } } });
    let (pods, params) = (fleet.pods(), PatchParams::default());
    for name in fleet.names().await {
        let patched = pods.patch(&name, &params, &Patch::Merge(&twins)).await;
        let _ = patched.unwrap();
    }
    fleet.scale(1);
    let asked = fleet.asked(2).await;
    let about: BTreeSet<&String> = asked.values().collect();
    assert_eq!(about.len(), 2, "{asked:?}");
    for name in asked.values() {
        fleet.nodes.pod(name).set_players(0);
    }
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 2);
}
