//! Metrics: the decisions of the gate, the pods on their way out, and the progress of updates.

use operator_tests::Fleet;
use operator_tests::fleet::{GAME, empty_now, game, hooked, until_empty};
use operator_tests::{SOON, merge};
use serde_json::json;
use test_kit::eventually;

use crate::fleet;

async fn value(fleet: &Fleet<'_>, name: &str, labels: &str) -> u64 {
    let name = format!("hookgate_gamedeployment_{name}");
    fleet.workloads.as_ref().unwrap().metric(&name, labels).await
}

/// Waits until the sum of a metric has this value.
async fn until(fleet: &Fleet<'_>, name: &str, labels: &str, wanted: u64) {
    eventually(SOON, || async {
        let now = value(fleet, name, labels).await;
        if now == wanted {
            Ok(())
        } else {
            Err(format!("{name} {labels}: {now}, not {wanted}"))
        }
    })
    .await;
}

fn gate(hook: &str, decision: &str) -> String {
    format!("hook=\"{hook}\",decision=\"{decision}\"")
}

async fn decided(fleet: &Fleet<'_>, hook: &str, decisions: &[(&str, u64)]) {
    for (decision, count) in decisions {
        until(fleet, "gate_decisions_total", &gate(hook, decision), *count).await;
    }
}

#[tokio::test]
async fn every_answer_of_the_gate_counts_once() {
    let mut fleet = fleet("metrics").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    fleet.scale(1);
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    decided(
        &fleet,
        "pre-delete",
        &[("asked", 3), ("refused", 3), ("opened", 0), ("blocked", 0)],
    )
    .await;
    until(&fleet, "draining_pods", "state=\"chosen\"", 3).await;
    assert!(value(&fleet, "draining_since_timestamp_seconds", "state=\"chosen\"").await > 1_700_000_000);
    fleet.start_workloads().await;
    fleet.quiet().await;
    decided(&fleet, "pre-delete", &[("asked", 0), ("refused", 0)]).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    fleet.settled(1).await;
    decided(
        &fleet,
        "pre-delete",
        &[("asked", 3), ("refused", 0), ("opened", 3)],
    )
    .await;
    until(&fleet, "draining_pods", "", 0).await;
    until(&fleet, "draining_since_timestamp_seconds", "", 0).await;
    fleet.set(hooked("nowhere")).await;
    fleet.set(json!({ "replicas": 0 })).await;
    fleet.says("ScaleBlocked", "HookTemplateMissing").await;
    decided(&fleet, "pre-delete", &[("blocked", 1)]).await;
    let pod = fleet.marked().await.pop_first().unwrap();
    let uid = fleet.all_pods().await[&pod].metadata.uid.clone();
    fleet
        .annotate(&pod, json!({ shared_api::names::pod::SKIP_HOOK: uid }))
        .await;
    fleet.settled(0).await;
    decided(
        &fleet,
        "pre-delete",
        &[("blocked", 1), ("skipped", 1), ("opened", 3)],
    )
    .await;
}

#[tokio::test]
async fn an_update_is_counted_and_shows_when_it_stands_still() {
    let fleet = fleet("metrics").await;
    fleet.hook("until-empty", until_empty()).await;
    let mut spec = json!({ "preInplaceUpdateStrategy": { "hook": { "templateName": "until-empty" } } });
    merge(&mut spec, json!({ "updateStrategy": { "maxUnavailable": 1 } }));
    fleet.launch(&game(3, spec)).await;
    let progress = "update_progress_timestamp_seconds";
    until(&fleet, progress, GAME, 0).await;
    until(&fleet, "pods{", "state=\"updating\"", 0).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    until(&fleet, "pods{", "state=\"to_update\"", 3).await;
    let begun = value(&fleet, progress, GAME).await;
    assert!(begun > 1_700_000_000);
    fleet.quiet().await;
    assert_eq!(value(&fleet, progress, GAME).await, begun, "nothing came forward");
    until(
        &fleet,
        "hook_waiting_pods",
        "state=\"asking\",hook=\"pre-inplace\"",
        1,
    )
    .await;
    fleet.nodes.every_pod().set_players(0);
    fleet.all_run("game:v2", 3).await;
    fleet.settled(3).await;
    until(&fleet, "pods{", "state=\"to_update\"", 0).await;
    until(&fleet, "pods{", "state=\"updating\"", 0).await;
    until(&fleet, progress, GAME, 0).await;
    until(&fleet, "pods_updated_total", "in-place", 3).await;
    decided(&fleet, "pre-inplace", &[("asked", 3), ("opened", 3)]).await;
    fleet
        .set(json!({ "updateStrategy": { "type": "RollingUpdate" } }))
        .await;
    fleet.set_image("game:v3").await;
    fleet.all_run("game:v3", 3).await;
    fleet.settled(3).await;
    until(&fleet, "pods_updated_total", "recreate", 3).await;
    // An update by recreation runs the update hook if no other is set.
    decided(&fleet, "pre-inplace", &[("asked", 6), ("opened", 6)]).await;
    fleet.scale(1);
    fleet.settled(1).await;
    decided(&fleet, "pre-delete", &[("unguarded", 2)]).await;
    // The output omits the metrics of hooks that are not set.
    let text = fleet.workloads.as_ref().unwrap().get("/metrics").await;
    let waiting = text
        .lines()
        .filter(|line| line.starts_with("hookgate_gamedeployment_hook_waiting_pods{"));
    assert!(waiting.clone().count() == 4 && { waiting }.all(|line| line.contains("pre-inplace")));
}
