//! Namespaces whose label disables the guard while the webhook is not running.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use operator_tests::fleet::GAME;
use operator_tests::{SOON, assert_has};
use serde_json::json;
use test_kit::eventually;

use crate::deploy::LABEL;
use crate::guarded::Guarded;

const RUNBOOK: &str = include_str!("../../../docs/runbook.md");
/// Selector of the runbook's command for all namespaces.
const SELECTOR: &str = "tkex.tencent.com/removal-guard=Enabled";
/// Time limit for the deletion of a namespace with everything in it.
const DELETED: Duration = Duration::from_mins(2);

impl Guarded {
    /// Runs a command that fails while the webhook is called, until it succeeds: the API server learns of the label
    /// through a watch.
    async fn await_free(&self, command: &[&str]) {
        eventually(SOON, || async {
            let (succeeded, output) = self.kubectl(command);
            if succeeded { Ok(()) } else { Err(output) }
        })
        .await;
    }

    /// Checks that a command fails because the webhook does not respond.
    fn assert_not_free(&self, command: &[&str]) {
        let (succeeded, output) = self.kubectl(command);
        assert!(!succeeded, "{output}");
        assert_has(&output, "failed calling webhook");
    }

    /// Runs the runbook's command for all namespaces, here only for those of this test, and returns its output.
    fn disable_as_in_the_runbook(&self) -> String {
        let start = format!("kubectl label namespaces -l {SELECTOR} ");
        let found = RUNBOOK.lines().find_map(|line| line.strip_prefix(&start));
        // Other tests share the control plane.
        let selector = format!("{SELECTOR},{LABEL}={}", self.installation.name);
        let mut arguments = vec!["label", "namespaces", "-l", &selector];
        arguments.extend(found.unwrap().split(' '));
        self.fleet.kubectl(&arguments, "")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_webhook_an_idle_workload_is_deleted_once_its_namespace_disables_the_guard() {
    let mut guarded = Guarded::new("freed-workload").await;
    let pods = guarded.launch(2, json!({})).await;
    guarded.replica = None;
    let delete = ["delete", "gamedeployment", GAME, "--wait=false"];
    guarded.assert_not_free(&delete);
    guarded.disable();
    guarded.await_free(&delete).await;
    let wait = [
        "delete",
        "gamedeployment",
        GAME,
        "--ignore-not-found",
        "--timeout=120s",
    ];
    let _ = guarded.fleet.kubectl(&wait, "");
    assert!(guarded.fleet.games().get_opt(GAME).await.unwrap().is_none());
    guarded.await_ended(&pods).await;
    // The hooks ran nevertheless: the finalizer does not depend on the guard.
    guarded.assert_ended_after_hooks(&pods);
    let _ = guarded.fleet.kubectl(&["delete", "hooktemplate", "empty"], "");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_webhook_a_namespace_is_deleted_with_its_busy_pods_once_it_disables_the_guard() {
    let mut guarded = Guarded::new("freed-namespace").await;
    let pods = guarded.launch(2, json!({})).await;
    guarded.occupy(&pods, 1);
    guarded.replica = None;
    let namespace = guarded.fleet.namespace.clone();
    let delete = ["delete", "namespace", &namespace, "--wait=false"];
    guarded.assert_not_free(&delete);
    guarded.assert_not_free(&["delete", "gamedeployment", GAME, "--dry-run=server"]);
    let labelled = guarded.disable_as_in_the_runbook();
    assert_eq!(labelled.trim(), format!("namespace/{namespace} labeled"));
    // Otherwise, the namespace could not be emptied.
    guarded
        .await_free(&["delete", "gamedeployment", GAME, "--dry-run=server"])
        .await;
    guarded.await_free(&delete).await;
    let namespaces: Api<Namespace> = Api::all(guarded.fleet.client());
    eventually(DELETED, || async {
        match namespaces.get_opt(&namespace).await.unwrap() {
            None => Ok(()),
            Some(namespace) => Err(namespace.status),
        }
    })
    .await;
    guarded.await_ended(&pods).await;
    guarded.assert_ended_once(&pods);
}
