//! Steps of one pod through an in-place update: out of service, grace period, images, back into service.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use operator_tests::Fleet;
use operator_tests::fleet::{condition, game, hooked, until_empty};
use serde_json::json;
use shared_api::names::pod::IN_PLACE_READY;
use test_kit::node::{Behaviour, GameEvent, PodSelector};

use crate::fleet;

fn in_service(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    { conditions }.any(|condition| condition.type_ == IN_PLACE_READY && condition.status == "True")
}

fn started(fleet: &Fleet<'_>) -> BTreeSet<String> {
    let history = fleet.nodes.history().into_iter();
    let images = history.filter_map(|event| match event.what {
        GameEvent::Started { image, .. } => Some(image),
        _ => None,
    });
    images.collect()
}

/// Returns the first time of a matching event, by the wall clock.
fn when(fleet: &Fleet<'_>, what: impl Fn(&GameEvent) -> bool) -> jiff::Timestamp {
    let history = fleet.nodes.history().into_iter();
    { history }.find(|event| what(&event.what)).unwrap().time
}

#[tokio::test]
async fn images_are_changed_when_the_grace_period_is_over_and_to_the_newest() {
    let fleet = fleet("grace").await;
    let grace = json!({ "updateStrategy": { "inPlaceUpdateStrategy": { "gracePeriodSeconds": 2 } } });
    fleet.launch(&game(1, grace)).await;
    fleet.set_image("game:v2").await;
    fleet
        .until_pods(|pods| !in_service(&pods[pods.keys().next().unwrap()]))
        .await;
    fleet.until(|status| status.ready_replicas == 0).await;
    assert_eq!(fleet.images().await, ["game:v1".to_owned()].into());
    fleet.set_image("game:v3").await;
    fleet.settled(1).await;
    fleet.all_run("game:v3", 1).await;
    assert_eq!(started(&fleet), ["game:v1", "game:v3"].map(str::to_owned).into());
    assert_eq!(fleet.nodes.terminations().len(), 1);
    let out = when(&fleet, |what| *what == GameEvent::NotReady);
    let changed = when(&fleet, |what| matches!(what, GameEvent::Terminated { .. }));
    let waited = changed.duration_since(out);
    assert!(waited > SignedDuration::from_millis(1900), "{waited:?}");
}

#[tokio::test]
async fn a_grace_period_that_is_called_off_changes_nothing() {
    let fleet = fleet("grace").await;
    let grace = json!({ "updateStrategy": { "inPlaceUpdateStrategy": { "gracePeriodSeconds": 600 } } });
    fleet.launch(&game(1, grace)).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.ready_replicas == 0).await;
    fleet.set_image("game:v1").await;
    fleet.settled(1).await;
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.ready_replicas == 0).await;
    fleet.set(json!({ "updateStrategy": { "paused": true } })).await;
    fleet.until(|status| status.ready_replicas == 1).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn the_next_pod_waits_until_this_one_has_been_ready_long_enough() {
    let fleet = fleet("min-ready").await;
    let spec = json!({ "minReadySeconds": 2, "updateStrategy": { "maxUnavailable": 1 } });
    fleet.launch(&game(2, spec)).await;
    fleet.set_image("game:v2").await;
    fleet
        .until(|status| (status.ready_replicas, status.available_replicas) == (2, 1))
        .await;
    fleet.settled(2).await;
    fleet.until(|status| status.available_replicas == 2).await;
    let ends = fleet.nodes.terminations();
    assert_eq!(ends.len(), 2);
    let history = fleet.nodes.history();
    let ready = history
        .iter()
        .find(|event| event.pod == ends[0].pod && event.what == GameEvent::Ready && event.at > ends[0].at);
    let waited = ends[1].time.duration_since(ready.unwrap().time);
    // Condition times are whole seconds.
    assert!(waited > SignedDuration::from_millis(900), "{waited:?}");
    assert!(waited < SignedDuration::from_secs(10), "{waited:?}");
}

#[tokio::test]
async fn labels_and_annotations_change_without_a_restart() {
    let fleet = fleet("metadata").await;
    fleet.launch(&game(2, json!({}))).await;
    let uids = |pods: &std::collections::BTreeMap<String, Pod>| {
        pods.values()
            .map(|pod| pod.metadata.uid.clone())
            .collect::<Vec<_>>()
    };
    let before = uids(&fleet.all_pods().await);
    let metadata = json!({ "labels": { "season": "2" }, "annotations": { "note": "new" } });
    fleet.set(json!({ "template": { "metadata": metadata } })).await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.settled(2).await;
    let pods = fleet.all_pods().await;
    for pod in pods.values() {
        assert_eq!(pod.metadata.labels.as_ref().unwrap()["season"], "2");
        assert_eq!(pod.metadata.annotations.as_ref().unwrap()["note"], "new");
    }
    let metadata = json!({ "labels": { "season": null }, "annotations": null });
    fleet.set(json!({ "template": { "metadata": metadata } })).await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.settled(2).await;
    let pods = fleet.all_pods().await;
    assert!(
        pods.values()
            .all(|pod| !pod.metadata.labels.as_ref().unwrap().contains_key("season"))
    );
    assert!(pods.values().all(|pod| {
        !pod.metadata
            .annotations
            .clone()
            .unwrap_or_default()
            .contains_key("note")
    }));
    assert_eq!((uids(&pods), fleet.nodes.terminations().len()), (before, 0));
    let ready = |what: &GameEvent| *what == GameEvent::NotReady;
    assert!(
        !fleet.nodes.history().iter().any(|event| ready(&event.what)),
        "no pod left its service"
    );
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_reported_and_healed_by_the_old_one() {
    let fleet = fleet("bad-image").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "maxUnavailable": 1 });
    fleet.launch(&game(3, spec)).await;
    fleet
        .nodes
        .behave(PodSelector::image("game:broken"), Behaviour::CannotPull);
    fleet.set_image("game:broken").await;
    let message = fleet.says("UpdateBlocked", "InPlaceStalled").await;
    assert!(
        message.contains("container game is waiting: ImagePullBackOff: Back-off pulling image"),
        "{message}"
    );
    assert!(
        message.ends_with("fix the image, or revert the template"),
        "{message}"
    );
    fleet.told("InPlaceStalled").await;
    fleet.quiet().await;
    let status = fleet.status().await;
    assert_eq!(status.ready_replicas, 2, "one pod is enough");
    assert_eq!(status.updated_replicas, 1, "one pod is enough");
    // The way back needs no hook: a container that never ran has no players.
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v1").await;
    let status = fleet.settled(3).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    assert_eq!(fleet.nodes.terminations().len(), 1);
}

#[tokio::test]
async fn the_same_content_under_another_tag_or_name_comes_to_an_end() {
    let fleet = fleet("retag").await;
    fleet.nodes.set_image_id("game:v1", "game@sha256:11");
    fleet.nodes.set_image_id("game:v2", "game@sha256:11");
    fleet
        .nodes
        .set_image_alias("game:v3", "mirror.example/cache/game:v3");
    fleet.launch(&game(2, json!({}))).await;
    for image in ["game:v2", "game:v3"] {
        fleet.set_image(image).await;
        fleet
            .until(|status| status.updated_ready_replicas == 2 && status.ready_replicas == 2)
            .await;
        fleet.settled(2).await;
        fleet.all_run(image, 2).await;
    }
    assert_eq!(fleet.nodes.terminations().len(), 4);
}

#[tokio::test]
async fn pods_without_the_readiness_gate_are_updated_as_well() {
    let fleet = fleet("no-readiness-gate").await;
    fleet
        .launch(&game(2, json!({ "disableReadinessGate": true })))
        .await;
    let gates = |pod: &Pod| {
        pod.spec
            .as_ref()
            .and_then(|spec| spec.readiness_gates.clone())
            .unwrap_or_default()
    };
    assert!(fleet.all_pods().await.values().all(|pod| gates(pod).is_empty()));
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(fleet.nodes.terminations().len(), 2);
}
