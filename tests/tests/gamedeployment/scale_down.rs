//! Pods leave independently of each other when their hook succeeds.

use std::collections::BTreeSet;

use operator_tests::assert_has;
use operator_tests::fleet::{condition, empty_now, game, hooked, until_empty};
use shared_api::Phase;

use crate::fleet;

#[tokio::test]
async fn a_busy_pod_stays_until_it_is_empty_and_holds_up_nobody() {
    let fleet = fleet("scale-down").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(5, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(3);
    fleet.scale(2);
    let runs = fleet
        .until_runs(|runs| {
            runs.len() == 3
                && runs.iter().all(|run| {
                    run.status
                        .as_ref()
                        .is_some_and(|status| status.phase == Phase::Running)
                })
        })
        .await;
    let victims: Vec<String> = runs
        .iter()
        .map(|run| {
            let args = run.spec.args.as_ref().unwrap();
            args.iter()
                .find(|arg| arg.name == "PodName")
                .unwrap()
                .value
                .clone()
                .unwrap()
        })
        .collect();
    assert_eq!(
        fleet.nodes.terminations().len(),
        0,
        "nobody has gone while players are on all"
    );
    let status = fleet
        .until(|status| status.pre_delete_hook_condition.len() == 3)
        .await;
    assert_eq!(status.replicas, 5);
    assert_eq!(status.ready_replicas, 5);
    assert_eq!(status.hook_pending_replicas, 3);
    // Two are empty now: they leave at once, the third stays.
    fleet.nodes.pod(&victims[0]).set_players(0);
    fleet.nodes.pod(&victims[1]).set_players(0);
    fleet.until_pods(|pods| pods.len() == 3).await;
    assert_eq!(
        fleet.nodes.terminated_pods(),
        BTreeSet::from([victims[0].clone(), victims[1].clone()])
    );
    fleet.nodes.pod(&victims[2]).set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), victims.into_iter().collect());
    fleet.told("PodDeleted").await;
}

#[tokio::test]
async fn a_refusal_is_explained_and_retry_asks_again() {
    let fleet = fleet("scale-down").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(7);
    fleet.scale(2);
    let status = fleet
        .until(|status| {
            status
                .pre_delete_hook_condition
                .iter()
                .any(|entry| entry.phase == Phase::Failed)
        })
        .await;
    let (blocked, reason, message) = condition(&status, "ScaleBlocked").unwrap();
    assert_eq!(blocked.as_str(), "True", "{message}");
    assert_eq!(reason.as_str(), "HookUnsuccessful", "{message}");
    assert_has(&message, "\"7\" does not satisfy asInt(result) == 0");
    assert_has(&message, "retry to true");
    fleet.told("HookUnsuccessful").await;
    fleet.nodes.every_pod().set_players(0);
    fleet.quiet().await;
    assert_eq!(
        fleet.nodes.terminations().len(),
        0,
        "a verdict stays until somebody asks again"
    );
    fleet.retry("preDeleteUpdateStrategy");
    let status = fleet.settled(2).await;
    assert_eq!(condition(&status, "ScaleBlocked"), None);
    assert_eq!(
        fleet.game().await.spec.pre_delete_update_strategy.unwrap().retry,
        Some(false)
    );
}
