//! Canary steps with hooks: a success continues the rollout; everything else waits for a user and states why.

use kube::ResourceExt;
use operator_tests::Fleet;
use operator_tests::fleet::game;
use serde_json::{Value, json};
use shared_api::names::hook_run_label as label;
use test_kit::Webhook;
use test_kit::webhook::Answer;

use crate::fleet;

const FAILED: &str = "PausedByStepBasedHook";

/// Builds steps: half of the pods, then the hook.
fn half_then_hook() -> Value {
    let hook = json!({ "templateName": "healthy", "args": [{ "name": "room", "value": "lobby" }] });
    json!({ "updateStrategy": { "canary": { "steps": [{ "partition": 1 }, { "hook": hook }] } } })
}

/// Builds a hook that queries a sample server for the health of the release.
fn healthy(server: &Webhook, more: Value) -> Value {
    let mut hook = json!({
        "args": [{ "name": "room" }],
        "metrics": [{
            "name": "healthy", "successCondition": "result == \"yes\"",
            "provider": { "web": { "url": server.url("/{{ args.room }}"), "jsonPath": "{$.healthy}" } }
        }]
    });
    operator_tests::merge(&mut hook["metrics"][0], more);
    hook
}

async fn paused(fleet: &Fleet<'_>) -> Option<bool> {
    fleet.game().await.spec.update_strategy.unwrap().paused
}

#[tokio::test]
async fn a_success_goes_on_by_itself() {
    let fleet = fleet("canary-hook").await;
    let server = Webhook::start().unwrap();
    server.on("/lobby", Answer::json(json!({ "healthy": "not yet" })));
    let patient = json!({ "interval": "100ms", "successfulLimit": 1 });
    fleet.hook("healthy", healthy(&server, patient)).await;
    fleet.launch(&game(2, half_then_hook())).await;
    assert_eq!(server.all_requests().len(), 0, "the first rollout asks nobody");
    fleet.set_image("game:v2").await;
    let asked = fleet.asked(1).await;
    let update = fleet.status().await.update_revision.unwrap();
    let name = format!("canary-{update}-1-healthy");
    assert_eq!(asked.keys().collect::<Vec<_>>(), [&name]);
    let run = fleet.runs().get(&name).await.unwrap();
    let labels = [
        (label::TYPE, "canary-step"),
        (label::REVISION, update.as_str()),
        (label::CANARY_STEP, "1"),
    ];
    for (key, value) in labels {
        assert_eq!(run.labels().get(key).map(String::as_str), Some(value));
    }
    let status = fleet
        .until(|status| {
            let canary = status.canary.as_ref();
            canary.and_then(|canary| canary.current_step_hook_run.as_ref()) == Some(&name)
        })
        .await;
    assert_eq!(status.current_step_index, Some(1));
    assert_eq!(status.updated_ready_replicas, 1);
    let words = format!("canary step 2: waiting for the verdict of HookRun {name}");
    fleet.until_message("Progressing", &words).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 1);
    server.on("/lobby", Answer::json(json!({ "healthy": "yes" })));
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    let status = fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(status.current_step_index, Some(2));
    assert_eq!(status.pause_conditions.len(), 0);
    assert_eq!(status.canary.unwrap().current_step_hook_run, None);
    assert_eq!(paused(&fleet).await, None, "nobody was needed");
}

/// Waits until the failure of the step's hook has paused the rollout, and returns the message.
async fn failed(fleet: &Fleet<'_>) -> String {
    fleet
        .until_game(|game| game.spec.update_strategy.as_ref().unwrap().paused == Some(true))
        .await;
    // The status is that of the newest spec.
    fleet.until(|status| !status.pause_conditions.is_empty()).await;
    fleet.says("UpdateBlocked", FAILED).await
}

#[tokio::test]
async fn a_failure_pauses_and_a_manifest_applied_again_updates_no_pod() {
    let fleet = fleet("canary-hook").await;
    let server = Webhook::start().unwrap();
    server.on("/lobby", Answer::json(json!({ "healthy": "no" })));
    fleet.hook("healthy", healthy(&server, json!({}))).await;
    let mut manifest = game(2, half_then_hook());
    manifest["spec"]["updateStrategy"]["paused"] = json!(false);
    fleet.launch(&manifest).await;
    let warning = fleet.says("SpecWarning", "PausedInManifest").await;
    assert!(
        warning.contains("must not be set in a manifest with canary steps"),
        "{warning}"
    );
    fleet
        .told("PausedInManifest spec.updateStrategy.paused: must not be set")
        .await;
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!("game:v2");
    fleet.apply(&manifest);
    let message = failed(&fleet).await;
    let parts = [
        "canary step 2: HookRun canary-",
        " is Failed: ",
        "\"no\" does not satisfy result == \"yes\"",
        "to rerun the hook, set spec.updateStrategy.paused to false",
        "--despite-failure --reason WHY",
    ];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    let status = fleet.status().await;
    let pause = &status.pause_conditions[0];
    assert_eq!(pause.reason.as_str(), FAILED);
    assert!(pause.start_time.is_some());
    fleet.told(&format!("{FAILED} canary step 2")).await;
    assert_eq!(fleet.blocked("UpdateBlocked").await, 1);
    for again in 1..=10 {
        let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
        fleet.apply(&manifest);
        fleet
            .until_runs(|runs| runs.iter().all(|now| now.uid() != run.uid()))
            .await;
        failed(&fleet).await;
        assert_eq!(server.all_requests().len(), 1 + again, "the hook runs again");
    }
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 1, "the pod of the first step");
    assert_eq!(fleet.status().await.updated_replicas, 1);
    // A success needs nobody.
    server.on("/lobby", Answer::json(json!({ "healthy": "yes" })));
    fleet.set(json!({ "updateStrategy": { "paused": null } })).await;
    fleet.cleared("UpdateBlocked").await;
    let status = fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(status.current_step_index, Some(2));
    assert_eq!(status.pause_conditions.len(), 0);
    assert_eq!(fleet.blocked("UpdateBlocked").await, 0);
}

/// Updates a fleet up to the hook of its canary step, which fails.
async fn rolled_out_to_a_failing_hook(fleet: &Fleet<'_>, server: &Webhook) {
    server.on("/lobby", Answer::json(json!({ "healthy": "no" })));
    fleet.hook("healthy", healthy(server, json!({}))).await;
    fleet.launch(&game(2, half_then_hook())).await;
    fleet.set_image("game:v2").await;
}

#[tokio::test]
async fn a_failed_run_that_a_finalizer_keeps_is_replaced_by_one_of_the_next_name() {
    let fleet = fleet("canary-hook").await;
    let server = Webhook::start().unwrap();
    rolled_out_to_a_failing_hook(&fleet, &server).await;
    failed(&fleet).await;
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    fleet.keep_run(&run.name_any(), true).await;
    server.on("/lobby", Answer::json(json!({ "healthy": "yes" })));
    fleet.set(json!({ "updateStrategy": { "paused": false } })).await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    let kept = fleet.runs().get(&run.name_any()).await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some());
    fleet.keep_run(&run.name_any(), false).await;
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
}

#[tokio::test]
async fn a_run_deleted_by_hand_is_asked_again_and_its_success_goes_on_when_nobody_pauses_any_more() {
    let fleet = fleet("canary-hook").await;
    let server = Webhook::start().unwrap();
    rolled_out_to_a_failing_hook(&fleet, &server).await;
    fleet.says("UpdateBlocked", FAILED).await;
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    server.on("/lobby", Answer::json(json!({ "healthy": "yes" })));
    fleet.delete_run(&run.name_any()).await;
    fleet.cleared("UpdateBlocked").await;
    fleet.until_runs(<[_]>::is_empty).await;
    let message = fleet.says("Progressing", "Paused").await;
    assert!(
        message.starts_with(
            "updates are paused at 1 of 2 pods; to continue, set spec.updateStrategy.paused to false"
        ),
        "{message}"
    );
    fleet.set(json!({ "updateStrategy": { "paused": false } })).await;
    fleet.until(|status| status.updated_ready_replicas == 2).await;
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(server.all_requests().len(), 2);
}

#[tokio::test]
async fn a_template_that_is_missing_is_named_and_heals_by_itself() {
    let fleet = fleet("canary-hook").await;
    let server = Webhook::start().unwrap();
    server.on("/lobby", Answer::json(json!({ "healthy": "yes" })));
    fleet.launch(&game(2, half_then_hook())).await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("UpdateBlocked", "HookTemplateMissing").await;
    assert!(
        message.starts_with("canary step 2: HookTemplate healthy does not exist; create it"),
        "{message}"
    );
    fleet
        .told("HookTemplateMissing canary step 2: HookTemplate healthy does not exist")
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 1);
    fleet.hook("healthy", healthy(&server, json!({}))).await;
    fleet.cleared("UpdateBlocked").await;
    let status = fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
    assert_eq!(status.current_step_index, Some(2));
}
