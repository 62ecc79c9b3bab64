//! The `PostInplace` hook checks an updated pod. Its failure stops the update and reverts nothing.

use std::collections::BTreeSet;

use operator_tests::assert_has;
use operator_tests::fleet::{condition, empty_now, game};
use serde_json::{Value, json};
use shared_api::names::pod::CONFIRMED;

use crate::fleet;

fn afterwards(max_unavailable: u32) -> Value {
    json!({
        "postInplaceUpdateStrategy": { "hook": { "templateName": "well" } },
        "updateStrategy": { "maxUnavailable": max_unavailable }
    })
}

#[tokio::test]
async fn its_failure_stops_the_update_and_retry_goes_on() {
    let fleet = fleet("post-inplace").await;
    fleet.hook("well", empty_now()).await;
    fleet.launch(&game(3, afterwards(1))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    let message = fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    assert_has(&message, "HookRun post-inplace-hook-");
    assert_has(&message, "no further pods are updated");
    assert_has(&message, "set spec.postInplaceUpdateStrategy.retry to true");
    let status = fleet
        .until(|status| status.post_inplace_hook_condition.len() == 1)
        .await;
    assert_eq!(status.updated_ready_replicas, 1, "it is ready when it is asked");
    assert_eq!(status.ready_replicas, 3, "it is ready when it is asked");
    let pod = status.post_inplace_hook_condition[0].pod_name.clone();
    fleet
        .told(&format!("HookUnsuccessful pod {pod}: HookRun post-inplace-hook-"))
        .await;
    fleet.nodes.every_pod().set_players(0);
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([pod]));
    fleet.retry("postInplaceUpdateStrategy");
    let status = fleet.settled(3).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    fleet.all_run("game:v2", 3).await;
    assert_eq!(fleet.nodes.terminations().len(), 3);
    let update = status.update_revision;
    let confirmed = |pod: &k8s_openapi::api::core::v1::Pod| {
        let notes = pod.metadata.annotations.as_ref();
        notes.and_then(|notes| notes.get(CONFIRMED)).cloned() == update
    };
    assert!(fleet.all_pods().await.values().all(confirmed));
}

#[tokio::test]
async fn a_corrected_template_goes_on_past_the_failure() {
    let fleet = fleet("post-inplace").await;
    fleet.hook("well", empty_now()).await;
    fleet.launch(&game(2, afterwards(1))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    fleet.nodes.every_pod().set_players(0);
    fleet.set_image("game:v3").await;
    fleet.settled(2).await;
    fleet.all_run("game:v3", 2).await;
    assert_eq!(fleet.nodes.terminations().len(), 3);
}

#[tokio::test]
async fn a_success_for_an_earlier_update_to_the_same_revision_does_not_count() {
    let fleet = fleet("post-inplace").await;
    fleet.hook("well", empty_now()).await;
    fleet.launch(&game(1, afterwards(1))).await;
    fleet.set_image("game:v2").await;
    fleet.settled(1).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v1").await;
    fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    let refused = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set_image("game:v2").await;
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.name != refused[0].metadata.name)
        .await;
    fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    assert_eq!(fleet.images().await, ["game:v2".to_owned()].into());
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("postInplaceUpdateStrategy");
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 3);
}
