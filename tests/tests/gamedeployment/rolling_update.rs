//! `RollingUpdate` deletes and recreates pods, gated and within its budget; `OnDelete` waits for others to
//! delete them.

use std::cell::Cell;
use std::collections::BTreeSet;

use kube::ResourceExt;
use operator_tests::assert_has;
use operator_tests::fleet::{game, hooked, until_empty};
use serde_json::json;
use shared_api::HookRun;
use shared_api::names::hook_run_annotation::INTENT;

use crate::fleet;
use crate::seen::{self, fewest_ready};

#[tokio::test]
async fn a_surge_pod_comes_first_and_each_old_pod_goes_when_its_hook_says_so() {
    let fleet = fleet("rolling-update").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "type": "RollingUpdate", "maxSurge": 1, "maxUnavailable": 0 });
    fleet.launch(&game(3, spec)).await;
    let old = fleet.names().await;
    let pods = seen::pods(&fleet).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    let run: HookRun = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    assert!(
        run.name_any().starts_with("pre-delete-hook-") && run.annotations()[INTENT].starts_with("recreate:")
    );
    let message = fleet.until_message("Progressing", "the hook of").await;
    assert_has(&message, "1 of 3 pods are updated");
    fleet.quiet().await;
    assert_eq!(fleet.names().await.len(), 4);
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    let most = Cell::new(0);
    fleet
        .until(|status| {
            most.set(most.get().max(status.replicas));
            status.updated_ready_replicas == 3 && status.replicas == 3
        })
        .await;
    fleet.settled(3).await;
    assert_eq!((most.get(), fewest_ready(&pods, 3).await), (4, 3));
    assert_eq!(fleet.nodes.terminated_pods(), old);
    fleet.all_run("game:v2", 3).await;
}

#[tokio::test]
async fn without_surge_pods_go_first_and_never_too_many() {
    let fleet = fleet("rolling-update").await;
    let spec = json!({ "updateStrategy": { "type": "RollingUpdate", "maxUnavailable": "25%" } });
    fleet.launch(&game(4, spec)).await;
    let old = fleet.names().await;
    let pods = seen::pods(&fleet).await;
    fleet.set_image("game:v2").await;
    fleet.settled(4).await;
    fleet.all_run("game:v2", 4).await;
    assert_eq!(fewest_ready(&pods, 4).await, 3);
    assert_eq!(fleet.nodes.terminated_pods(), old);
}

#[tokio::test]
async fn the_question_is_put_anew_when_the_template_changes_again() {
    let fleet = fleet("rolling-update").await;
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    spec["updateStrategy"] = json!({ "type": "RollingUpdate", "maxUnavailable": 1 });
    fleet.launch(&game(1, spec)).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.set_image("game:v2").await;
    fleet.asked(1).await;
    let first = fleet.until_runs(|runs| runs.len() == 1).await;
    fleet.set_image("game:v3").await;
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != first[0].metadata.uid)
        .await;
    // Reverted to the current template: no hook runs any more.
    fleet.set_image("game:v1").await;
    fleet.settled(1).await;
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(1).await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
}

#[tokio::test]
async fn on_delete_changes_only_what_somebody_deletes() {
    let fleet = fleet("on-delete").await;
    let spec = json!({ "updateStrategy": { "type": "OnDelete" } });
    fleet.launch(&game(2, spec)).await;
    let old = fleet.names().await;
    fleet.set_image("game:v2").await;
    let message = fleet.says("Progressing", "WaitingForDeletion").await;
    let words = "0 of 2 pods are updated; the rest will be updated when they are deleted; not updated yet: ";
    assert!(message.starts_with(words), "{message}");
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    let one = old.first().unwrap().clone();
    fleet.delete_pod(&one).await;
    fleet
        .until(|status| (status.updated_ready_replicas, status.replicas) == (1, 2))
        .await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminated_pods(), BTreeSet::from([one]));
    fleet.delete_pod(old.last().unwrap()).await;
    fleet.settled(2).await;
    fleet.all_run("game:v2", 2).await;
}
