//! Removal requests on pods: a requested pod is deleted and replaced once its hook succeeds.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use operator_tests::fleet::{Fleet, game, hooked, until_empty};
use operator_tests::merge;
use serde_json::{Value, json};
use shared_api::names::pod::{REMOVAL_GUARD, REMOVAL_REQUESTED};
use shared_api::removal_request::{RemovalRequests, RemovalType};

use crate::fleet;

/// A workload whose pods are deleted on request once nobody plays on them.
fn guarded(replicas: usize, more: Value) -> Value {
    let mut spec = hooked("empty");
    merge(&mut spec, json!({ "disruption": { "policy": "Ask" } }));
    merge(&mut spec, more);
    game(replicas, spec)
}

/// Formats requests of these requesters, made now.
fn requests(requesters: &[&str]) -> String {
    let mut requests = RemovalRequests::default();
    for requester in requesters {
        let recorded = requests.record(requester, RemovalType::Eviction, Timestamp::now());
        recorded.unwrap();
    }
    requests.text()
}

async fn request(fleet: &Fleet<'_>, pod: &str, requesters: &[&str]) {
    let text = requests(requesters);
    fleet.annotate(pod, json!({ REMOVAL_REQUESTED: text })).await;
}

#[tokio::test]
async fn a_requested_pod_is_deleted_when_it_is_empty_and_replaced_under_another_name() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded(3, json!({}))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let busy = before.first().unwrap();
    request(&fleet, busy, &["drain", "autoscaler"]).await;
    assert_eq!(
        fleet.asked(1).await.into_values().collect::<Vec<_>>(),
        [busy.clone()]
    );
    let status = fleet.until(|status| status.removal_requests.len() == 2).await;
    assert_eq!(status.removal_pending_replicas, 1);
    for entry in &status.removal_requests {
        assert_eq!(&entry.pod_name, busy);
        assert!(entry.message.as_ref().unwrap().contains("HookRun"), "{entry:?}");
    }
    fleet.quiet().await;
    assert_eq!(fleet.names().await, before);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([busy.clone()]));
    assert!(!fleet.names().await.contains(busy), "the name was used again");
    let status = fleet.status().await;
    assert_eq!(
        (status.removal_pending_replicas, status.removal_requests),
        (0, vec![])
    );
}

#[tokio::test]
async fn a_pod_is_kept_when_its_last_request_is_withdrawn() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded(2, json!({}))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let busy = before.first().unwrap();
    request(&fleet, busy, &["drain", "autoscaler"]).await;
    fleet.asked(1).await;
    request(&fleet, busy, &["autoscaler"]).await;
    let status = fleet.until(|status| status.removal_requests.len() == 1).await;
    assert_eq!(status.removal_requests[0].requester, "autoscaler");
    assert_eq!(fleet.marked().await, BTreeSet::from([busy.clone()]));
    fleet.annotate(busy, json!({ REMOVAL_REQUESTED: null })).await;
    fleet.settled(2).await;
    assert_eq!(fleet.marked().await, BTreeSet::new());
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, before);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

#[tokio::test]
async fn a_pod_is_kept_when_its_request_expires() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded(2, json!({}))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let soon = Timestamp::now() + SignedDuration::from_secs(5);
    let mut text: Value = serde_json::from_str(&requests(&["drain"])).unwrap();
    text["requests"][0]["expirationTime"] = json!(soon);
    let busy = before.first().unwrap();
    fleet
        .annotate(busy, json!({ REMOVAL_REQUESTED: text.to_string() }))
        .await;
    fleet.asked(1).await;
    // Nothing but time changes.
    fleet.settled(2).await;
    assert!(Timestamp::now() >= soon, "the request was dropped early");
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.names().await, before);
    assert_eq!(fleet.status().await.removal_requests, []);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

#[tokio::test]
async fn requests_and_the_guard_label_follow_the_policy() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    fleet
        .launch(&guarded(2, json!({ "disruption": { "policy": "Unguarded" } })))
        .await;
    let labels = async |wanted: usize| {
        let labelled = |pod: &k8s_openapi::api::core::v1::Pod| {
            let labels = pod.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.get(REMOVAL_GUARD).is_some_and(|value| value == "Ask"))
        };
        let pods = fleet.until_pods(|pods| pods.values().filter(|pod| labelled(pod)).count() == wanted);
        pods.await
    };
    labels(0).await;
    let before = fleet.names().await;
    let requested = before.first().unwrap();
    request(&fleet, requested, &["drain"]).await;
    fleet.quiet().await;
    assert_eq!(fleet.names().await, before);
    fleet.set(json!({ "disruption": { "policy": "Ask" } })).await;
    labels(2).await;
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([requested.clone()]));
    // The successor had the label from the start.
    labels(2).await;
    fleet.set(json!({ "disruption": null })).await;
    labels(0).await;
}

#[tokio::test]
async fn successors_come_first_if_no_pod_may_be_unavailable() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    let strategy = json!({ "updateStrategy": { "maxUnavailable": 0, "maxSurge": 1 } });
    fleet.launch(&guarded(2, strategy)).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    let busy = before.last().unwrap();
    request(&fleet, busy, &["drain"]).await;
    fleet.until(|status| status.ready_replicas == 3).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([busy.clone()]));
}

#[tokio::test]
async fn a_pod_that_somebody_else_deletes_is_reported_and_one_that_the_operator_deletes_is_not() {
    let fleet = fleet("removal-requests").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&guarded(3, json!({}))).await;
    let before: Vec<String> = fleet.names().await.into_iter().collect();
    request(&fleet, &before[0], &["drain"]).await;
    fleet.settled(3).await;
    fleet.set(json!({ "replicas": 2 })).await;
    fleet.settled(2).await;
    let lost = fleet.names().await.into_iter().next().unwrap();
    fleet.delete_pod(&lost).await;
    fleet
        .told(&format!(
            "PodLostUngated pod {lost} was deleted by another client"
        ))
        .await;
    fleet.settled(2).await;
    let metric = "hookgate_gamedeployment_pods_lost_ungated_total";
    assert_eq!(fleet.metric(metric, "").await, 1);
}
