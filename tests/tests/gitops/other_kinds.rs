//! Health of HookRuns and ExecutionHooks.

use operator_tests::Fleet;
use operator_tests::fleet::{GAME, game};
use operator_tests::hook_rights::{grant_exec, with_kubelets};
use serde_json::{Value, json};
use shared_api::{ExecutionHook, HookRun};
use test_kit::Webhook;
use test_kit::node::Exec;
use test_kit::webhook::Answer;

use crate::seen::becomes;
use crate::{PROGRAMS, fleet, shared};

fn hook_run(name: &str, server: &Webhook, limits: Value) -> Value {
    let mut metric = json!({
        "name": "healthy", "successCondition": "result == true",
        "provider": { "web": { "url": server.url("/health"), "jsonPath": "{$.healthy}" } }
    });
    operator_tests::merge(&mut metric, limits);
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookRun", "metadata": { "name": name },
        "spec": { "metrics": [metric] }
    })
}

#[tokio::test]
async fn a_hook_run_is_healthy_once_it_is_successful() {
    let fleet = fleet().await;
    let server = Webhook::start().unwrap();
    server.on("/health", Answer::json(json!({ "healthy": false })));
    fleet.apply(&hook_run("once", &server, json!({})));
    becomes::<HookRun>(&fleet, "once", "Degraded", "FailureLimitExceeded: ").await;
    let polls = json!({ "interval": "100ms", "successfulLimit": 1 });
    fleet.apply(&hook_run("polls", &server, polls));
    becomes::<HookRun>(&fleet, "polls", "Progressing", "Measuring: ").await;
    server.on("/health", Answer::json(json!({ "healthy": true })));
    becomes::<HookRun>(&fleet, "polls", "Healthy", "AllMetricsSuccessful: ").await;
}

/// Fleet whose hooks may run commands; `None` on an existing cluster, which cannot reach the stand-in kubelets.
async fn with_execution_hooks() -> Option<Fleet<'static>> {
    let fleet = with_kubelets(shared().await, PROGRAMS, "gitops", &["--execution-hooks"]).await?;
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    Some(fleet)
}

fn execution_hook(name: &str, app: &str) -> Value {
    let selector = json!({ "podSelector": { "matchLabels": { "app": app } }, "containerList": ["game"] });
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook", "metadata": { "name": name },
        "spec": { "actionName": "freeze", "podSelection": { "podContainerSelector": selector } }
    })
}

#[tokio::test]
async fn an_execution_hook_is_healthy_once_its_action_has_succeeded() {
    let Some(fleet) = with_execution_hooks().await else {
        return;
    };
    fleet.launch(&game(2, json!({}))).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    fleet.apply(&execution_hook("freeze-1", GAME));
    becomes::<ExecutionHook>(&fleet, "freeze-1", "Degraded", "ActionNotFound: ").await;
    fleet.apply(&json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": "freeze" },
        "action": { "exec": { "command": ["game-server", "freeze"] } }, "actionTimeoutSeconds": 2
    }));
    becomes::<ExecutionHook>(&fleet, "freeze-1", "Healthy", "ActionSucceeded: ").await;
    fleet.apply(&execution_hook("freeze-2", "other"));
    becomes::<ExecutionHook>(&fleet, "freeze-2", "Degraded", "NothingSelected: ").await;
}
