//! Tests of abort, and of what follows it.

use operator_tests::fleet::{GAME, game};
use operator_tests::{Fleet, assert_has};
use serde_json::json;

use crate::fleet;
use crate::plugin::{Plugin, next};

/// Waits until the canary step pauses with one updated pod.
async fn until_step_pauses(fleet: &Fleet<'_>) {
    fleet
        .until(|status| !status.pause_conditions.is_empty() && status.updated_ready_replicas == 1)
        .await;
}

/// The pause of a canary step ends with the rollout: one patch does both, and the step does not pass.
#[tokio::test]
async fn a_rollout_that_pauses_is_aborted_and_begins_again() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let steps = json!([{ "partition": 1 }, { "pause": {} }, { "partition": 0 }]);
    let update = json!({ "updateStrategy": { "canary": { "steps": steps } } });
    fleet.launch(&game(2, update)).await;
    let refused = plugin.refused(&format!("abort {GAME}")).await;
    assert_has(&refused, "is complete; to roll back: kubectl game undo");
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    until_step_pauses(&fleet).await;
    let before = fleet.uids().await;
    assert_has(
        &plugin.ok(&format!("abort {GAME}")).await,
        "1 pod will be rolled back to ",
    );
    fleet.all_run("game:v1", 2).await;
    fleet.says("UpdateBlocked", "RolloutAborted").await;
    assert_eq!(fleet.uids().await, before, "in place");
    let game = fleet.game().await;
    let template = game.spec.template.value();
    assert_eq!(template["spec"]["containers"][0]["image"], "game:v2");
    let status = plugin.run(&format!("status {GAME} --timeout 60s")).await;
    assert_eq!(status.code, 1, "{status:?}");
    assert_has(&plugin.ok(&format!("get {GAME}")).await, "rolling back to ");
    let refused = plugin.refused(&format!("abort {GAME}")).await;
    assert_has(&refused, "is already aborted");
    let why = plugin.ok(&format!("why {GAME}")).await;
    let again = plugin.obeys(next(&why)).await;
    assert_has(&again.out, "restarting the rollout to ");
    // From the first step on.
    until_step_pauses(&fleet).await;
    plugin.ok(&format!("promote {GAME}")).await;
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 2).await;
}
