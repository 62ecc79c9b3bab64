//! Troubles of the cluster: a finalizer that keeps a HookRun, and hook-operator without processes.

use kube::ResourceExt;
use operator_tests::fleet::GAME;
use serde_json::{Value, json};
use shared_api::Phase;

use super::harness::{OnCall, measures_once};

/// Manifests of the installation.
const INSTALL: &str = include_str!("../../../../deploy/install.yaml");

/// Name of both the Deployment and its label.
const HOOK_OPERATOR: &str = "hook-operator";

#[tokio::test]
async fn a_run_that_a_finalizer_keeps_is_freed_and_its_hook_runs_again() {
    let on_call = OnCall::new(measures_once(json!({}))).await;
    let fleet = &on_call.fleet;
    fleet.nodes.every_pod().set_players(3);
    let pod = on_call.scale_down().await;
    fleet.says("ScaleBlocked", "HookUnsuccessful").await;
    let run = fleet.until_runs(|runs| runs.len() == 1).await.remove(0);
    let name = run.name_any();
    fleet.keep_run(&name, true).await;
    fleet.delete_run(&name).await;
    let stuck = format!("HookRun {name} is stuck terminating (finalizer example.com/keep).");
    let fix = "Fix the controller responsible for the finalizer, or remove the finalizer if no such controller exists.";
    let patch = format!("kubectl patch hookrun {name} ");
    let why = on_call
        .why_until(&[&pod, &stuck, fix], "hookrunterminating", &patch)
        .await;
    assert_eq!(why.first().purpose, "remove the finalizer, if no controller does");
    assert!(!why.out.contains("controller that owns"), "{}", why.out);
    on_call.run_printed(why.first(), "false").await;

    // The hook runs again, and fails again.
    fleet
        .until_runs(|runs| {
            let is_failed = |now: &shared_api::HookRun| {
                let phase = now.status.as_ref().map(|status| status.phase);
                now.metadata.uid != run.metadata.uid && phase == Some(Phase::Failed)
            };
            runs.len() == 1 && runs.iter().all(is_failed)
        })
        .await;
    let retry = format!("kubectl game retry {GAME} ");
    let why = on_call.why_until(&[&name], "hookunsuccessful", &retry).await;
    assert!(fleet.names().await.contains(&pod), "players are on the server");
    fleet.nodes.every_pod().set_players(0);
    on_call.run_printed(why.first(), "false").await;
    on_call.settled_without(&pod).await;
}

/// Returns the Deployment of hook-operator as it is installed, but in this namespace and without pods.
fn scaled_to_zero(namespace: &str) -> Value {
    let documents = serde_saphyr::from_multiple::<Value>(INSTALL).unwrap();
    let mut documents = documents.into_iter();
    let deployment = documents
        .find(|document| document["kind"] == "Deployment" && document["metadata"]["name"] == HOOK_OPERATOR);
    let mut deployment = deployment.unwrap();
    deployment["metadata"]["namespace"] = json!(namespace);
    deployment["spec"]["replicas"] = json!(0);
    deployment
}

#[tokio::test]
async fn a_hook_operator_that_is_scaled_to_zero_is_found_by_the_first_command() {
    let mut on_call = OnCall::new(measures_once(json!({}))).await;
    let namespace = on_call.fleet.namespace.clone();
    on_call.fleet.hooks = None;
    on_call.fleet.apply(&scaled_to_zero(&namespace));
    let pod = on_call.scale_down().await;
    let run = on_call.run_name().await;
    let find = format!("kubectl get deploy,pods -A -l app.kubernetes.io/name={HOOK_OPERATOR} -n {namespace}");
    let facts = [run.as_str(), "hook-operator is not running"];
    let why = on_call.why_until(&facts, "hooknottakenup", &find).await;
    assert_eq!(why.first().command, find);
    let said = on_call.run_printed(why.first(), "false").await;
    let mut rows = said.lines();
    let is_found = |row: &str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        words.contains(&namespace.as_str()) && row.contains(HOOK_OPERATOR) && words.contains(&"0/0")
    };
    assert!(rows.any(is_found), "{said}");
    // A process of the test stands for the pods of the Deployment.
    on_call.fleet.start_hooks().await;
    on_call.settled_without(&pod).await;
}
