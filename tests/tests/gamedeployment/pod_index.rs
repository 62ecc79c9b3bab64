//! Indexes: every pod has a unique number from the range, the lowest free one.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use operator_tests::Fleet;
use operator_tests::fleet::{condition, game, hooked, until_empty};
use serde_json::{Value, json};
use shared_api::names::pod::{INDEX, INDEX_VARIABLE};
use shared_api::names::workload::{INDEX_ON, INDEX_RANGE};

use crate::fleet;

fn range(start: i64, end: i64) -> Value {
    let range = json!({ "podStartIndex": start, "podEndIndex": end }).to_string();
    json!({ INDEX_ON: "true", INDEX_RANGE: range })
}

fn indexed(replicas: usize, start: i64, end: i64, spec: Value) -> Value {
    let mut manifest = game(replicas, spec);
    manifest["metadata"]["annotations"] = range(start, end);
    manifest
}

/// Returns a pod's index from its annotation, and from each container's environment.
fn index(pod: &Pod) -> (String, Vec<String>) {
    let spec = pod.spec.as_ref().unwrap();
    let variables = spec
        .containers
        .iter()
        .flat_map(|container| container.env.iter().flatten());
    let variables = variables.filter(|variable| variable.name == INDEX_VARIABLE);
    let values = variables.map(|variable| variable.value.clone().unwrap_or_default());
    (pod.annotations()[INDEX].clone(), values.collect())
}

/// Returns the indexes of the non-terminating pods, by pod.
async fn indexes(fleet: &Fleet<'_>) -> BTreeMap<String, i64> {
    let pods = fleet.all_pods().await.into_iter();
    let alive = pods.filter(|(_, pod)| pod.metadata.deletion_timestamp.is_none());
    alive
        .map(|(name, pod)| (name, index(&pod).0.parse().unwrap()))
        .collect()
}

async fn has(fleet: &Fleet<'_>, wanted: &[i64]) {
    let found: Vec<i64> = indexes(fleet).await.into_values().collect();
    let (distinct, count) = (found.iter().copied().collect::<BTreeSet<_>>(), found.len());
    assert_eq!(distinct, wanted.iter().copied().collect());
    assert_eq!(count, wanted.len());
}

#[tokio::test]
async fn every_container_knows_its_pods_number_and_keeps_it() {
    let fleet = fleet("pod-index").await;
    let containers = json!([
        { "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }],
          "env": [{ "name": "ROOM", "value": "room-$(POD_INDEX)" }, { "name": INDEX_VARIABLE, "value": "mine" }] },
        { "name": "sidecar", "image": "sidecar:v1" }
    ]);
    let spec = json!({ "template": { "spec": { "containers": containers } } });
    fleet.launch(&indexed(3, 5, 9, spec)).await;
    fleet.settled(3).await;
    has(&fleet, &[5, 6, 7]).await;
    let before = fleet.all_pods().await;
    for pod in before.values() {
        let (number, variables) = index(pod);
        assert_eq!(variables, [number.clone(), number]);
        let first = pod.spec.as_ref().unwrap().containers[0].env.as_ref().unwrap();
        assert_eq!(first[0].name, INDEX_VARIABLE, "others can refer to it");
    }
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_ready_replicas == 3).await;
    fleet.settled(3).await;
    for (name, pod) in fleet.all_pods().await {
        assert_eq!(
            index(&pod),
            index(&before[&name]),
            "an update in place changes no number"
        );
    }
    fleet.scale(4);
    fleet.settled(4).await;
    has(&fleet, &[5, 6, 7, 8]).await;
}

#[tokio::test]
async fn the_lowest_number_that_is_free_is_given_again() {
    let fleet = fleet("pod-index").await;
    let mut manifest = indexed(3, 0, 10, json!({}));
    manifest["metadata"]["annotations"] = json!({ INDEX_ON: "true" });
    fleet.launch(&manifest).await;
    fleet.settled(3).await;
    has(&fleet, &[0, 1, 2]).await;
    let of = |wanted: i64, all: &BTreeMap<String, i64>| {
        let found = all.iter().find(|(_, index)| **index == wanted);
        found.unwrap().0.clone()
    };
    let one = of(1, &indexes(&fleet).await);
    fleet
        .set(json!({ "replicas": 2, "scaleStrategy": { "podsToDelete": [one] } }))
        .await;
    fleet.settled(2).await;
    has(&fleet, &[0, 2]).await;
    fleet.scale(4);
    fleet.settled(4).await;
    has(&fleet, &[0, 1, 2, 3]).await;
}

#[tokio::test]
async fn in_a_full_range_a_successor_waits_for_the_number_of_the_pod_that_ends() {
    let fleet = fleet("pod-index").await;
    fleet.launch(&indexed(2, 0, 2, json!({}))).await;
    fleet.settled(2).await;
    let pods = fleet.all_pods().await;
    let name = pods.keys().next().unwrap();
    // It stays terminating as long as the finalizer holds it.
    let finalizer = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    hold(&fleet, name, &finalizer).await;
    fleet.delete_pod(name).await;
    let words = format!("1 pod is waiting for an index held by a terminating pod: {name}");
    fleet.until_message("Progressing", &words).await;
    fleet.quiet().await;
    assert_eq!(fleet.names().await.len(), 1);
    assert_eq!(
        condition(&fleet.status().await, "ScaleBlocked"),
        None,
        "nobody is needed"
    );
    hold(&fleet, name, &json!({ "metadata": { "finalizers": null } })).await;
    fleet.settled(2).await;
    // A successor may have both the name and the number.
    let uids = |pods: &BTreeMap<String, Pod>| {
        pods.values()
            .map(|pod| pod.metadata.uid.clone())
            .collect::<BTreeSet<_>>()
    };
    let after = uids(&fleet.all_pods().await);
    assert_eq!(after.intersection(&uids(&pods)).count(), 1);
    has(&fleet, &[0, 1]).await;
    let told = fleet.events().await;
    assert!(
        !told.iter().any(|event| event.starts_with("IndexesExhausted")),
        "{told:?}"
    );
}

async fn hold(fleet: &Fleet<'_>, pod: &str, patch: &Value) {
    let patch = kube::api::Patch::Merge(patch);
    let patched = fleet
        .pods()
        .patch(pod, &kube::api::PatchParams::default(), &patch)
        .await;
    patched.unwrap();
}

#[tokio::test]
async fn a_pod_for_which_there_is_no_number_is_explained_and_comes_when_there_is_one() {
    let fleet = fleet("pod-index").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "type": "RollingUpdate", "maxSurge": 1, "maxUnavailable": 0 });
    fleet.launch(&indexed(2, 0, 2, spec)).await;
    fleet.settled(2).await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("ScaleBlocked", "IndexesExhausted").await;
    assert_eq!(
        message,
        format!(
            "1 pod has no index: all indexes in the range are in use; widen the range in annotation {INDEX_RANGE}"
        )
    );
    fleet.told("IndexesExhausted 1 pod has no index").await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet
        .patch(json!({ "metadata": { "annotations": range(0, 3) } }))
        .await;
    fleet.cleared("ScaleBlocked").await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    let found: BTreeSet<i64> = indexes(&fleet).await.into_values().collect();
    assert_eq!(found.len(), 2);
}
