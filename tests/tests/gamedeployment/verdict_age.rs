//! A success expires: a pod checked a while ago may have players again.

use std::time::Duration;

use jiff::Timestamp;
use operator_tests::fleet::{game, hooked, until_empty};
use operator_tests::{Fleet, SOON, merge};
use serde_json::json;
use shared_api::HookRun;
use test_kit::eventually;

use crate::fleet;

/// Launches a workload with the shortest validity of verdicts.
async fn launch(fleet: &Fleet<'_>, replicas: usize) {
    fleet.hook("empty", until_empty()).await;
    let mut spec = hooked("empty");
    merge(
        &mut spec,
        json!({ "preDeleteUpdateStrategy": { "freshForSeconds": 5 } }),
    );
    fleet.launch(&game(replicas, spec)).await;
    fleet.nodes.every_pod().set_players(1);
}

/// Waits until the verdicts of all runs have expired.
async fn too_old(fleet: &Fleet<'_>) -> Vec<HookRun> {
    fleet.approved().await;
    eventually(SOON, || async {
        let runs = fleet.until_runs(|runs| !runs.is_empty()).await;
        let ended = runs
            .iter()
            .filter_map(|run| run.status.as_ref()?.completed_at)
            .map(shared_api::time::Time::timestamp);
        let age = Timestamp::now().duration_since(ended.max()?);
        (age.unsigned_abs() > Duration::from_secs(6)).then_some(runs)
    })
    .await
}

#[tokio::test]
async fn a_success_of_an_outage_is_asked_for_again() {
    let mut fleet = fleet("verdict-age").await;
    launch(&fleet, 3).await;
    fleet.scale(2);
    let victims = fleet.asked(1).await;
    fleet.kill_workloads();
    fleet.nodes.every_pod().set_players(0);
    let before = too_old(&fleet).await;
    // Players return together with the operator.
    fleet.nodes.every_pod().set_players(9);
    fleet.start_workloads().await;
    fleet
        .until_runs(|runs| runs.len() == 1 && runs[0].metadata.uid != before[0].metadata.uid)
        .await;
    assert_eq!(fleet.asked(1).await, victims);
    fleet.told("HookVerdictExpired").await;
    fleet.quiet().await;
    assert_eq!(fleet.nodes.terminations().len(), 0);
    fleet.nodes.every_pod().set_players(0);
    fleet.settled(2).await;
    assert_eq!(fleet.nodes.terminated_pods(), victims.into_values().collect());
}
