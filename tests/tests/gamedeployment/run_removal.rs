//! The operator removes unneeded HookRuns: many by one call, or one by one when that is not possible.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use operator_tests::fleet::{Who, game, hooked, until_empty};
use operator_tests::{Fleet, SOON};
use serde_json::json;
use shared_api::names::hook_run_label::NAME_DIGEST;
use test_kit::ApiProxy;
use test_kit::api_proxy::{Failure, Matcher};

use crate::fleet;

/// Number of pods: hooks run for all but one, and all are busy.
const PODS: usize = 5;
/// Number of foreign runs that make a collection call for so few runs too expensive.
const CROWD: usize = 32 * (PODS - 1);

async fn asked_in_vain() -> (Fleet<'static>, ApiProxy) {
    let mut fleet = fleet("run-removal").await;
    let proxy = ApiProxy::start(fleet.control_plane).unwrap();
    fleet.start_behind(&proxy, Who::Workloads).await;
    fleet.hook("empty", until_empty()).await;
    fleet.launch(&game(PODS, hooked("empty"))).await;
    fleet.nodes.every_pod().set_players(1);
    fleet.scale(1);
    fleet.asked(PODS - 1).await;
    (fleet, proxy)
}

/// Reverts the scale-down, so that no hook is needed any more.
async fn withdraw(fleet: &Fleet<'_>) {
    fleet.scale(PODS);
    fleet.until_runs(<[_]>::is_empty).await;
    fleet.settled(PODS).await;
    assert_eq!(fleet.nodes.terminated_pods().len(), 0);
}

fn calls(proxy: &ApiProxy) -> (usize, usize) {
    let count = |verb| proxy.count(verb, "hookruns");
    (count("deletecollection"), count("delete"))
}

#[tokio::test]
async fn questions_that_are_withdrawn_together_go_by_one_call() {
    let (fleet, proxy) = asked_in_vain().await;
    withdraw(&fleet).await;
    assert_eq!(calls(&proxy), (1, 0));
}

#[tokio::test]
async fn among_many_runs_a_few_go_by_a_call_each() {
    let (fleet, proxy) = asked_in_vain().await;
    // To delete a few runs by one call, the API server would read all runs of the namespace.
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| {
            json!({
                "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun",
                "metadata": { "name": format!("own-{number}") }, "spec": { "metrics": [] }
            })
        })
        .collect();
    fleet.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": crowd }));
    fleet.until_runs(|runs| runs.len() == CROWD + PODS - 1).await;
    fleet.scale(PODS);
    fleet.until_runs(|runs| runs.len() == CROWD).await;
    assert_eq!(calls(&proxy), (0, PODS - 1));
}

#[tokio::test]
async fn without_the_right_to_delete_many_each_is_deleted_by_itself() {
    let (fleet, proxy) = asked_in_vain().await;
    proxy.fail_next(Matcher::new("DELETE", "/hookruns"), Failure::refused(403), 1);
    withdraw(&fleet).await;
    assert_eq!(calls(&proxy), (1, PODS - 1));
}

#[tokio::test]
async fn runs_of_an_older_release_are_deleted_each_by_itself() {
    let (fleet, proxy) = asked_in_vain().await;
    let patch = Patch::Merge(json!({ "metadata": { "labels": { NAME_DIGEST: null } } }));
    for run in fleet.until_runs(|runs| runs.len() == PODS - 1).await {
        fleet
            .runs()
            .patch(&run.name_any(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    withdraw(&fleet).await;
    assert_eq!(calls(&proxy), (1, PODS - 1));
}

#[tokio::test]
async fn a_lost_answer_about_many_is_read_after() {
    let (fleet, proxy) = asked_in_vain().await;
    proxy.fail_next(Matcher::new("DELETE", "/hookruns"), Failure::after_effect(500), 1);
    withdraw(&fleet).await;
    assert_eq!(calls(&proxy), (1, 0));
    proxy
        .await_count("get", "hookruns", PODS - 1, SOON)
        .await
        .unwrap();
}

#[tokio::test]
async fn runs_that_somebody_else_made_stay() {
    let (fleet, _proxy) = asked_in_vain().await;
    let run = fleet.until_runs(|runs| runs.len() == PODS - 1).await.remove(0);
    let labels: BTreeMap<_, _> = run.labels().clone();
    let own = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun",
        "metadata": { "name": "own", "labels": { "app": labels["hookrun-type"] } }, "spec": run.spec
    });
    fleet.apply(&own);
    fleet.scale(PODS);
    let left = fleet.until_runs(|runs| runs.len() == 1).await;
    assert_eq!(left[0].name_any(), "own");
    fleet.delete_run("own").await;
    fleet.settled(PODS).await;
}
