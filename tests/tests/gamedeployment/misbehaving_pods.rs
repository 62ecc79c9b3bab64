//! Unready pods during updates and deletions: the budget holds, and the status names them.

use std::collections::BTreeSet;
use std::time::Duration;

use operator_tests::fleet::{condition, game, hooked, until_empty};
use operator_tests::{Fleet, assert_has};
use serde_json::{Value, json};
use test_kit::node::{Behaviour, PodSelector};

use crate::fleet;
use crate::seen::{self, fewest_ready};

fn strategy(kind: &str, max_unavailable: u32) -> Value {
    json!({ "updateStrategy": { "type": kind, "maxUnavailable": max_unavailable } })
}

#[tokio::test]
async fn an_update_to_pods_that_never_get_ready_stops_at_its_budget() {
    for kind in ["InplaceUpdate", "RollingUpdate"] {
        let fleet = fleet("never-ready").await;
        fleet.launch(&game(5, strategy(kind, 2))).await;
        let pods = seen::pods(&fleet).await;
        fleet
            .nodes
            .behave(PodSelector::image("game:v2"), Behaviour::NeverReady);
        fleet.set_image("game:v2").await;
        let status = fleet
            .until(|status| (status.updated_replicas, status.ready_replicas, status.replicas) == (2, 3, 5))
            .await;
        assert_eq!(status.updated_ready_replicas, 0);
        fleet
            .until_message(
                "Progressing",
                "3 pods are waiting because maxUnavailable is reached: ",
            )
            .await;
        let message = fleet.until_message("Progressing", "; not available: ").await;
        fleet.quiet().await;
        let sick = fleet
            .all_pods()
            .await
            .into_iter()
            .filter(|(name, _)| !is_ready(&fleet, name));
        for (name, _) in sick {
            assert!(message.contains(&name), "{message}");
        }
        // The pods become ready in the end, and the rest follows.
        fleet
            .nodes
            .behave(PodSelector::image("game:v2"), Behaviour::Normal);
        fleet.until(|status| status.updated_ready_replicas == 5).await;
        fleet.settled(5).await;
        fleet.all_run("game:v2", 5).await;
        assert_eq!(fewest_ready(&pods, 5).await, 3, "{kind}");
    }
}

fn is_ready(fleet: &Fleet<'_>, name: &str) -> bool {
    fleet.nodes.pod(name).view().is_some_and(|pod| pod.ready)
}

#[tokio::test]
async fn an_update_that_crashes_is_named_and_goes_no_further_and_the_way_back_is_open() {
    let fleet = fleet("crash-loop").await;
    fleet.launch(&game(4, strategy("InplaceUpdate", 1))).await;
    let pods = seen::pods(&fleet).await;
    fleet
        .nodes
        .behave(PodSelector::image("game:v2"), Behaviour::CrashLoop);
    fleet.set_image("game:v2").await;
    let message = fleet.until_message("UpdateBlocked", "CrashLoopBackOff").await;
    assert_has(&message, "fix the image, or revert the template");
    fleet.told("InPlaceStalled").await;
    let status = fleet.until(|status| status.updated_replicas == 1).await;
    assert_eq!(status.ready_replicas, 3);
    assert_eq!(fleet.nodes.terminated_pods().len(), 1, "the others play on");
    fleet.set_image("game:v1").await;
    let status = fleet.settled(4).await;
    assert_eq!(condition(&status, "UpdateBlocked"), None);
    fleet.all_run("game:v1", 4).await;
    assert_eq!(fewest_ready(&pods, 4).await, 3);
    assert_eq!(fleet.nodes.terminated_pods().len(), 1);
}

#[tokio::test]
async fn pods_that_were_not_well_before_are_updated_first_and_cost_no_budget() {
    let fleet = fleet("sick-first").await;
    fleet.launch(&game(4, strategy("InplaceUpdate", 1))).await;
    let pods = seen::pods(&fleet).await;
    let sick = fleet.names().await.last().unwrap().clone();
    fleet.nodes.pod(&sick).behave(Behaviour::NeverReady);
    fleet.until(|status| status.ready_replicas == 3).await;
    fleet.set_image("game:v2").await;
    fleet
        .until(|status| status.updated_replicas == 1 && status.ready_replicas == 3)
        .await;
    fleet
        .until_message("Progressing", &format!("not available: {sick}"))
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([sick.clone()]));
    fleet.nodes.pod(&sick).behave(Behaviour::Normal);
    fleet.until(|status| status.updated_ready_replicas == 4).await;
    fleet.settled(4).await;
    assert_eq!(fewest_ready(&pods, 4).await, 3);
}

#[tokio::test]
async fn slow_starters_are_waited_for_one_after_the_other() {
    let fleet = fleet("slow-start").await;
    fleet.launch(&game(3, strategy("RollingUpdate", 1))).await;
    let pods = seen::pods(&fleet).await;
    let slow = Behaviour::SlowStart(Duration::from_millis(600));
    fleet.nodes.behave(PodSelector::image("game:v2"), slow);
    fleet.set_image("game:v2").await;
    fleet.until(|status| status.updated_ready_replicas == 3).await;
    fleet.settled(3).await;
    fleet.all_run("game:v2", 3).await;
    assert_eq!(fewest_ready(&pods, 3).await, 2);
}

#[tokio::test]
async fn of_too_many_pods_those_that_are_not_well_go_and_the_others_stay() {
    let fleet = fleet("sick-surplus").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(5, hooked("empty"))).await;
    let names: Vec<String> = fleet.names().await.into_iter().collect();
    let sick = BTreeSet::from([names[1].clone(), names[3].clone()]);
    for name in &sick {
        fleet.nodes.pod(name).behave(Behaviour::NeverReady);
    }
    fleet.until(|status| status.ready_replicas == 3).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(3);
    let asked = fleet.asked(2).await;
    assert_eq!(
        asked.into_values().collect::<BTreeSet<_>>(),
        sick,
        "they may have players"
    );
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), sick);
}

#[tokio::test]
async fn a_surplus_pod_that_may_go_stays_while_it_is_needed() {
    let fleet = fleet("needed-surplus").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "maxUnavailable": 1 });
    fleet.launch(&game(4, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(3);
    let (_, victim) = fleet.asked(1).await.into_iter().next().unwrap();
    let others: Vec<String> = fleet
        .names()
        .await
        .into_iter()
        .filter(|name| *name != victim)
        .collect();
    for name in &others[..2] {
        fleet.nodes.pod(name).behave(Behaviour::NeverReady);
    }
    fleet.until(|status| status.ready_replicas == 2).await;
    fleet.nodes.pod(&victim).set_players(0);
    let words = format!(
        "1 pod is waiting because maxUnavailable is reached: {victim}; not available: {}",
        others[..2].join(", ")
    );
    fleet.until_message("Progressing", &words).await;
    fleet.quiet().await;
    assert_eq!(
        fleet.nodes.terminations().len(),
        0,
        "it is one of the last that serve"
    );
    fleet.nodes.pod(&others[0]).behave(Behaviour::Normal);
    fleet.until_pods(|pods| !pods.contains_key(&victim)).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([victim]));
    fleet.nodes.pod(&others[1]).behave(Behaviour::Normal);
    fleet.settled(3).await;
}
