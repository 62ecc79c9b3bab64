//! Health of a GameDeployment and of a HookTemplate.

use operator_tests::fleet::{GAME, empty_now, game, hooked};
use serde_json::json;
use shared_api::HookTemplate;
use test_kit::node::{Behaviour, PodSelector};

use crate::fleet;
use crate::flux::{self, State};
use crate::patches::compare;
use crate::seen::{becomes, game_becomes};

#[tokio::test]
async fn a_first_rollout_is_healthy_once_every_pod_is_available() {
    let fleet = fleet().await;
    fleet.nodes.behave(PodSelector::all(), Behaviour::NeverReady);
    fleet.apply(&game(2, json!({})));
    // No pod is left to create.
    let started = game_becomes(&fleet, "Progressing", "0 of 2 pods are available; ").await;
    assert_eq!(flux::state(&started.object), Some(State::InProgress));
    compare(&fleet, &started.object).await;
    fleet.nodes.behave(PodSelector::all(), Behaviour::Normal);
    let complete = game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    complete.quotes("Progressing");
    assert_eq!(flux::state(&complete.object), Some(State::Current));
    compare(&fleet, &complete.object).await;
}

/// Pods that do not become ready are not a failure, with or without enough others.
#[tokio::test]
async fn pods_that_are_not_ready_are_progress() {
    let fleet = fleet().await;
    fleet.nodes.behave(PodSelector::all(), Behaviour::NeverReady);
    fleet.apply(&game(2, json!({ "updateStrategy": { "maxUnavailable": 1 } })));
    let few = game_becomes(&fleet, "Progressing", "0 of 2 pods are available; ").await;
    assert_eq!(few.object["status"]["reason"], "MinimumPodsUnavailable");
    compare(&fleet, &few.object).await;
    fleet.nodes.behave(PodSelector::all(), Behaviour::Normal);
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

#[tokio::test]
async fn a_missing_hook_template_is_degraded_before_any_pod_waits_for_it() {
    let fleet = fleet().await;
    fleet.apply(&game(1, hooked("empty")));
    let unresolved = game_becomes(&fleet, "Degraded", "HookTemplateMissing: ").await;
    unresolved.quotes("HooksResolved");
    assert_eq!(flux::state(&unresolved.object), Some(State::Failed));
    // The copies need the same conditions of the same pods.
    fleet
        .until(|status| status.available_replicas == 1 && status.hook_pending_replicas == 0)
        .await;
    let unresolved = game_becomes(&fleet, "Degraded", "HookTemplateMissing: ").await;
    compare(&fleet, &unresolved.object).await;
    fleet.hook("empty", empty_now()).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

#[tokio::test]
async fn an_invalid_hook_template_is_degraded_with_the_workload_that_uses_it() {
    let fleet = fleet().await;
    let mut broken = empty_now();
    broken["metrics"][0]["successCondition"] = json!("asInt(result) ==");
    fleet.hook("empty", broken).await;
    let invalid = becomes::<HookTemplate>(&fleet, "empty", "Degraded", "SpecInvalid: ").await;
    invalid.quotes("Valid");
    assert_eq!(flux::state(&invalid.object), Some(State::Failed));
    fleet.apply(&game(1, hooked("empty")));
    let unresolved = game_becomes(&fleet, "Degraded", "HookTemplateInvalid: ").await;
    unresolved.quotes("HooksResolved");
    fleet.change_hook("empty", empty_now()).await;
    let valid = becomes::<HookTemplate>(&fleet, "empty", "Healthy", "").await;
    assert_eq!(flux::state(&valid.object), Some(State::Current));
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

#[tokio::test]
async fn an_invalid_spec_is_degraded() {
    let fleet = fleet().await;
    fleet.apply(&game(1, json!({ "updateStrategy": { "maxUnavailable": 0 } })));
    let invalid = game_becomes(&fleet, "Degraded", "InvalidSpec: ").await;
    invalid.quotes("InvalidSpec");
    assert_eq!(flux::state(&invalid.object), Some(State::Failed));
    compare(&fleet, &invalid.object).await;
    fleet
        .set(json!({ "updateStrategy": { "maxUnavailable": 1 } }))
        .await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

/// With `OnDelete`, a user must act, but nothing is wrong.
#[tokio::test]
async fn an_update_that_waits_for_deletions_is_suspended() {
    let fleet = fleet().await;
    fleet
        .launch(&game(2, json!({ "updateStrategy": { "type": "OnDelete" } })))
        .await;
    fleet.set_image("game:v2").await;
    let waits = game_becomes(&fleet, "Suspended", "WaitingForDeletion: ").await;
    waits.quotes("Progressing");
    assert_eq!(flux::state(&waits.object), Some(State::InProgress));
    compare(&fleet, &waits.object).await;
    for pod in fleet.names().await {
        fleet.delete_pod(&pod).await;
    }
    fleet.all_run("game:v2", 2).await;
    let complete = game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    assert_eq!(complete.object["metadata"]["name"], GAME);
}
