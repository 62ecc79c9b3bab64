//! Retries: `retry` of one hook, and deletion of a HookRun by hand.

use std::collections::BTreeSet;

use operator_tests::assert_has;
use operator_tests::fleet::{condition, empty_now, game, hooked};
use serde_json::json;
use shared_api::Phase;

use crate::fleet;

#[tokio::test]
async fn retry_of_one_hook_leaves_the_other_alone() {
    let fleet = fleet("retry").await;
    fleet.hook("empty", empty_now()).await;
    let mut spec = hooked("empty");
    spec["preInplaceUpdateStrategy"] = json!({ "hook": { "templateName": "empty" } });
    fleet.launch(&game(2, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("UpdateBlocked", "HookUnsuccessful").await;
    assert_has(&message, "set spec.preInplaceUpdateStrategy.retry to true");
    let before = fleet.until_runs(|runs| runs.len() == 2).await;
    let uids = |prefix: &str| {
        let runs = before
            .iter()
            .filter(|run| run.metadata.name.as_deref().unwrap().starts_with(prefix));
        runs.map(|run| run.metadata.uid.clone()).collect::<Vec<_>>()
    };
    let (scale, update) = (uids("pre-delete"), uids("pre-inplace"));
    assert_eq!((scale.len(), update.len()), (1, 1));
    fleet.retry("preInplaceUpdateStrategy");
    let after = fleet
        .until_runs(|runs| {
            runs.len() == 2
                && !runs.iter().any(|run| update.contains(&run.metadata.uid))
                && runs.iter().all(|run| {
                    run.status
                        .as_ref()
                        .is_some_and(|status| status.phase == Phase::Failed)
                })
        })
        .await;
    assert!(after.iter().any(|run| scale.contains(&run.metadata.uid)));
    fleet.until(|status| status.hook_pending_replicas == 2).await;
    fleet.quiet().await;
    let game = fleet.game().await;
    assert_eq!(game.spec.pre_inplace_update_strategy.unwrap().retry, Some(false));
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preInplaceUpdateStrategy");
    fleet.cleared("UpdateBlocked").await;
    fleet.retry("preDeleteUpdateStrategy");
    let status = fleet.settled(1).await;
    assert_eq!(condition(&status, "ScaleBlocked"), None);
}

#[tokio::test]
async fn a_run_that_a_finalizer_keeps_holds_up_neither_the_retry_nor_another_pod() {
    let fleet = fleet("retry").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(2, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(0);
    let status = fleet
        .until(|status| {
            let entries = &status.pre_delete_hook_condition;
            entries.len() == 2 && entries.iter().all(|entry| entry.phase == Phase::Failed)
        })
        .await;
    let entry = &status.pre_delete_hook_condition[0];
    let (pod, run) = (entry.pod_name.clone(), entry.hook_run.clone().unwrap());
    fleet.keep_run(&run, true).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.retry("preDeleteUpdateStrategy");
    let left = fleet.until_pods(|pods| pods.len() == 1).await;
    assert!(left.contains_key(&pod), "the name of its HookRun is taken");
    fleet
        .until_game(|game| {
            let strategy = game.spec.pre_delete_update_strategy.as_ref();
            strategy.and_then(|strategy| strategy.retry) == Some(false)
        })
        .await;
    let message = fleet.says("ScaleBlocked", "HookRunTerminating").await;
    assert_has(
        &message,
        &format!("pod {pod}: its hook cannot run, because HookRun {run}"),
    );
    fleet
        .until_message(
            "Progressing",
            &format!("HookRun {run} is stuck terminating because of its finalizers"),
        )
        .await;
    fleet.quiet().await;
    fleet.keep_run(&run, false).await;
    fleet.settled(0).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 2);
}

#[tokio::test]
async fn retry_without_anything_to_retry_is_set_back() {
    let fleet = fleet("retry").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(1, hooked("empty"))).await;
    fleet.retry("preDeleteUpdateStrategy");
    fleet
        .until_game(|game| {
            let strategy = game.spec.pre_delete_update_strategy.as_ref();
            strategy.and_then(|strategy| strategy.retry) == Some(false)
        })
        .await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

#[tokio::test]
async fn a_run_deleted_by_hand_is_asked_again() {
    let fleet = fleet("retry").await;
    fleet.hook("empty", empty_now()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    let failed = |runs: &[shared_api::HookRun]| {
        runs.len() == 2
            && runs.iter().all(|run| {
                run.status
                    .as_ref()
                    .is_some_and(|status| status.phase == Phase::Failed)
            })
    };
    let runs = fleet.until_runs(failed).await;
    let victims: BTreeSet<String> = runs.iter().map(operator_tests::fleet::pod_of).collect();
    let (one, other) = (&runs[0], &runs[1]);
    fleet.nodes.every_pod().set_players(0);
    fleet.delete_run(one.metadata.name.as_deref().unwrap()).await;
    fleet.until_pods(|pods| pods.len() == 2).await;
    let message = fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    assert!(
        !message.contains(&operator_tests::fleet::pod_of(one)),
        "{message}"
    );
    assert_has(&message, "or delete the HookRun");
    assert_eq!(
        fleet.nodes.terminated_pods(),
        BTreeSet::from([operator_tests::fleet::pod_of(one)])
    );
    fleet.delete_run(other.metadata.name.as_deref().unwrap()).await;
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminated_pods(), victims);
}
