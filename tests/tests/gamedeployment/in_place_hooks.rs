//! Selection of the hook before an in-place update and before a deletion when only one is set.

use kube::ResourceExt;
use operator_tests::fleet::{GAME, condition, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::json;
use shared_api::HookRun;

use crate::fleet;

/// Returns the number of HookRuns that the operator has ever created.
async fn ever_asked(fleet: &Fleet<'_>) -> u64 {
    fleet
        .metric("hookgate_gamedeployment_actions_total", "create_hook_run")
        .await
}

#[tokio::test]
async fn without_a_hook_of_its_own_an_update_asks_the_one_before_deletions() {
    let fleet = fleet("in-place-hooks").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let revision = fleet.status().await.update_revision.unwrap();
    fleet.set_image("game:v2").await;
    let asked = fleet.asked(1).await;
    let (run, pod) = asked.first_key_value().unwrap();
    let instance = pod.trim_start_matches(&format!("{GAME}-"));
    assert_eq!(*run, format!("pre-delete-hook-{revision}-{instance}-empty"));
    let status = fleet
        .until(|status| status.pre_delete_hook_condition.len() == 1)
        .await;
    assert_eq!(status.hook_pending_replicas, 1);
    // It is not selected for deletion, and must not appear to be.
    assert!(fleet.marked().await.is_empty());
    let shown = fleet.kubectl(&["get", "gamedeployment", GAME, "--output", "wide"], "");
    let mut lines = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
    let column = head.iter().position(|name| *name == "HOOK_PENDING").unwrap();
    assert_eq!(row[column], "1", "{shown}");
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    fleet.all_run("game:v2", 1).await;
}

#[tokio::test]
async fn a_hook_before_updates_has_no_say_in_deletions() {
    let fleet = fleet("in-place-hooks").await;
    fleet.hook("empty", until_empty()).await;
    let hook = json!({ "preInplaceUpdateStrategy": { "hook": { "templateName": "empty" } } });
    fleet.launch(&game(2, hook)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.settled(1).await;
    assert_eq!(ever_asked(&fleet).await, 0);
    fleet.told("no hook is configured").await;
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    let of_updates = |run: &HookRun| run.name_any().starts_with("pre-inplace-hook-");
    fleet.until_runs(|runs| runs.iter().all(of_updates)).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
}

#[tokio::test]
async fn nobody_is_asked_about_a_change_that_cannot_be_made_in_place() {
    let fleet = fleet("in-place-hooks").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    fleet.launch(&game(2, spec)).await;
    let before = fleet.all_pods().await;
    // Init containers run only when a pod starts.
    let init = json!([{ "name": "prepare", "image": "prepare:v1" }]);
    fleet
        .set(json!({ "template": { "spec": { "initContainers": init } } }))
        .await;
    let message = fleet.says("UpdateBlocked", "NotInPlaceUpdatable").await;
    assert_has(&message, "initContainers");
    fleet.quiet().await;
    assert_eq!(ever_asked(&fleet).await, 0);
    assert_eq!(fleet.all_pods().await, before);
    assert!(condition(&fleet.status().await, "ScaleBlocked").is_none());
}
