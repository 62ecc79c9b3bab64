//! A verdict counts once, and only for its exact purpose.

use std::collections::BTreeSet;

use operator_tests::Fleet;
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use shared_api::HookRun;
use shared_api::names::hook_run_annotation::INTENT;
use test_kit::node::GameEvent;

use crate::fleet;

fn intent(run: &HookRun) -> String {
    run.metadata.annotations.clone().unwrap_or_default()[INTENT].clone()
}

/// Returns the images of all containers that ever started.
fn started(fleet: &Fleet<'_>) -> BTreeSet<String> {
    let history = fleet.nodes.history().into_iter();
    let images = history.filter_map(|event| match event.what {
        GameEvent::Started { image, .. } => Some(image),
        _ => None,
    });
    images.collect()
}

#[tokio::test]
async fn a_scale_downs_question_survives_a_new_template() {
    let fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(2);
    let victim = fleet.asked(1).await;
    let before = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set_image("game:v2").await;
    let all = fleet.asked(3).await;
    let runs = fleet.until_runs(|runs| runs.len() == 3).await;
    let same = runs
        .iter()
        .find(|run| run.metadata.uid == before[0].metadata.uid)
        .unwrap();
    assert_eq!(intent(same), "delete");
    let status = fleet.status().await;
    let to = format!("in-place:{}", status.update_revision.unwrap());
    assert_eq!(runs.iter().filter(|run| intent(run) == to).count(), 2);
    let (_, name) = victim.into_iter().next().unwrap();
    fleet.nodes.pod(&name).set_players(0);
    fleet.until_pods(|pods| pods.len() == 2).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([name]));
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), all.into_values().collect());
}

#[tokio::test]
async fn an_update_is_asked_for_anew_when_its_target_changes() {
    let fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    let first = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set_image("game:v3").await;
    let second = fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != first[0].metadata.uid)
        .await;
    assert_ne!(intent(&second[0]), intent(&first[0]));
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(started(&fleet), ["game:v1", "game:v3"].map(str::to_owned).into());
}

#[tokio::test]
async fn a_success_for_another_revision_opens_nothing() {
    let mut fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    fleet.kill_workloads();
    fleet.nodes.every_pod().set_players(0);
    fleet.approved().await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v3").await;
    fleet.start_workloads().await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0, "the success was for game:v2");
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(started(&fleet), ["game:v1", "game:v3"].map(str::to_owned).into());
}

#[tokio::test]
async fn an_update_that_was_approved_says_nothing_about_the_next_one() {
    let fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    fleet.set_image("game:v2").await;
    fleet.settled(1).await;
    assert_eq!(fleet.images().await, ["game:v2".to_owned()].into());
    fleet.nodes.every_pod().set_players(1);
    let ended = fleet.nodes.terminations().len();
    fleet.set_image("game:v3").await;
    fleet.asked(1).await;
    fleet.quiet().await;
    // Back to the previous image: that is a change, too.
    fleet.set_image("game:v1").await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), ended);
    // A pod that already has the image needs no hook.
    fleet.set_image("game:v2").await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminations().len(), ended);
}

#[tokio::test]
async fn a_restart_while_the_hook_is_asked_voids_the_question() {
    let fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let (_, victim) = fleet.asked(1).await.into_iter().next().unwrap();
    let before = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.nodes.pod(&victim).crash();
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != before[0].metadata.uid)
        .await;
    fleet.asked(1).await;
    fleet.nodes.pod(&victim).set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([victim]));
}

#[tokio::test]
async fn a_restart_between_the_verdict_and_the_act_voids_the_verdict() {
    let mut fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let (_, victim) = fleet.asked(1).await.into_iter().next().unwrap();
    fleet.kill_workloads();
    fleet.nodes.every_pod().set_players(0);
    fleet.approved().await;
    // The pod's players come back to it.
    fleet.nodes.every_pod().set_players(1);
    fleet.nodes.pod(&victim).crash();
    let back = |pod: &test_kit::node::PodView| pod.ready && pod.containers[0].restarts == 1;
    fleet
        .nodes
        .pod(&victim)
        .await_that(operator_tests::SOON, back)
        .await
        .unwrap();
    fleet.start_workloads().await;
    fleet.asked(1).await;
    fleet.quiet().await;
    assert_eq!(
        fleet.nodes.terminations().len(),
        1,
        "the crash, and nothing since"
    );
    assert_eq!(fleet.names().await.len(), 2);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([victim]));
}

#[tokio::test]
async fn another_hook_in_the_spec_voids_the_question() {
    let fleet = fleet("verdict-once").await;
    fleet.hook("empty", until_empty()).await;
    let mut other = until_empty();
    other["metrics"][0]["interval"] = json!("50ms");
    fleet.hook("other", other).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let before = fleet.asked(1).await;
    fleet.set(hooked("other")).await;
    let after = fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.name.as_deref().unwrap().ends_with("-other"))
        .await;
    assert_eq!(after.len(), 1);
    assert_eq!(
        fleet.asked(1).await.into_values().collect::<Vec<_>>(),
        before.into_values().collect::<Vec<_>>()
    );
    // Without a hook, the gate is open.
    fleet.set(json!({ "preDeleteUpdateStrategy": null })).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
    fleet.told("no hook is configured").await;
}
