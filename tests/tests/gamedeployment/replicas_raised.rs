//! `replicas` is raised again while pods wait for their hooks: the operator releases the pods that it
//! selected last, and kills none.

use std::collections::BTreeSet;

use operator_tests::fleet::{game, hooked, until_empty};

use crate::fleet;

#[tokio::test]
async fn every_victim_is_withdrawn_when_all_pods_are_wanted_again() {
    let fleet = fleet("replicas-raised").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(3, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    fleet.scale(1);
    let asked = fleet.asked(2).await;
    assert_eq!(fleet.marked().await, asked.into_values().collect());
    fleet.scale(3);
    fleet.settled(3).await;
    // No trace of their selection remains.
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.names().await, before);
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::new());
}

#[tokio::test]
async fn the_victims_chosen_last_are_withdrawn_first() {
    let fleet = fleet("replicas-raised").await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(4, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    let before = fleet.names().await;
    fleet.scale(3);
    let first: BTreeSet<String> = fleet.asked(1).await.into_values().collect();
    let run = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.scale(1);
    let all: BTreeSet<String> = fleet.asked(3).await.into_values().collect();
    assert!(all.is_superset(&first));
    fleet.scale(3);
    let left = fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(
        left[0].metadata.uid, run[0].metadata.uid,
        "the first victim is not asked anew"
    );
    fleet.until_marked(&first).await;
    let status = fleet.until(|status| status.hook_pending_replicas == 1).await;
    let entry = &status.pre_delete_hook_condition[0];
    assert!(
        entry
            .message
            .as_deref()
            .unwrap()
            .starts_with("waiting for the verdict of HookRun pre-delete-hook-")
    );
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(3).await;
    assert_eq!(fleet.nodes.terminated_pods(), first);
    assert_eq!(fleet.names().await, before.difference(&first).cloned().collect());
}
