//! In-place updates: the hooks that run, the number of concurrent updates, and changes that are impossible in
//! place.

use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::fleet::{condition, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};
use shared_api::HookRun;
use shared_api::names::hook_run_annotation::INTENT;

use crate::fleet;

fn both_hooks() -> Value {
    let mut spec = hooked("empty");
    spec["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    spec
}

async fn set_variable(fleet: &Fleet<'_>, value: &str) {
    let container = json!({
        "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }],
        "env": [{ "name": "MODE", "value": value }]
    });
    fleet
        .set(json!({ "template": { "spec": { "containers": [container] } } }))
        .await;
}

#[tokio::test]
async fn no_more_pods_are_asked_than_may_be_updated() {
    let fleet = fleet("in-place-gate").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(5, both_hooks())).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    let asked = fleet.asked(2).await;
    assert!(
        asked.keys().all(|run| run.starts_with("pre-inplace-hook-")),
        "{asked:?}"
    );
    let status = fleet
        .until(|status| status.pre_inplace_hook_condition.len() == 2)
        .await;
    assert_eq!(status.ready_replicas, 5, "who is asked still serves");
    assert_eq!(status.updated_replicas, 0, "who is asked still serves");
    let message = fleet
        .until_message("Progressing", "waiting because maxUnavailable is reached: ")
        .await;
    assert!(
        message.starts_with("0 of 5 pods are updated; running the hooks of "),
        "{message}"
    );
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    // One pod is empty: it is updated, and the next one takes its place in the queue.
    let first = asked.values().next().unwrap().clone();
    fleet.nodes.pod(&first).set_players(0);
    fleet
        .until(|status| status.updated_ready_replicas == 1 && status.pre_inplace_hook_condition.len() == 2)
        .await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([first]));
    let names = fleet.names().await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(5).await;
    fleet.all_run("game:v2", 5).await;
    assert_eq!(fleet.names().await, names);
    assert_eq!(fleet.nodes.terminations().len(), 5);
    fleet.told("PodUpdateStarted").await;
}

#[tokio::test]
async fn a_change_that_needs_a_new_pod_is_named_and_nothing_is_touched() {
    let fleet = fleet("in-place-gate").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, both_hooks())).await;
    let before = fleet.all_pods().await;
    set_variable(&fleet, "new").await;
    let message = fleet.says("UpdateBlocked", "NotInPlaceUpdatable").await;
    assert!(
        message.starts_with("2 pods cannot be updated in place: "),
        "{message}"
    );
    assert_has(&message, "spec.template.spec.containers[game].env");
    assert!(message.contains("Recreate"), "a way out: {message}");
    fleet.told("NotInPlaceUpdatable").await;
    fleet.quiet().await;
    assert_eq!(fleet.all_pods().await, before);
    // The revert clears the error.
    let container = json!({ "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }] });
    fleet
        .set(json!({ "template": { "spec": { "containers": [container] } } }))
        .await;
    let status = fleet.settled(2).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    assert_eq!(fleet.all_pods().await, before);
    assert!(
        !fleet
            .events()
            .await
            .iter()
            .any(|event| event.starts_with("PodUpdateStarted"))
    );
}

#[tokio::test]
async fn with_the_fallback_such_a_pod_is_recreated_when_its_hook_allows_its_deletion() {
    let fleet = fleet("in-place-gate").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, both_hooks())).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    set_variable(&fleet, "new").await;
    fleet.says("UpdateBlocked", "NotInPlaceUpdatable").await;
    let fallback = json!({ "inPlaceUpdateStrategy": { "fallback": "Recreate" } });
    fleet.set(json!({ "updateStrategy": fallback })).await;
    fleet.asked(2).await;
    fleet.cleared("UpdateBlocked").await;
    let recreates = |run: &HookRun| {
        run.name_any().starts_with("pre-delete-hook-") && run.annotations()[INTENT].starts_with("recreate:")
    };
    fleet.until_runs(|runs| runs.iter().all(recreates)).await;
    let one = before.first().unwrap().clone();
    fleet.nodes.pod(&one).set_players(0);
    fleet.until(|status| status.updated_ready_replicas == 1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([one]));
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), before);
    assert!(fleet.names().await.is_disjoint(&before));
    assert_eq!(fleet.images().await.len(), 1);
}
