//! Pods that do not start: no node fits them, or their image cannot be pulled.

use std::collections::BTreeSet;

use operator_tests::assert_has;
use operator_tests::fleet::GAME;
use serde_json::{Value, json};
use test_kit::eventually;
use test_kit::node::{Behaviour, PodSelector};

use super::harness::{OnCall, measures_once};

/// Message of the scheduler.
const NO_NODE: &str = "0/1 nodes are available: 1 Insufficient memory.";

/// Image that cannot be pulled.
const BROKEN: &str = "game:broken";

/// Message of the kubelet.
const NO_IMAGE: &str = "container game is waiting: ImagePullBackOff: Back-off pulling image \"game:broken\"";

/// Checks the explanation of two pods that no node fits, with this headline, and that they start once one fits.
async fn no_node_fits(update_strategy: Value, headline: &str) {
    let on_call = OnCall::with(measures_once(json!({})), update_strategy).await;
    let fleet = &on_call.fleet;
    let serving = fleet.names().await;
    fleet.nodes.every_pod().set_players(3);
    fleet
        .nodes
        .behave(PodSelector::future(), Behaviour::Unschedulable);
    fleet.scale(5);
    fleet.until_pods(|pods| pods.len() == 5).await;
    let names = fleet.names().await;
    let waiting: Vec<&String> = names.difference(&serving).collect();
    let [first, second] = waiting.as_slice() else {
        panic!("{waiting:?}")
    };
    let cause = format!("2 pods ({first}, {second}) cannot be scheduled: {NO_NODE}");
    let describe = format!("kubectl describe pod {first} -n {}", fleet.namespace);
    let why = on_call
        .why_until(&[headline, &cause], "minimumpodsunavailable", &describe)
        .await;
    assert_eq!(why.first().command, describe);
    assert_eq!(why.first().purpose, "show its events");
    assert_eq!(why.out.matches(NO_NODE).count(), 1, "{}", why.out);
    assert!(!why.out.contains("is not waiting:"), "{}", why.out);
    on_call.report_unscheduled(first).await;
    let said = on_call.run_printed(why.first(), "false").await;
    assert_has(&said, NO_NODE);
    let of_pod = on_call.plugin().ok(&format!("why pod/{second}")).await;
    assert_has(&of_pod, NO_NODE);

    fleet.nodes.behave(PodSelector::all(), Behaviour::Normal);
    fleet.settled(5).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    let quiet = on_call.why().await;
    assert!(
        quiet.out.starts_with(&format!("{GAME} is not waiting: ")),
        "{}",
        quiet.out
    );
}

#[tokio::test]
async fn pods_without_a_node_are_named_although_enough_others_are_available() {
    let headline = "has pods that fail to start: 3 of 5 pods are available.";
    no_node_fits(json!({ "maxUnavailable": 2 }), headline).await;
}

#[tokio::test]
async fn pods_without_a_node_are_named_where_too_few_are_available() {
    let headline = "has too few available pods (MinimumPodsUnavailable): 3 of 5.";
    no_node_fits(json!({ "maxUnavailable": 1 }), headline).await;
}

#[tokio::test]
async fn an_image_that_new_pods_cannot_pull_is_named_and_rolled_back() {
    let strategy = json!({ "type": "RollingUpdate", "maxUnavailable": 0, "maxSurge": 1 });
    let on_call = OnCall::with(measures_once(json!({})), strategy).await;
    let fleet = &on_call.fleet;
    let serving = fleet.uids().await;
    fleet
        .nodes
        .behave(PodSelector::image(BROKEN), Behaviour::CannotPull);
    fleet.set_image(BROKEN).await;
    let pods = fleet.until_pods(|pods| pods.len() == 4).await;
    let mut new = pods.keys().filter(|pod| !serving.contains_key(*pod));
    let pod = new.next().unwrap();
    let undo = format!("kubectl game undo {GAME} -n {}", fleet.namespace);
    let cause = format!("Pod {pod} fails to start: {NO_IMAGE}.");
    let why = on_call
        .why_until(
            &["has pods that fail to start", &cause],
            "minimumpodsunavailable",
            &undo,
        )
        .await;
    assert_eq!(why.first().command, undo);
    assert_eq!(why.first().purpose, "roll back");
    let set_image = format!("kubectl game set image {GAME} game=IMAGE -n {}", fleet.namespace);
    let describe = format!("kubectl describe pod {pod} -n {}", fleet.namespace);
    let others: Vec<&str> = why.commands[1..3]
        .iter()
        .map(|printed| printed.command.as_str())
        .collect();
    assert_eq!(others, [set_image, describe]);
    assert!(!why.out.contains("No action needed"), "{}", why.out);

    on_call.run_printed(why.first(), "false").await;
    fleet.all_run("game:v1", 3).await;
    fleet.settled(3).await;
    assert_eq!(fleet.uids().await, serving, "the pods stay");
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
    let status = on_call.plugin().ok(&format!("status {GAME} --timeout 60s")).await;
    assert_has(&status, "complete: RolloutComplete");
}

#[tokio::test]
async fn an_image_that_pods_cannot_pull_in_place_is_named_once_and_rolled_back() {
    // Up to two pods are updated at once.
    let on_call = OnCall::new(measures_once(json!({}))).await;
    let fleet = &on_call.fleet;
    let serving = fleet.uids().await;
    fleet
        .nodes
        .behave(PodSelector::image(BROKEN), Behaviour::CannotPull);
    fleet.set_image(BROKEN).await;
    let ended = eventually(operator_tests::SOON, || async {
        let ended = fleet.nodes.terminated_pods();
        if ended.len() == 2 { Ok(ended) } else { Err(ended) }
    })
    .await;
    let names: Vec<&str> = ended.iter().map(String::as_str).collect();
    let cause = format!("2 pods ({}) fail to start: {NO_IMAGE}.", names.join(", "));
    let undo = format!("kubectl game undo {GAME} -n {}", fleet.namespace);
    let why = on_call
        .why_until(&["(InPlaceStalled)", &cause], "inplacestalled", &undo)
        .await;
    assert_eq!(why.first().command, undo);
    assert_eq!(why.first().purpose, "roll back");
    assert_eq!(why.out.matches("Back-off pulling").count(), 1, "{}", why.out);
    assert!(
        why.has(&format!("kubectl game set image {GAME} game=IMAGE ")),
        "{}",
        why.out
    );

    // The third server has players.
    fleet.nodes.every_pod().set_players(3);
    on_call.run_printed_after(&ended, why.first(), "false").await;
    fleet.all_run("game:v1", 3).await;
    fleet.settled(3).await;
    assert_eq!(fleet.uids().await, serving, "in place");
    assert_eq!(fleet.nodes.terminated_pods(), ended, "the third server serves on");
}
