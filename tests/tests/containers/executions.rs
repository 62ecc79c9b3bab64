//! ExecutionHooks: an action in selected containers, and what its status says of each.

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use operator_tests::fleet::{GAME, Who, game};
use operator_tests::hook_rights::grant_exec;
use operator_tests::{Fleet, SOON, assert_has, kubectl};
use serde_json::{Value, json};
use shared_api::execution_hook::{ContainerHookStatus, ErrorType};
use shared_api::{ExecutionHook, ExecutionHookStatus};
use test_kit::eventually;
use test_kit::node::{Exec, PodView};

use crate::{hooks_with, ungranted_with};

const FLAGS: [&str; 1] = ["--execution-hooks"];

/// Fleet whose namespace lets hooks run commands.
async fn fleet(name: &str) -> Option<Fleet<'static>> {
    let fleet = ungranted_with(name, &FLAGS).await?;
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    Some(fleet)
}

pub(crate) fn hooks(fleet: &Fleet<'_>) -> Api<ExecutionHook> {
    Api::namespaced(fleet.client(), &fleet.namespace)
}

/// Creates a HookAction that runs `game-server freeze`.
pub(crate) fn action(fleet: &Fleet<'_>, name: &str, more: Value) {
    let mut action = json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "HookAction", "metadata": { "name": name },
        "action": { "exec": { "command": ["game-server", "freeze"] } } });
    operator_tests::merge(&mut action, more);
    fleet.apply(&action);
}

/// Creates a hook for all pods of the game.
pub(crate) async fn create(fleet: &Fleet<'_>, name: &str, more: Value) -> ExecutionHook {
    let mut spec = json!({ "actionName": "freeze",
        "podSelection": { "podContainerSelector": { "podSelector": { "matchLabels": { "app": GAME } } } } });
    operator_tests::merge(&mut spec, more);
    let hook = ExecutionHook::new(name, serde_json::from_value(spec).unwrap());
    hooks(fleet).create(&PostParams::default(), &hook).await.unwrap()
}

pub(crate) async fn until(
    fleet: &Fleet<'_>,
    name: &str,
    wanted: impl Fn(&ExecutionHookStatus) -> bool,
) -> ExecutionHookStatus {
    eventually(SOON, || async {
        let hook = hooks(fleet).get(name).await.map_err(|error| error.to_string())?;
        let status = hook.status.unwrap_or_default();
        if wanted(&status) {
            Ok(status)
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await
}

pub(crate) async fn complete(fleet: &Fleet<'_>, name: &str) -> ExecutionHookStatus {
    until(fleet, name, |status| status.completion_time.is_some()).await
}

/// Returns the status, reason and message of a condition.
pub(crate) fn condition<'s>(status: &'s ExecutionHookStatus, kind: &str) -> (&'s str, &'s str, &'s str) {
    let found = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == kind)
        .unwrap();
    (&found.status, &found.reason, &found.message)
}

async fn servers(fleet: &Fleet<'_>, count: usize) -> Vec<PodView> {
    fleet.launch(&game(count, json!({}))).await;
    fleet.nodes.await_ready(count, SOON).await.unwrap()
}

#[tokio::test]
async fn the_action_is_carried_out_once_in_each_selected_container() {
    let Some(fleet) = fleet("eh-all").await else {
        return;
    };
    let pods = servers(&fleet, 3).await;
    fleet
        .nodes
        .every_pod()
        .on_exec(Exec::exits(0).stdout("of-the-server"));
    // The hook waits for its action.
    create(&fleet, "freeze-1", json!({})).await;
    let status = until(&fleet, "freeze-1", |status| !status.conditions.is_empty()).await;
    let (complete_is, reason, message) = condition(&status, "Complete");
    assert_eq!((complete_is, reason), ("False", "ActionNotFound"));
    assert_has(message, "HookAction freeze does not exist in this namespace");
    assert_eq!(condition(&status, "Succeeded").0, "Unknown");
    fleet.told("HookAction freeze does not exist").await;
    assert_eq!(fleet.nodes.commands(), []);

    action(&fleet, "freeze", json!({}));
    let waits = [
        "wait",
        "executionhook/freeze-1",
        "--for=condition=Complete",
        "--timeout=60s",
        "-n",
        &fleet.namespace,
    ];
    let _ = kubectl(fleet.control_plane, &waits, "");
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!(
        (status.total, status.active, status.succeeded, status.failed),
        (3, 0, 3, 0)
    );
    let (succeeded, reason, message) = condition(&status, "Succeeded");
    assert_eq!(
        (succeeded, reason, message),
        (
            "True",
            "ActionSucceeded",
            "the action succeeded in 3 of 3 containers"
        )
    );
    for pod in &pods {
        let entry = status
            .hook_statuses
            .iter()
            .find(|entry| entry.pod_name == pod.name)
            .unwrap();
        assert_eq!(entry.pod_uid.as_deref(), Some(pod.uid.as_str()));
        assert_eq!(
            (entry.container_name.as_str(), entry.succeed, entry.attempts),
            ("game", Some(true), 1)
        );
        assert!(entry.timestamp.unwrap() >= status.start_time.unwrap());
    }
    let calls = fleet.nodes.commands();
    assert_eq!(calls.len(), 3);
    for call in &calls {
        assert_eq!(call.argv, ["game-server", "freeze"]);
    }
    let text = serde_json::to_string(&status).unwrap();
    assert!(!text.contains("of-the-server"), "output is in no status: {text}");
    let columns = ["get", "eh", "freeze-1", "-n", &fleet.namespace];
    let shown = kubectl(fleet.control_plane, &columns, "");
    assert_has(
        &shown.split_whitespace().collect::<Vec<_>>().join(" "),
        "ACTION SUCCEEDED FAILED TOTAL REASON AGE freeze-1 freeze 3 0 3 ActionSucceeded",
    );
}

fn entry<'s>(status: &'s ExecutionHookStatus, pod: &str) -> &'s ContainerHookStatus {
    status
        .hook_statuses
        .iter()
        .find(|entry| entry.pod_name == pod)
        .unwrap()
}

#[tokio::test]
async fn each_container_is_tried_again_until_its_time_is_over() {
    let Some(fleet) = fleet("eh-retry").await else {
        return;
    };
    let pods = servers(&fleet, 3).await;
    let [soon, never, hangs] = [&pods[0].name, &pods[1].name, &pods[2].name];
    fleet
        .nodes
        .pod(soon)
        .on_exec(Exec::exits(3).stderr("of-the-server").then(Exec::exits(0)));
    fleet
        .nodes
        .pod(never)
        .on_exec(Exec::exits(4).stderr("of-the-server"));
    fleet.nodes.pod(hangs).on_exec(Exec::hangs());
    action(
        &fleet,
        "freeze",
        json!({ "actionTimeoutSeconds": 5, "callTimeoutSeconds": 2 }),
    );
    create(&fleet, "freeze-1", json!({})).await;
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!((status.total, status.succeeded, status.failed), (3, 1, 2));
    let (_, reason, message) = condition(&status, "Complete");
    assert_eq!(reason, "ActionFailed");
    assert_has(message, "the action failed in 2 of 3 containers: ");
    assert_eq!(
        (entry(&status, soon).succeed, entry(&status, soon).attempts),
        (Some(true), 2)
    );
    for (pod, wanted) in [(never, "exited with code 4"), (hangs, "did not finish within")] {
        let entry = entry(&status, pod);
        let error = entry.error.as_ref().unwrap();
        assert_eq!(
            (entry.succeed, error.error_type),
            (Some(false), ErrorType::Timeout),
            "{pod}"
        );
        assert_has(error.message.as_deref().unwrap(), wanted);
        assert!(entry.attempts > 1, "{entry:?}");
    }
    fleet.told("the action failed in 2 of 3 containers").await;
    let text = serde_json::to_string(&status).unwrap();
    assert!(!text.contains("of-the-server"), "{text}");
    let of = |pod: &str| {
        fleet
            .nodes
            .commands()
            .into_iter()
            .filter(|call| call.pod == pod)
            .count()
    };
    assert_eq!(
        (of(soon), of(never)),
        (2, usize::try_from(entry(&status, never).attempts).unwrap())
    );
}

#[tokio::test]
async fn pods_by_name_are_looked_up_and_one_that_is_replaced_is_not_followed() {
    let Some(fleet) = fleet("eh-names").await else {
        return;
    };
    let pods = servers(&fleet, 2).await;
    let [stays, goes] = [&pods[0].name, &pods[1].name];
    fleet.nodes.pod(stays).on_exec(Exec::exits(0));
    fleet.nodes.pod(goes).on_exec(Exec::exits(1));
    action(&fleet, "freeze", json!({ "quoteAnswers": true }));
    let names = json!([
        { "podName": stays }, { "podName": goes, "containerNames": ["game"] },
        { "podName": stays.replace(GAME, "nobody"), "containerNames": ["game"] },
    ]);
    create(
        &fleet,
        "freeze-1",
        json!({ "podSelection": { "podContainerNamesList": names } }),
    )
    .await;
    let tried = |status: &ExecutionHookStatus| {
        status.total == 3 && status.hook_statuses.iter().all(|entry| entry.attempts > 0)
    };
    let status = until(&fleet, "freeze-1", tried).await;
    assert_eq!((status.total, status.succeeded), (3, 1));
    assert_eq!(entry(&status, stays).container_name, "game");
    assert_has(
        entry(&status, &stays.replace(GAME, "nobody"))
            .error
            .as_ref()
            .unwrap()
            .message
            .as_deref()
            .unwrap(),
        &format!("pod {} does not exist", stays.replace(GAME, "nobody")),
    );
    fleet.delete_pod(goes).await;
    let status = until(&fleet, "freeze-1", |status| entry(status, goes).succeed.is_some()).await;
    let gone = entry(&status, goes);
    let error = gone.error.as_ref().unwrap();
    assert_eq!(
        (gone.succeed, error.error_type),
        (Some(false), ErrorType::NotFound),
        "{gone:?}"
    );
    // A hook without a time limit ends when somebody says so.
    let patch = Patch::Merge(json!({ "spec": { "terminate": true } }));
    hooks(&fleet)
        .patch("freeze-1", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!((status.succeeded, status.failed), (1, 2));
    assert_eq!(condition(&status, "Complete").1, "HookTerminated");
}

#[tokio::test]
async fn a_hook_needs_the_flag_and_the_grant_of_its_namespace() {
    let Some(mut fleet) = ungranted_with("eh-rights", &FLAGS).await else {
        return;
    };
    let pods = servers(&fleet, 1).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    action(&fleet, "freeze", json!({}));
    create(&fleet, "by-label", json!({})).await;
    let status = until(&fleet, "by-label", |status| !status.conditions.is_empty()).await;
    let (_, reason, message) = condition(&status, "Complete");
    assert_eq!(reason, "PodsNotListed");
    assert_has(
        message,
        "failed to list pods as ServiceAccount hookgate-hooks: pods is forbidden",
    );
    let names = json!([{ "podName": pods[0].name, "containerNames": ["game"] }]);
    create(
        &fleet,
        "by-name",
        json!({ "podSelection": { "podContainerNamesList": names } }),
    )
    .await;
    let refused =
        |status: &ExecutionHookStatus| status.hook_statuses.iter().any(|entry| entry.error.is_some());
    let status = until(&fleet, "by-name", refused).await;
    assert_eq!(
        status.hook_statuses[0].error.as_ref().unwrap().error_type,
        ErrorType::Forbidden
    );
    assert_eq!(fleet.nodes.commands(), []);
    grant_exec(fleet.control_plane, &fleet.namespace).await;
    for name in ["by-label", "by-name"] {
        let status = complete(&fleet, name).await;
        assert_eq!((status.succeeded, status.failed), (1, 0), "{status:?}");
    }
    let start = hooks_with(&fleet, &[]).await;
    fleet.start(Who::Hooks, &start).await;
    create(&fleet, "off", json!({ "ttlSecondsAfterFinished": 2 })).await;
    let status = complete(&fleet, "off").await;
    let (succeeded, reason, message) = condition(&status, "Succeeded");
    assert_eq!((succeeded, reason), ("False", "ExecutionHooksDisabled"));
    assert_has(message, "--execution-hooks");
    assert_eq!(fleet.nodes.commands().len(), 2);
    // A finished hook is deleted after its time to live.
    eventually(SOON, || async {
        match hooks(&fleet).get_opt("off").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The next process asks only the containers without a recorded success.
#[tokio::test]
async fn a_container_that_has_succeeded_is_not_asked_again_after_a_restart() {
    let Some(mut fleet) = fleet("eh-killed").await else {
        return;
    };
    let pods = servers(&fleet, 3).await;
    fleet.nodes.every_pod().on_exec(Exec::exits(0));
    let slow = &pods[2].name;
    fleet.nodes.pod(slow).on_exec(Exec::hangs().then(Exec::exits(0)));
    action(&fleet, "freeze", json!({ "callTimeoutSeconds": 600 }));
    create(&fleet, "freeze-1", json!({})).await;
    until(&fleet, "freeze-1", |status| status.succeeded == 2).await;
    fleet.hooks.as_mut().unwrap().process.kill_hard().unwrap();
    let start = hooks_with(&fleet, &FLAGS).await;
    fleet.start(Who::Hooks, &start).await;
    let status = complete(&fleet, "freeze-1").await;
    assert_eq!((status.succeeded, status.failed), (3, 0));
    let of = |pod: &str| {
        fleet
            .nodes
            .commands()
            .into_iter()
            .filter(|call| call.pod == pod)
            .count()
    };
    assert_eq!((of(&pods[0].name), of(&pods[1].name), of(slow)), (1, 1, 2));

    // A HookAction that is changed while the hook runs ends it: its author may be another one.
    fleet.nodes.pod(slow).on_exec(Exec::hangs());
    create(&fleet, "freeze-2", json!({})).await;
    until(&fleet, "freeze-2", |status| status.succeeded == 2).await;
    action(
        &fleet,
        "freeze",
        json!({ "action": { "exec": { "command": ["game-server", "wipe"] } } }),
    );
    fleet.hooks.as_mut().unwrap().process.kill_hard().unwrap();
    let start = hooks_with(&fleet, &FLAGS).await;
    fleet.start(Who::Hooks, &start).await;
    let status = complete(&fleet, "freeze-2").await;
    assert_eq!((status.succeeded, status.failed), (2, 1));
    assert_eq!(condition(&status, "Complete").1, "ActionChanged");
    assert!(
        fleet
            .nodes
            .commands()
            .iter()
            .all(|call| call.argv == ["game-server", "freeze"])
    );
}
