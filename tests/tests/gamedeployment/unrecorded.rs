//! A template that cannot be recorded stops only the update: the operator still heals and scales pods at the
//! recorded revision, and the condition names the cause.

use operator_tests::assert_has;
use operator_tests::fleet::{Who, condition, game};
use serde_json::json;
use test_kit::ApiProxy;
use test_kit::api_proxy::{Failure, Matcher};

use crate::fleet;

#[tokio::test]
async fn a_label_that_no_pod_can_have_is_named_and_the_fleet_lives_on() {
    let fleet = fleet("invalid-template").await;
    fleet.launch(&game(3, json!({}))).await;
    let revision = fleet.settled(3).await.current_revision.unwrap();
    let label = json!({ "metadata": { "labels": { "build": "feature/new maps" } } });
    fleet.set(json!({ "template": label })).await;
    let message = fleet.says("InvalidSpec", "InvalidSpec").await;
    let words =
        "spec.template.metadata.labels[build]: \"feature/new maps\" must be at most 63 characters long, ";
    assert!(message.starts_with(words), "{message}");
    fleet.told("InvalidSpec spec.template.metadata.labels").await;

    let killed = fleet.names().await.into_iter().next().unwrap();
    fleet.delete_pod(&killed).await;
    fleet
        .until_pods(|pods| pods.len() == 3 && !pods.contains_key(&killed))
        .await;
    fleet.scale(6);
    let status = fleet.until(|status| status.ready_replicas == 6).await;
    assert_eq!(status.updated_replicas, 0, "no pod has that template");
    assert_eq!(status.current_revision.as_deref(), Some(revision.as_str()));
    assert!(condition(&status, "InvalidSpec").is_some());
    let progressing = condition(&status, "Progressing").unwrap();
    assert_eq!(progressing.0.as_str(), "False");
    assert_eq!(progressing.1.as_str(), "InvalidSpec");

    let corrected = json!({ "metadata": { "labels": { "build": "new-maps" } } });
    fleet.set(json!({ "template": corrected })).await;
    let status = fleet.settled(6).await;
    assert_eq!(condition(&status, "InvalidSpec"), None);
}

#[tokio::test]
async fn a_revision_that_is_refused_is_named_and_the_fleet_lives_on() {
    let mut fleet = fleet("revision-refused").await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.kill_workloads();
    fleet.start_behind(&proxy, Who::Workloads).await;
    let refused = || Matcher::new("POST", "/controllerrevisions");
    proxy.fail_next(refused(), Failure::refused(403), u32::MAX);
    fleet.apply(&game(2, json!({})));
    fleet.says("ScaleBlocked", "RevisionNotRecorded").await;
    fleet.told("RevisionNotRecorded").await;
    assert!(fleet.names().await.is_empty());
    proxy.clear_faults();
    fleet.settled(2).await;

    proxy.fail_next(refused(), Failure::refused(403), u32::MAX);
    fleet.set_image("game:v2").await;
    let message = fleet.says("UpdateBlocked", "RevisionNotRecorded").await;
    assert_has(
        &message,
        "until this is fixed, no pods are updated, and new pods use revision ",
    );
    let killed = fleet.names().await.into_iter().next().unwrap();
    fleet.delete_pod(&killed).await;
    fleet.scale(4);
    let status = fleet.until(|status| status.ready_replicas == 4).await;
    assert_eq!(status.updated_replicas, 0);
    fleet.all_run("game:v1", 4).await;
    proxy.clear_faults();
    fleet.settled(4).await;
    fleet.all_run("game:v2", 4).await;
}
