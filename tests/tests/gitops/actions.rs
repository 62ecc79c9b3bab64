//! Runs each action of Argo CD on a real workload, and checks that it helps.

use std::collections::BTreeSet;

use operator_tests::fleet::{GAME, empty_now, game, hooked};
use operator_tests::{Fleet, SOON};
use serde_json::{Value, json};
use shared_api::{GameDeployment, Phase};
use test_kit::webhook::Answer;
use test_kit::{Webhook, eventually};

use crate::argo;
use crate::fleet;
use crate::patches::compare;
use crate::seen::{game_becomes, read};

/// Waits until Argo CD offers an action, runs it, and returns its patch.
async fn act(fleet: &Fleet<'_>, action: &str) -> Value {
    let object = eventually(SOON, || async {
        let object = read::<GameDeployment>(fleet, GAME).await?;
        let actions = argo::actions(&object);
        if actions[action] {
            Ok(object)
        } else {
            Err(format!("{actions:?}: {}", object["status"]))
        }
    })
    .await;
    compare(fleet, &object).await;
    let patch = argo::patch(&object, action).unwrap();
    fleet.patch(patch.clone()).await;
    patch
}

/// Builds the part of a spec with canary steps.
fn canary(steps: Value) -> Value {
    json!({ "updateStrategy": { "canary": { "steps": steps } } })
}

fn resumed() -> Value {
    json!({ "spec": { "updateStrategy": { "paused": null } } })
}

/// Creates the HookTemplate `healthy`, and returns the server that it queries.
async fn health(fleet: &Fleet<'_>, healthy: bool) -> Webhook {
    let server = Webhook::start().unwrap();
    answer(&server, healthy);
    let hook = json!({ "metrics": [{
        "name": "healthy", "successCondition": "result == true",
        "provider": { "web": { "url": server.url("/health"), "jsonPath": "{$.healthy}" } }
    }] });
    fleet.hook("healthy", hook).await;
    server
}

fn answer(server: &Webhook, healthy: bool) {
    server.on("/health", Answer::json(json!({ "healthy": healthy })));
}

#[tokio::test]
async fn promote_continues_past_the_pause_of_a_canary_step() {
    let fleet = fleet().await;
    let steps = json!([{ "partition": 1 }, { "pause": {} }]);
    fleet.launch(&game(2, canary(steps))).await;
    fleet.set_image("game:v2").await;
    let paused = game_becomes(&fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
    paused.quotes("Progressing");
    assert_eq!(act(&fleet, "promote").await, resumed());
    fleet.all_run("game:v2", 2).await;
    let complete = game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    complete.quotes("Progressing");
    compare(&fleet, &complete.object).await;
}

#[tokio::test]
async fn a_rollout_is_aborted_at_a_pause_and_restarted() {
    let fleet = fleet().await;
    let steps = json!([{ "partition": 1 }, { "pause": {} }, { "partition": 0 }]);
    fleet.launch(&game(2, canary(steps))).await;
    fleet.set_image("game:v2").await;
    game_becomes(&fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
    let before = fleet.uids().await;
    // Only then does the action end the pause as well.
    fleet
        .until_game(|game| json!(game)["spec"]["updateStrategy"]["paused"] == true)
        .await;
    game_becomes(&fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
    let patch = act(&fleet, "abort").await;
    assert_eq!(patch["spec"], resumed()["spec"]);
    fleet.all_run("game:v1", 2).await;
    assert_eq!(fleet.uids().await, before, "in place");
    let aborted = game_becomes(&fleet, "Degraded", "RolloutAborted: ").await;
    aborted.quotes("UpdateBlocked");
    let template = &aborted.object["spec"]["template"]["spec"];
    assert_eq!(template["containers"][0]["image"], "game:v2");
    let patch = act(&fleet, "restart-rollout").await;
    assert_eq!(patch.get("spec"), None);
    let requested = &patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"];
    assert!(requested.as_str().unwrap().starts_with("rollout="), "{patch}");
    // From the first step on.
    game_becomes(&fleet, "Suspended", "PausedByCanaryPauseStep: ").await;
    assert_eq!(act(&fleet, "resume").await, resumed());
    fleet.all_run("game:v2", 2).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

#[tokio::test]
async fn updates_are_paused_and_resumed() {
    let fleet = fleet().await;
    fleet.launch(&game(3, json!({}))).await;
    let patch = act(&fleet, "pause").await;
    assert_eq!(patch, json!({ "spec": { "updateStrategy": { "paused": true } } }));
    let complete = game_becomes(&fleet, "Suspended", "Paused: ").await;
    compare(&fleet, &complete.object).await;
    fleet.set_image("game:v2").await;
    let paused = game_becomes(&fleet, "Suspended", "Paused: ").await;
    paused.quotes("Progressing");
    assert_eq!(fleet.images().await, BTreeSet::from(["game:v1".to_owned()]));
    assert_eq!(act(&fleet, "resume").await, resumed());
    fleet.all_run("game:v2", 3).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}

#[tokio::test]
async fn retry_reruns_the_failed_hook_of_a_pod() {
    let fleet = fleet().await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(2);
    let blocked = game_becomes(&fleet, "Degraded", "HookUnsuccessful: ").await;
    blocked.quotes("ScaleBlocked");
    let failed = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    assert_eq!(failed.status.unwrap().phase, Phase::Failed);
    fleet.nodes.every_pod().set_players(0);
    let patch = act(&fleet, "retry").await;
    let expected = json!({ "spec": { "preDeleteUpdateStrategy": { "retry": true } } });
    assert_eq!(patch, expected);
    fleet.settled(2).await;
    let complete = game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    let strategy = &complete.object["spec"]["preDeleteUpdateStrategy"];
    assert_eq!(strategy["retry"], false, "set back by the operator");
}

#[tokio::test]
async fn retry_reruns_the_failed_hook_of_a_canary_step() {
    let fleet = fleet().await;
    let server = health(&fleet, false).await;
    let steps = json!([{ "partition": 1 }, { "hook": { "templateName": "healthy" } }]);
    fleet.launch(&game(2, canary(steps))).await;
    fleet.set_image("game:v2").await;
    let blocked = game_becomes(&fleet, "Degraded", "PausedByStepBasedHook: ").await;
    blocked.quotes("UpdateBlocked");
    answer(&server, true);
    assert_eq!(act(&fleet, "retry").await, resumed());
    fleet.all_run("game:v2", 2).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    assert_eq!(server.all_requests().len(), 2);
}

#[tokio::test]
async fn retry_reruns_a_lifecycle_hook_that_aborted_the_rollout() {
    let fleet = fleet().await;
    let server = health(&fleet, true).await;
    let params = json!({ "type": "ProgressAvailable", "progressAvailableParams": { "progressPoint": 1 } });
    let smoke = json!({
        "name": "smoke", "trigger": params, "failurePolicy": "Abort", "hook": { "templateName": "healthy" }
    });
    fleet.launch(&game(2, json!({ "lifecycleHooks": [smoke] }))).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
    answer(&server, false);
    fleet.set_image("game:v2").await;
    let aborted = game_becomes(&fleet, "Degraded", "LifecycleHookAborted: ").await;
    aborted.quotes("UpdateBlocked");
    answer(&server, true);
    let patch = act(&fleet, "retry").await;
    let requested = &patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"];
    assert!(
        requested.as_str().unwrap().starts_with("lifecycle/smoke="),
        "{patch}"
    );
    fleet.all_run("game:v2", 2).await;
    game_becomes(&fleet, "Healthy", "RolloutComplete: ").await;
}
