//! Tests of pause, resume, set image, undo and history.

use operator_tests::fleet::{GAME, game};
use operator_tests::{Fleet, SOON, assert_has};
use serde_json::json;
use test_kit::webhook::Answer;
use test_kit::{Webhook, eventually};

use crate::fleet;
use crate::plugin::{Plugin, next};

#[tokio::test]
async fn an_image_is_set_while_paused_rolled_out_when_resumed_and_undone() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    fleet.launch(&game(3, json!({}))).await;
    let pods = fleet.names().await;
    let said = plugin.ok(&format!("pause {GAME}")).await;
    assert!(
        said.starts_with(&format!("{GAME} is paused: no new pod updates will start")),
        "{said}"
    );
    let again = plugin.refused(&format!("pause {GAME}")).await;
    assert_eq!(again, format!("error: {GAME} is already paused\n"));
    let said = plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    let words = "game game:v1 → game:v2. Updates are paused: no pod is updated until they are resumed.";
    assert_has(&said, words);
    assert_eq!(
        next(&said),
        format!("kubectl game resume {GAME} -n {}", fleet.namespace)
    );
    fleet.says("Progressing", "Paused").await;
    let pod = pods.iter().next().unwrap();
    let why = plugin.ok(&format!("why {pod}")).await;
    assert_has(&why, "Continues once the update is resumed.");
    let resumed = plugin.obeys(next(&why)).await;
    assert_eq!(resumed.code, 0, "{resumed:?}");
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 3).await;

    history_is_told(&plugin).await;
    is_undone(&plugin).await;
    let refused = plugin.refused(&format!("set image {GAME} gane=game:v3")).await;
    assert_eq!(
        refused,
        format!("error: {GAME} has no container \"gane\"; available containers: game\n")
    );
    assert_eq!(
        plugin.refused(&format!("promote {GAME}")).await,
        format!("error: nothing to promote: {GAME} has no canary steps\n")
    );
    fleet.settled(3).await;
    assert_eq!(fleet.names().await, pods, "the same pods, updated in place");
}

/// Checks the history of both revisions, and the contents of one.
async fn history_is_told(plugin: &Plugin<'_>) {
    let history = plugin.ok(&format!("history {GAME}")).await;
    let rows: Vec<Vec<&str>> = history
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["REVISION", "NAME", "ROLE", "PODS", "AGE", "IMAGES"]);
    assert_eq!(
        (rows[1][0], rows[1][2], rows[1][3], rows[1][5]),
        ("2", "current", "3", "game:v2")
    );
    assert_eq!((rows[2][0], rows[2][2], rows[2][4]), ("1", "0", "game:v1"));
    let template = plugin.ok(&format!("history {GAME} --revision 1")).await;
    assert!(
        template.contains("image: game:v1") && !template.contains("patch"),
        "{template}"
    );
    let unknown = plugin.refused(&format!("history {GAME} --revision 9")).await;
    assert_has(&unknown, "has no revision 9; available revisions: 1, 2");
}

/// Reverts to the previous revision, and to one by its number.
async fn is_undone(plugin: &Plugin<'_>) {
    let fleet = plugin.fleet;
    let said = plugin.ok(&format!("undo {GAME}")).await;
    let words = format!("{GAME}: restored spec.template from revision 1 (");
    assert!(said.starts_with(&words), "{said}");
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v1", 3).await;
    // The old revision is the newest again.
    eventually(SOON, || async {
        let history = plugin.json(&format!("history {GAME}")).await;
        let numbers: Vec<_> = history["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["revision"].as_i64().unwrap())
            .collect();
        if numbers == [2, 3] { Ok(()) } else { Err(history) }
    })
    .await;
    let said = plugin.ok(&format!("undo {GAME} --to-revision 2")).await;
    assert_has(&said, "restored spec.template from revision 2 (");
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 3).await;
}

#[tokio::test]
async fn a_canary_is_promoted_past_its_pause() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let steps = json!([{ "partition": 1 }, { "pause": {} }]);
    fleet
        .launch(&game(
            2,
            json!({ "updateStrategy": { "canary": { "steps": steps } } }),
        ))
        .await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    fleet.says("Progressing", "PausedByCanaryPauseStep").await;
    let paused = |game: &shared_api::GameDeployment| {
        let strategy = game.spec.update_strategy.as_ref();
        strategy.and_then(|strategy| strategy.paused) == Some(true)
    };
    fleet.until_game(paused).await;
    // Status of the newest spec.
    fleet.says("Progressing", "PausedByCanaryPauseStep").await;
    let tree = plugin.ok(&format!("get {GAME}")).await;
    assert_has(&tree, "canary step 2 of 2, paused");
    assert_eq!(tree.matches("# revision").count(), 2, "{tree}");
    let promoted = plugin.obeys(next(&tree)).await;
    assert_has(
        &promoted.out,
        &format!("{GAME}: continuing past the pause at canary step 2."),
    );
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 2).await;
    fleet.settled(2).await;
}

/// Creates the HookTemplate `healthy`, and returns the server that it asks.
async fn health(fleet: &Fleet<'_>, healthy: bool) -> Webhook {
    let server = Webhook::start().unwrap();
    server.on("/health", Answer::json(json!({ "healthy": healthy })));
    let hook = json!({ "metrics": [{
        "name": "healthy", "successCondition": "result == true",
        "provider": { "web": { "url": server.url("/health"), "jsonPath": "{$.healthy}" } }
    }] });
    fleet.hook("healthy", hook).await;
    server
}

#[tokio::test]
async fn a_lifecycle_hook_that_aborted_the_rollout_runs_again() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let server = health(&fleet, true).await;
    let params = json!({ "type": "ProgressAvailable", "progressAvailableParams": { "progressPoint": 1 } });
    let smoke = json!({ "name": "smoke", "trigger": params, "failurePolicy": "Abort", "hook": { "templateName": "healthy" } });
    fleet.launch(&game(2, json!({ "lifecycleHooks": [smoke] }))).await;
    fleet.says("Progressing", "RolloutComplete").await;
    let refused = plugin.refused(&format!("retry {GAME} --lifecycle smoke")).await;
    assert_has(
        &refused,
        "has already finished; it will run again in the next rollout",
    );
    server.on("/health", Answer::json(json!({ "healthy": false })));
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    fleet.says("UpdateBlocked", "LifecycleHookAborted").await;
    server.on("/health", Answer::json(json!({ "healthy": true })));
    let why = plugin.ok(&format!("why {GAME}")).await;
    assert_has(&why, "Fix the cause and rerun the hook");
    let retried = plugin.obeys(next(&why)).await;
    assert_has(&retried.out, "rerunning lifecycle hook smoke");
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 2).await;
}

#[tokio::test]
async fn a_canary_step_whose_hook_failed_is_retried_or_promoted_with_a_reason() {
    let fleet = fleet("plugin").await;
    let plugin = Plugin { fleet: &fleet };
    let server = health(&fleet, false).await;
    let steps = json!([{ "partition": 1 }, { "hook": { "templateName": "healthy" } }]);
    fleet
        .launch(&game(
            2,
            json!({ "updateStrategy": { "canary": { "steps": steps } } }),
        ))
        .await;
    plugin.ok(&format!("set image {GAME} game=game:v2")).await;
    let failed = async || {
        let paused = |game: &shared_api::GameDeployment| {
            let strategy = game.spec.update_strategy.as_ref();
            strategy.and_then(|strategy| strategy.paused) == Some(true)
        };
        fleet.until_game(paused).await;
        fleet.until(|status| !status.pause_conditions.is_empty()).await;
    };
    failed().await;
    let refused = plugin.refused(&format!("promote {GAME}")).await;
    assert_has(&refused, "the hook of canary step 2 of");
    let why = plugin.ok(&format!("why {GAME}")).await;
    assert_has(&why, &format!("kubectl game retry {GAME}"));
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    assert_has(
        &plugin.ok(&format!("retry {GAME}")).await,
        "rerunning the hook of canary step 2",
    );
    fleet
        .until_runs(|runs| runs.iter().all(|now| now.metadata.uid != run.metadata.uid))
        .await;
    failed().await;
    assert_eq!(server.all_requests().len(), 2);
    assert_eq!(fleet.status().await.updated_replicas, 1);
    let promoted = plugin
        .ok(&format!(
            "promote {GAME} --despite-failure --reason alarm-is-unrelated"
        ))
        .await;
    assert_has(&promoted, "despite the failure of HookRun canary-");
    plugin.ok(&format!("status {GAME} --timeout 60s")).await;
    fleet.all_run("game:v2", 2).await;
    fleet
        .told("PromotedDespiteFailure canary step 2 promoted despite the failure: HookRun canary-")
        .await;
    fleet.told("reason: alarm-is-unrelated; by: ").await;
    fleet.settled(2).await;
    assert_eq!(server.all_requests().len(), 2);
}
