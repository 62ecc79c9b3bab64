//! Hooks that cannot run keep their pods, report it at once, and recover by themselves.

use std::time::{Duration, Instant};

use kube::api::PostParams;
use operator_tests::assert_has;
use operator_tests::fleet::{empty_now, game, hooked, until_empty};
use serde_json::json;
use shared_api::hook_run::HookRunSpec;
use shared_api::{HookRun, Phase};

use crate::fleet;

#[tokio::test]
async fn a_missing_template_is_named_and_its_creation_goes_on_at_once() {
    let fleet = fleet("hook-template").await;
    fleet.launch(&game(3, hooked("late"))).await;
    fleet.scale(2);
    let message = fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    assert_has(&message, "HookTemplate late does not exist; create it");
    fleet.told("HookTemplate late does not exist; create it").await;
    let status = fleet.until(|status| status.hook_pending_replicas == 1).await;
    let entry = &status.pre_delete_hook_condition[0];
    assert_eq!((entry.phase, entry.hook_run.clone()), (Phase::Pending, None));
    assert!(
        entry.start_time.is_some() && message.contains(&entry.pod_name),
        "{entry:?}"
    );
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(1);
    let since = Instant::now();
    fleet.hook("late", until_empty()).await;
    fleet.until_runs(|runs| runs.len() == 1).await;
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    fleet.cleared("ScaleBlocked").await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn arguments_without_a_value_are_named() {
    let fleet = fleet("hook-template").await;
    let mut template = until_empty();
    template["args"] = json!([{ "name": "PodIP" }, { "name": "room" }, { "name": "region" }]);
    fleet.hook("empty", template).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.scale(1);
    let message = fleet.says("ScaleBlocked", "HookArgumentsUnresolved").await;
    assert!(
        message.contains(
            "HookTemplate empty needs values for arguments room, region; set them in the workload's hook.args"
        ),
        "{message}"
    );
    fleet.told("HookArgumentsUnresolved").await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    let args = json!([{ "name": "room", "value": "7" }, { "name": "region", "value": "eu" }]);
    fleet
        .set(json!({ "preDeleteUpdateStrategy": { "hook": { "args": args } } }))
        .await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn a_template_that_is_corrected_after_a_failure_asks_again_by_itself() {
    let fleet = fleet("hook-template").await;
    let mut wrong = empty_now();
    wrong["metrics"][0]["successCondition"] = json!("asInt(result) == 99");
    fleet.hook("empty", wrong).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.scale(1);
    let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert_has(&message, "\"0\" does not satisfy asInt(result) == 99");
    assert_has(&message, "is Failed");
    assert_has(&message, "the pod is kept");
    fleet.change_hook("empty", empty_now()).await;
    let status = fleet.settled(1).await;
    assert_eq!(status.pre_delete_hook_condition, []);
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn a_run_name_that_is_too_long_or_taken_is_explained() {
    let fleet = fleet("hook-template").await;
    let long = "a".repeat(230);
    fleet.hook(&long, until_empty()).await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked(&long))).await;
    fleet.scale(1);
    let message = fleet.says("ScaleBlocked", "HookRunNameInvalid").await;
    assert!(
        message.contains("(maximum 253); shorten the name of HookTemplate aaa"),
        "{message}"
    );
    assert_eq!(fleet.nodes.terminations().len(), 0);
    // A run that does not belong to the workload has the name that the next run would get.
    let marked = fleet.marked().await;
    let victim = marked.first().unwrap().clone();
    let id = victim.rsplit('-').next().unwrap();
    let revision = fleet.status().await.update_revision.unwrap();
    let name = format!("pre-delete-hook-{revision}-{id}-empty");
    let spec: HookRunSpec = serde_json::from_value(until_empty()).unwrap();
    fleet
        .runs()
        .create(&PostParams::default(), &HookRun::new(&name, spec))
        .await
        .unwrap();
    fleet.set(hooked("empty")).await;
    let message = fleet
        .until_message(
            "ScaleBlocked",
            "already exists but does not belong to this workload; delete it",
        )
        .await;
    assert!(message.contains(&name), "{message}");
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.delete_run(&name).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), marked);
}
