//! Ownership of pods: the operator adopts orphans that match the selector, and releases pods that no longer
//! do.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Resource, ResourceExt};
use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game, hooked, until_empty};
use serde_json::{Value, json};

use crate::events::{WORKLOAD, until_told};
use crate::fleet;

/// Returns the UIDs of a pod's owners.
fn owners(pod: &Pod) -> Vec<String> {
    pod.owner_references()
        .iter()
        .map(|owner| owner.uid.clone())
        .collect()
}

/// Creates a pod by hand that the workload selects.
async fn by_hand(fleet: &Fleet<'_>, name: &str, metadata: Value) -> Pod {
    let mut pod = json!({
        "metadata": { "name": name, "labels": { "app": GAME } },
        "spec": { "containers": [{ "name": "game", "image": "game:v1" }] }
    });
    operator_tests::merge(&mut pod["metadata"], metadata);
    let pod: Pod = serde_json::from_value(pod).unwrap();
    fleet.pods().create(&PostParams::default(), &pod).await.unwrap()
}

fn relabel(fleet: &Fleet<'_>, pod: &str, app: &str) {
    let _ = fleet.kubectl(&["label", "--overwrite", "pod", pod, &format!("app={app}")], "");
}

#[tokio::test]
async fn a_workload_that_is_made_anew_takes_over_what_the_one_before_left_behind() {
    let fleet = fleet("adoption").await;
    let manifest = game(3, json!({}));
    fleet.launch(&manifest).await;
    let first = fleet.settled(3).await;
    let (before, uid) = (fleet.all_pods().await, fleet.game().await.metadata.uid.unwrap());
    let _ = fleet.kubectl(&["delete", "gamedeployment", GAME, "--cascade=orphan"], "");
    fleet
        .until_pods(|pods| pods.values().all(|pod| owners(pod).is_empty()))
        .await;
    fleet.launch(&manifest).await;
    let status = fleet.settled(3).await;
    let (after, new) = (fleet.all_pods().await, fleet.game().await.metadata.uid.unwrap());
    assert_ne!(new, uid);
    for (name, pod) in &after {
        assert_eq!(pod.metadata.uid, before[name].metadata.uid);
        assert_eq!(owners(pod), [new.clone()]);
    }
    assert_eq!(status.update_revision, first.update_revision);
    assert_eq!((after.len(), fleet.nodes.terminations().len()), (3, 0));
}

#[tokio::test]
async fn a_pod_without_an_owner_is_taken_in_and_goes_first_when_its_hook_says_so() {
    let fleet = fleet("adoption").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    let own = fleet.names().await;
    fleet.nodes.every_pod().set_players(1);
    by_hand(&fleet, "stray", json!({ "labels": { "app": "elsewhere" } })).await;
    let ready = |pod: &test_kit::node::PodView| pod.ready;
    fleet
        .nodes
        .pod("stray")
        .await_that(operator_tests::SOON, ready)
        .await
        .unwrap();
    relabel(&fleet, "stray", GAME);
    let asked = fleet.asked(1).await;
    assert_eq!(
        asked.into_values().collect::<Vec<_>>(),
        ["stray"],
        "it has none of the revisions"
    );
    let uid = fleet.game().await.metadata.uid.unwrap();
    assert_eq!(owners(&fleet.pods().get("stray").await.unwrap()), [uid]);
    fleet
        .until(|status| (status.replicas, status.hook_pending_replicas) == (3, 1))
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, own);
}

#[tokio::test]
async fn a_pod_of_another_controller_is_neither_counted_nor_touched() {
    let fleet = fleet("adoption").await;
    let maps: Api<ConfigMap> = Api::namespaced(fleet.client(), &fleet.namespace);
    let owner = ConfigMap {
        metadata: ObjectMeta {
            name: Some("owner".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let owner = maps.create(&PostParams::default(), &owner).await.unwrap();
    let reference = json!({ "ownerReferences": [owner.controller_owner_ref(&()).unwrap()] });
    by_hand(&fleet, "foreign", reference.clone()).await;
    let finished = by_hand(&fleet, "done", json!({})).await;
    fleet.nodes.pod("done").succeed();
    let ended = |pod: &test_kit::node::PodView| pod.phase == "Succeeded";
    fleet
        .nodes
        .pod("done")
        .await_that(operator_tests::SOON, ended)
        .await
        .unwrap();
    fleet.launch(&game(2, json!({}))).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.scale(1);
    fleet
        .until(|status| (status.replicas, status.ready_replicas) == (1, 1))
        .await;
    fleet.quiet().await;
    let pods = fleet.all_pods().await;
    assert_eq!(owners(&pods["foreign"]), [owner.metadata.uid.unwrap()]);
    assert_eq!(
        pods["foreign"].spec.as_ref().unwrap().containers[0]
            .image
            .as_deref(),
        Some("game:v1")
    );
    assert!(owners(&pods["done"]).is_empty());
    assert_eq!(pods["done"].metadata.uid, finished.metadata.uid);
    let gone = fleet.nodes.terminated_pods();
    assert!(!gone.contains("foreign"), "{gone:?}");
}

#[tokio::test]
async fn a_pod_with_another_label_is_let_go_alive_and_replaced() {
    let fleet = fleet("release").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let one = before.first().unwrap();
    relabel(&fleet, one, "debug");
    fleet.until_pods(|pods| pods.len() == 3).await;
    let status = fleet
        .until(|status| (status.replicas, status.ready_replicas) == (2, 2))
        .await;
    assert_eq!(
        status.hook_pending_replicas, 0,
        "nobody is asked: nobody is cut off"
    );
    fleet.quiet().await;
    let pods = fleet.all_pods().await;
    assert_eq!(owners(&pods[one]), [""; 0]);
    until_told(&fleet, WORKLOAD, "PodsReleased", one, 1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    // Relabelled, there is one pod too many, and the hook of the pod selected for deletion runs.
    relabel(&fleet, one, GAME);
    fleet.asked(1).await;
    until_told(&fleet, WORKLOAD, "PodsAdopted", one, 1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn a_victim_that_is_let_go_takes_its_question_with_it() {
    let fleet = fleet("release").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let (_, victim) = fleet.asked(1).await.into_iter().next().unwrap();
    relabel(&fleet, &victim, "debug");
    fleet.until_runs(<[_]>::is_empty).await;
    let status = fleet
        .until(|status| (status.replicas, status.hook_pending_replicas) == (1, 0))
        .await;
    assert_eq!(status.pre_delete_hook_condition, []);
    fleet.nodes.every_pod().set_players(0);
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    assert_eq!(fleet.names().await.len(), 2, "it plays on, outside");
}
