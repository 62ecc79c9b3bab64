//! Sample ExecutionHooks for tests: the action `freeze` in four containers.

use serde_json::{Value, json};
use shared_api::ExecutionHook;

use super::execution::ExecutionView;

/// Builds a hook with this status.
pub(crate) fn hook(status: Value) -> ExecutionHook {
    let mut hook = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "ExecutionHook",
        "metadata": { "name": "freeze-x7k2p", "namespace": "games", "creationTimestamp": "2026-01-02T09:55:00Z" },
        "spec": {
            "actionName": "freeze",
            "podSelection": { "podContainerSelector": { "podSelector": { "matchLabels": { "app": "arena" } } } }
        }
    });
    if !status.is_null() {
        hook["status"] = status;
    }
    serde_json::from_value(hook).unwrap()
}

/// Returns a status with this reason and message; `succeeded` is that of the condition, `Unknown` until the end.
pub(crate) fn status(succeeded: &str, reason: &str, message: &str) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-02T09:58:00Z" })
    };
    let is_complete = succeeded != "Unknown";
    let complete = if is_complete { "True" } else { "False" };
    let mut status =
        json!({ "conditions": [condition("Complete", complete), condition("Succeeded", succeeded)] });
    if is_complete {
        status["completionTime"] = json!("2026-01-02T09:59:00Z");
    }
    status
}

fn counted(mut status: Value, succeeded: usize, failed: &[&str]) -> ExecutionView {
    let failure = |pod: &&str| {
        json!({ "podName": pod, "containerName": "game", "succeed": false, "attempts": 2,
            "error": { "errorType": "Error", "reason": "ExitCode", "message": "exited with code 3" } })
    };
    status["startTime"] = json!("2026-01-02T09:57:00Z");
    status["total"] = json!(4);
    status["succeeded"] = json!(succeeded);
    status["failed"] = json!(failed.len());
    status["hookStatuses"] = failed.iter().map(failure).collect();
    ExecutionView::of(&hook(status))
}

/// Builds a hook without a status.
pub(crate) fn unseen() -> ExecutionView {
    ExecutionView::of(&hook(Value::Null))
}

/// Builds a hook that waits.
pub(crate) fn waiting(reason: &str, message: &str) -> ExecutionView {
    ExecutionView::of(&hook(status("Unknown", reason, message)))
}

/// Builds a hook that has ended before its start.
pub(crate) fn refused(reason: &str, message: &str) -> ExecutionView {
    ExecutionView::of(&hook(status("False", reason, message)))
}

/// Builds a hook that carries out its action, and failed in these pods.
pub(crate) fn executing(succeeded: usize, failed: &[&str]) -> ExecutionView {
    counted(status("Unknown", "Executing", "counts"), succeeded, failed)
}

/// Builds a hook that has ended, and failed in these pods.
pub(crate) fn failed(succeeded: usize, failed: &[&str]) -> ExecutionView {
    let message = format!("the action failed in {} of 4 containers", failed.len());
    counted(status("False", "ActionFailed", &message), succeeded, failed)
}
