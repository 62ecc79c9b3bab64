//! Deletion guard: what it refuses, how to override it, and what it does not block.

use kube::api::{Api, Patch, PatchParams};
use operator_tests::fleet::{GAME, game};
use operator_tests::{SOON, assert_has};
use serde_json::json;
use shared_api::GameDeployment;
use shared_api::names::workload::DELETION_ALLOW;
use test_kit::eventually;

use crate::installation::{Installation, hook, run};
use crate::shared;

fn games(installation: &Installation<'_>) -> Api<GameDeployment> {
    Api::namespaced(installation.control_plane.client(), &installation.namespace)
}

/// Runs the kubectl command at the end of a refusal.
fn run_the_printed_command(installation: &Installation<'_>, refusal: &str) {
    let (_, command) = refusal.rsplit_once(": kubectl ").unwrap();
    let mut kubectl = installation.control_plane.kubectl();
    kubectl.args(command.split(' '));
    run(kubectl, "").unwrap();
}

#[tokio::test]
async fn a_workload_goes_only_when_its_label_allows_it() {
    let (installation, replica) = Installation::running(shared().await, &[]).await;
    installation.must(&["create", "--filename", "-"], &game(3, json!({})).to_string());
    let delete = ["delete", "gamedeployment", GAME, "--wait=false"];
    let refusal = installation.refused(&delete, "");
    let command = format!(
        "To allow the deletion: kubectl label gamedeployment {GAME} --namespace {} {DELETION_ALLOW}=Always --overwrite",
        installation.namespace
    );
    assert!(refusal.ends_with(&command), "{refusal}");
    let all = ["delete", "gamedeployments", "--all", "--wait=false"];
    assert_eq!(installation.refused(&all, ""), refusal);
    assert_eq!(
        installation.refused(&["delete", "gamedeployment", GAME, "--cascade=orphan"], ""),
        refusal
    );
    run_the_printed_command(&installation, &refusal);
    installation.must(&delete, "");
    assert!(games(&installation).get_opt(GAME).await.unwrap().is_none());
    let labels = [
        "path=\"guard\"",
        "kind=\"GameDeployment\"",
        "operation=\"delete\"",
    ];
    let count = |outcome: &'static str| [&labels[..], &[outcome][..]].concat();
    let name = "hookgate_admission_requests_total";
    assert!(replica.metric(name, &count("outcome=\"refused\"")).await >= 3);
    assert_eq!(replica.metric(name, &count("outcome=\"allowed\"")).await, 1);
}

#[tokio::test]
async fn cascading_allows_it_once_no_pod_is_left() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let mut cascading = game(1, json!({}));
    cascading["metadata"]["labels"][DELETION_ALLOW] = json!("Cascading");
    installation.must(&["create", "--filename", "-"], &cascading.to_string());
    let delete = ["delete", "gamedeployment", GAME, "--wait=false"];
    assert!(
        installation
            .refused(&delete, "")
            .contains("Scale it to 0 and wait")
    );
    installation.must(&["scale", "--replicas=0", &format!("gamedeployment/{GAME}")], "");
    // Its pods wait for their hook, as recorded in the status.
    let record = async |replicas: i32, generation: i64| {
        let status = json!({ "status": { "replicas": replicas, "observedGeneration": generation } });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
        games(&installation)
            .patch_status(GAME, &params, &patch)
            .await
            .unwrap()
    };
    record(1, 2).await;
    assert!(
        installation
            .refused(&delete, "")
            .contains("(spec.replicas 0, status.replicas 1)")
    );
    record(0, 1).await;
    let refusal = installation.refused(&delete, "");
    assert_has(&refusal, "the operator has observed the latest spec");
    record(0, 2).await;
    installation.must(&delete, "");
}

#[tokio::test]
async fn a_template_needs_always_and_a_run_needs_nothing() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let mut template = hook("HookTemplate", "hook", "result > 1");
    template["metadata"]["labels"] = json!({ DELETION_ALLOW: "Cascading" });
    installation.must(&["create", "--filename", "-"], &template.to_string());
    installation.must(
        &["create", "--filename", "-"],
        &hook("HookRun", "hook", "result > 1").to_string(),
    );
    installation.must(&["delete", "hookrun", "hook"], "");
    let refusal = installation.refused(&["delete", "hooktemplate", "hook"], "");
    run_the_printed_command(&installation, &refusal);
    installation.must(&["delete", "hooktemplate", "hook"], "");
}

/// Pods go with their namespace regardless of the guard: a refusal would protect nothing.
#[tokio::test]
async fn a_namespace_that_is_being_deleted_is_not_held_up() {
    let control_plane = shared().await;
    let (installation, _replica) = Installation::running(control_plane, &[]).await;
    let other = control_plane.namespace("admission-ends").await;
    installation.watch_over(&other).await;
    let kubectl = |arguments: &[&str], input: &str| {
        let mut command = control_plane.kubectl();
        command.args(["--namespace", &other]).args(arguments);
        run(command, input)
    };
    kubectl(&["create", "--filename", "-"], &game(1, json!({})).to_string()).unwrap();
    goes_with_its_namespace(kubectl, &other, ["gamedeployment", GAME]).await;
}

/// Waits until the guard refuses to delete an object, and then for the end of its namespace.
pub(crate) async fn goes_with_its_namespace(
    kubectl: impl Fn(&[&str], &str) -> Result<String, String>,
    namespace: &str,
    [resource, name]: [&str; 2],
) {
    eventually(SOON, || async {
        match kubectl(&["delete", "--dry-run=server", resource, name], "") {
            Err(said) if said.contains("is refused") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    kubectl(&["delete", "namespace", namespace, "--wait=false"], "").unwrap();
    eventually(SOON, || async {
        match kubectl(&["get", "namespace", namespace, "--output=yaml"], "") {
            Err(said) if said.contains("NotFound") => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// The tests' controller manager is the administrator, so here the administrator is exempt, and Jane is not.
#[tokio::test]
async fn garbage_collection_is_not_held_up() {
    let (installation, _replica) = Installation::running(shared().await, &[]).await;
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "owner" } });
    installation.must(&["create", "--filename", "-"], &owner.to_string());
    let uid = installation.must(
        &["get", "configmap", "owner", "--output=jsonpath={.metadata.uid}"],
        "",
    );
    let mut dependent = game(1, json!({}));
    dependent["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid }]);
    installation.must(&["create", "--filename", "-"], &dependent.to_string());
    let jane = ["--as=jane", "--as-group=system:masters"];
    let delete = |kind, name| [&["delete", kind, name, "--wait=false"], &jane[..]].concat();
    assert!(
        installation
            .refused(&delete("gamedeployment", GAME), "")
            .contains("without running their hooks")
    );
    installation.must(&delete("configmap", "owner"), "");
    eventually(SOON, || async {
        let found = games(&installation).get_opt(GAME).await.unwrap();
        found.map_or(Ok(()), |found| Err(found.metadata.owner_references))
    })
    .await;
}
