//! Rollouts that stop: pods that a partition keeps, and the failed hook of a canary step.

use std::collections::BTreeSet;

use operator_tests::assert_has;
use operator_tests::fleet::GAME;
use serde_json::{Value, json};
use test_kit::{Answer, Webhook};

use super::explanation::{Explanation, Printed};
use super::harness::{OnCall, measures_once, polls, sed};

/// Name of the canary step's HookTemplate.
const CANARY: &str = "no-alarms";

#[tokio::test]
async fn pods_that_a_partition_keeps_are_named_and_updated_through_their_hooks() {
    let strategy = json!({ "type": "RollingUpdate", "maxUnavailable": 1, "partition": 2 });
    let on_call = OnCall::with(polls(json!({})), strategy).await;
    let fleet = &on_call.fleet;
    fleet.set_image("game:v2").await;
    fleet
        .until(|status| status.updated_ready_replicas == 1 && status.ready_replicas == 3)
        .await;
    fleet.says("Progressing", "RolloutComplete").await;
    let ended = fleet.nodes.terminated_pods();
    assert_eq!(ended.len(), 1, "{ended:?}");
    let patch = format!("kubectl patch gd {GAME} ");
    let facts = ["2 of 3 pods (", "spec.updateStrategy.partition is 2"];
    let why = on_call.why_until(&facts, "", &patch).await;
    assert_eq!(
        why.first().purpose,
        "update the other pods, each once its hook succeeds"
    );
    assert_eq!(why.runbook(), "", "{}", why.out);
    // The partition is set on purpose.
    let tree = on_call.plugin().ok(&format!("get {GAME}")).await;
    assert!(!tree.contains("kubectl patch"), "{tree}");
    assert!(!why.out.contains("is not waiting:"), "{}", why.out);
    let revision = fleet.status().await.update_revision;
    let pods = fleet.all_pods().await.into_iter();
    let is_old = |pod: &k8s_openapi::api::core::v1::Pod| {
        let labels = pod.metadata.labels.as_ref().unwrap();
        labels.get("controller-revision-hash") != revision.as_ref()
    };
    let old: Vec<String> = pods
        .filter(|(_, pod)| is_old(pod))
        .map(|(name, _)| name)
        .collect();
    assert_has(&why.out, &format!("2 of 3 pods ({})", old.join(", ")));
    let of_pod = on_call.plugin().ok(&format!("why pod/{}", old[0])).await;
    assert_eq!(Explanation::read(of_pod).first(), why.first());

    // The hook still runs for each pod.
    fleet.nodes.every_pod().set_players(3);
    on_call.run_printed_after(&ended, why.first(), "false").await;
    fleet.until_runs(|runs| !runs.is_empty()).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), ended, "players are on the servers");
    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 3).await;
    fleet.settled(3).await;
    let status = on_call.plugin().ok(&format!("status {GAME} --timeout 60s")).await;
    assert_has(&status, "complete: RolloutComplete");
}

/// Builds a hook that reads the number of alarms once.
fn no_alarms(url: &str) -> Value {
    json!({ "metrics": [{
        "name": "alarms", "consecutiveErrorLimit": 0, "successCondition": "asInt(result) == 0",
        "provider": { "web": { "url": url, "jsonPath": "{$.alarms}" } }
    }] })
}

/// Updates a workload in place up to the hook of its canary step, which fails. Returns the pods that are updated.
async fn stopped_by(template: Value) -> (OnCall, BTreeSet<String>) {
    let steps = json!([{ "partition": 2 }, { "hook": { "templateName": CANARY } }]);
    let strategy = json!({ "canary": { "steps": steps } });
    let on_call = OnCall::with(measures_once(json!({})), strategy).await;
    let fleet = &on_call.fleet;
    fleet.hook(CANARY, template).await;
    fleet.set_image("game:v2").await;
    fleet
        .until_game(|game| {
            let strategy = game.spec.update_strategy.as_ref();
            strategy.and_then(|strategy| strategy.paused) == Some(true)
        })
        .await;
    // The status is that of the newest spec.
    fleet.until(|status| !status.pause_conditions.is_empty()).await;
    fleet.says("UpdateBlocked", "PausedByStepBasedHook").await;
    let ended = fleet.nodes.terminated_pods();
    assert_eq!(ended.len(), 1, "{ended:?}");
    (on_call, ended)
}

/// Waits until every pod has this image, in place.
async fn complete(on_call: &OnCall, image: &str) {
    let fleet = &on_call.fleet;
    fleet.all_run(image, 3).await;
    fleet.settled(3).await;
    let status = on_call.plugin().ok(&format!("status {GAME} --timeout 60s")).await;
    assert_has(&status, "complete: RolloutComplete");
}

/// Checks the ways out after these first commands, which are in this order: promote, abort and, if the hook can be
/// edited, resume. Returns the abort.
fn ways_out<'w>(why: &'w Explanation, first: &[&str]) -> &'w Printed {
    let is_edited = first.iter().any(|command| command.starts_with("kubectl edit "));
    let mut expected: Vec<(String, &str)> = first.iter().map(|command| ((*command).to_owned(), "")).collect();
    expected.extend([
        (
            format!("kubectl game promote {GAME} "),
            "continue despite the failure",
        ),
        (
            format!("kubectl game abort {GAME} "),
            "roll back, which also ends the pause",
        ),
    ]);
    if is_edited {
        let resume = (
            format!("kubectl game resume {GAME} "),
            "end the pause after editing the hook",
        );
        expected.push(resume);
    }
    assert_eq!(why.commands.len(), expected.len(), "{}", why.out);
    for (printed, (command, purpose)) in why.commands.iter().zip(expected) {
        assert!(printed.command.starts_with(&command), "{command}: {}", why.out);
        assert_has(&printed.purpose, purpose);
    }
    let promote = &why.commands[first.len()];
    assert_has(&promote.command, "--despite-failure --reason 'WHY'");
    let paused = why.out.contains("the workload stays paused until you resume it.");
    assert_eq!(paused, is_edited, "{}", why.out);
    &why.commands[first.len() + 1]
}

#[tokio::test]
async fn a_canary_hook_that_measured_a_failure_runs_again_once_its_cause_is_gone() {
    let server = Webhook::start().unwrap();
    server.on("/alarms", Answer::json(json!({ "alarms": 1 })));
    let url = server.url("/alarms");
    let (on_call, ended) = stopped_by(no_alarms(&url)).await;
    let template = format!("HookTemplate {CANARY}");
    let facts = [
        "the hook of canary step 2 did not succeed",
        &template,
        &url,
        "\"1\" does not satisfy asInt(result) == 0",
    ];
    let retry = format!("kubectl game retry {GAME} ");
    let why = on_call.why_until(&facts, "pausedbystepbasedhook", &retry).await;
    ways_out(&why, &[&retry]);
    server.on("/alarms", Answer::json(json!({ "alarms": 0 })));
    on_call.run_printed_after(&ended, why.first(), "false").await;
    complete(&on_call, "game:v2").await;
    assert_eq!(server.requests("/alarms").len(), 2, "the hook ran twice");
}

#[tokio::test]
async fn a_canary_hook_that_is_wrong_is_corrected_and_the_rollout_resumed() {
    let server = Webhook::start().unwrap();
    server.on("/alarms", Answer::json(json!({ "alarms": 0 })));
    let url = server.url("/alarm");
    let (on_call, ended) = stopped_by(no_alarms(&url)).await;
    let template = format!("HookTemplate {CANARY}");
    let facts = [
        "the hook of canary step 2 (HookRun canary-",
        &template,
        &url,
        "received status 404",
    ];
    let edit = format!(
        "kubectl edit hooktemplate {CANARY} -n {}",
        on_call.fleet.namespace
    );
    let why = on_call.why_until(&facts, "pausedbystepbasedhook", &edit).await;
    assert_has(&why.first().purpose, "URL");
    let retry = format!("kubectl game retry {GAME} ");
    ways_out(&why, &[&edit, &retry]);
    let said = on_call
        .run_printed_after(&ended, why.first(), &sed("/alarm$", "/alarms"))
        .await;
    assert_has(&said, &format!("{CANARY} edited"));
    // The hook runs again and succeeds. The pause remains.
    on_call.fleet.cleared("UpdateBlocked").await;
    let resume = format!("kubectl game resume {GAME} ");
    let why = on_call
        .why_until(&["is paused (Paused)", "1 of 3 pods"], "paused", &resume)
        .await;
    on_call.run_printed_after(&ended, why.first(), "false").await;
    complete(&on_call, "game:v2").await;
}

#[tokio::test]
async fn a_canary_whose_hook_failed_is_rolled_back_by_one_command() {
    let server = Webhook::start().unwrap();
    server.on("/alarms", Answer::json(json!({ "alarms": 1 })));
    let (on_call, ended) = stopped_by(no_alarms(&server.url("/alarms"))).await;
    let fleet = &on_call.fleet;
    let serving = fleet.uids().await;
    let facts = ["the hook of canary step 2 did not succeed"];
    let why = on_call.why_until(&facts, "pausedbystepbasedhook", "").await;
    let retry = format!("kubectl game retry {GAME} ");
    let abort = ways_out(&why, &[&retry]);
    on_call.run_printed_after(&ended, abort, "false").await;
    fleet.all_run("game:v1", 3).await;
    fleet.says("UpdateBlocked", "RolloutAborted").await;
    fleet.settled(3).await;
    let game = fleet.game().await;
    let strategy = game.spec.update_strategy.as_ref();
    assert_ne!(strategy.and_then(|strategy| strategy.paused), Some(true));
    let template = game.spec.template.value();
    assert_eq!(template["spec"]["containers"][0]["image"], "game:v2");
    assert_eq!(
        fleet.nodes.terminated_pods(),
        ended,
        "only the updated pod changes"
    );
    assert_eq!(fleet.uids().await, serving, "in place");
}
