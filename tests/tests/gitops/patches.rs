//! Compares the actions of Argo CD with the commands of the plugin, on copies of a workload that no operator works on.

use std::process::{Output, Stdio};

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use operator_tests::fleet::{GAME, game};
use operator_tests::{Fleet, merge};
use serde_json::{Map, Value, json};
use shared_api::GameDeployment;

use crate::argo;
use crate::seen::objects;

/// Annotation of `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Runs the plugin in a namespace.
pub(crate) async fn plugin(fleet: &Fleet<'_>, namespace: &str, words: &str) -> Output {
    let mut command = tokio::process::Command::new(crate::PLUGIN);
    let arguments = words.split_whitespace().chain(["-n", namespace]);
    command
        .args(arguments)
        .env("KUBECONFIG", fleet.control_plane.kubeconfig_path())
        .stdin(Stdio::null());
    command.output().await.unwrap()
}

/// Hooks of pods: the field of the spec, that of the status, and the value of `--hook`.
const POD_HOOKS: [(&str, &str, &str); 3] = [
    ("preDeleteUpdateStrategy", "preDeleteHookCondition", "pre-delete"),
    (
        "preInplaceUpdateStrategy",
        "preInplaceHookCondition",
        "pre-inplace",
    ),
    (
        "postInplaceUpdateStrategy",
        "postInplaceHookCondition",
        "post-inplace",
    ),
];

/// Asserts that each action is enabled exactly if the plugin does not refuse its command, and that it writes the same;
/// and that the health is that of `kubectl game status`.
///
/// `kubectl game retry` restarts an aborted rollout and reruns hooks of pods at once. Of the actions, `restart-rollout`
/// does the first and `retry` the second.
pub(crate) async fn compare(fleet: &Fleet<'_>, object: &Value) {
    let namespace = fleet.control_plane.namespace("gitops-copy").await;
    for action in ["abort", "pause", "promote", "resume"] {
        same(fleet, &namespace, object, &[action], &[action]).await;
    }
    let hooks = ended_hooks(object);
    if !can_restart(object) {
        same(fleet, &namespace, object, &["retry"], &["retry"]).await;
        is_disabled(object, "restart-rollout");
    } else if hooks.is_empty() {
        same(fleet, &namespace, object, &["restart-rollout"], &["retry"]).await;
        is_disabled(object, "retry");
    } else {
        let commands: Vec<String> = hooks.iter().map(|hook| format!("retry --hook {hook}")).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        same(fleet, &namespace, object, &["retry"], &commands).await;
        same(
            fleet,
            &namespace,
            object,
            &["restart-rollout", "retry"],
            &["retry"],
        )
        .await;
    }
    if can_restart(object) {
        only_restarts(object);
    }
    health(fleet, &namespace, object).await;
}

/// Returns whether the rollout was aborted or has exceeded its time, so that it can be restarted.
fn can_restart(object: &Value) -> bool {
    let status = &object["status"];
    let rollback = &status["rollback"];
    let aborted = rollback.is_object() && rollback["fromRevision"] == status["updateRevision"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    aborted
        || conditions.any(|condition| {
            condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded"
        })
}

/// Returns the values of `--hook` for hooks of pods that have ended.
fn ended_hooks(object: &Value) -> Vec<&'static str> {
    let has_ended = |pod: &Value| {
        ["Successful", "Failed", "Error", "Inconclusive"]
            .iter()
            .any(|phase| pod["phase"] == *phase)
    };
    let hooks = POD_HOOKS.into_iter().filter(|(strategy, pods, _)| {
        let mut pods = object["status"][pods].as_array().into_iter().flatten();
        object["spec"][strategy]["hook"].is_object() && pods.any(has_ended)
    });
    hooks.map(|(_, _, flag)| flag).collect()
}

/// Asserts that an action is disabled and refused.
#[track_caller]
fn is_disabled(object: &Value, action: &str) {
    assert!(!argo::actions(object)[action], "{action}: {object}");
    assert_eq!(argo::patch(object, action), None, "{action}: {object}");
}

/// Asserts that `restart-rollout` is enabled, and writes only the request and the end of the pause.
#[track_caller]
fn only_restarts(object: &Value) {
    assert!(argo::actions(object)["restart-rollout"], "{object}");
    let mut patch = argo::patch(object, "restart-rollout").unwrap();
    let request = patch["metadata"]["annotations"]["tkex.tencent.com/retry-requested"].take();
    assert!(request.as_str().unwrap().starts_with("rollout="), "{request}");
    let mut expected = json!({ "metadata": { "annotations": { "tkex.tencent.com/retry-requested": null } } });
    if patch.get("spec").is_some() {
        expected["spec"] = json!({ "updateStrategy": { "paused": null } });
    }
    assert_eq!(patch, expected);
}

/// Asserts that actions, one after another, are enabled exactly if the plugin does not refuse these commands, and that
/// they write the same.
async fn same(fleet: &Fleet<'_>, namespace: &str, object: &Value, actions: &[&str], commands: &[&str]) {
    let before = copy(fleet, namespace, object).await;
    let mut expected = before.clone();
    let mut enabled = true;
    for action in actions {
        enabled = argo::actions(&before)[*action];
        let patch = argo::patch(&expected, action);
        assert_eq!(enabled, patch.is_some(), "{action}: {patch:?}: {before}");
        apply(&mut expected, patch.unwrap_or(json!({})));
    }
    for command in commands {
        let output = plugin(fleet, namespace, &format!("{command} {GAME}")).await;
        assert_eq!(
            enabled,
            output.status.success(),
            "{command}: {output:?}: {before}"
        );
    }
    let games = objects::<GameDeployment>(fleet, namespace);
    let after = serde_json::to_value(games.get(GAME).await.unwrap()).unwrap();
    assert_eq!(written(&after), written(&expected), "{actions:?} {commands:?}");
    games.delete(GAME, &DeleteParams::default()).await.unwrap();
}

/// Asserts that the health is that of `kubectl game status`.
async fn health(fleet: &Fleet<'_>, namespace: &str, object: &Value) {
    let before = copy(fleet, namespace, object).await;
    let output = plugin(fleet, namespace, &format!("status {GAME} --watch=false")).await;
    let health = argo::health(&before).status;
    let expected: &[&str] = match output.status.code() {
        Some(0) => &["Healthy", "Suspended"],
        Some(1) => &["Degraded"],
        // The plugin also waits where a hook may recover.
        Some(3) => &["Progressing", "Suspended", "Degraded"],
        other => panic!("exit code {other:?}: {output:?}"),
    };
    assert!(
        expected.contains(&health.as_str()),
        "{health}: {output:?}: {before}"
    );
}

/// Creates a copy of a workload with its status, and returns it.
async fn copy(fleet: &Fleet<'_>, namespace: &str, object: &Value) -> Value {
    let games = objects::<GameDeployment>(fleet, namespace);
    let mut annotations = object["metadata"]["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(LAST_APPLIED);
    }
    let manifest = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": { "name": GAME, "annotations": annotations },
        "spec": object["spec"]
    });
    let manifest: DynamicObject = serde_json::from_value(manifest).unwrap();
    games.create(&PostParams::default(), &manifest).await.unwrap();
    if let Some(status) = object.get("status") {
        let mut status = status.clone();
        // A new object has generation 1.
        let is_current = status["observedGeneration"] == object["metadata"]["generation"];
        status["observedGeneration"] = if is_current { json!(1) } else { Value::Null };
        let patch = Patch::Merge(json!({ "status": status }));
        games
            .patch_status(GAME, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    serde_json::to_value(games.get(GAME).await.unwrap()).unwrap()
}

/// Applies a merge patch (RFC 7386).
fn apply(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, field) in fields {
        if field.is_null() {
            target.as_object_mut().unwrap().remove(&name);
        } else {
            apply(&mut target[name.as_str()], field);
        }
    }
}

/// Returns the fields that actions write. The text of a request after `=` is a time.
fn written(object: &Value) -> Value {
    let mut annotations = object["metadata"]["annotations"].clone();
    let texts = annotations.as_object_mut().into_iter().flat_map(Map::values_mut);
    for text in texts {
        let request = text.as_str().unwrap().rsplit_once('=');
        if let Some(request) = request.map(|(request, _)| json!(request)) {
            *text = request;
        }
    }
    json!({ "spec": object["spec"], "annotations": annotations })
}

/// Builds a workload in the middle of a rollout, with other fields of its spec and status.
fn rolling_out(spec: Value, status: Value) -> Value {
    let mut object = game(3, spec);
    object["metadata"]["generation"] = json!(3);
    object["status"] = json!({
        "observedGeneration": 3, "phase": "Progressing", "reason": "RollingOut",
        "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 1, "updatedReadyReplicas": 1,
        "updateRevision": "game-2", "currentRevision": "game-1",
        "conditions": [condition("Progressing", "True", "RollingOut")]
    });
    merge(&mut object["status"], status);
    object
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "the cause",
        "lastTransitionTime": "2026-01-02T10:00:00Z"
    })
}

/// Builds the spec of a canary whose second step pauses, and the status at this step.
fn at_pause(pause: Value, paused: bool, reason: &str) -> (Value, Value) {
    let steps = json!([{ "partition": 2 }, { "pause": pause }]);
    let spec = json!({ "updateStrategy": { "canary": { "steps": steps }, "paused": paused } });
    let status = json!({
        "currentStepIndex": 1, "pauseConditions": [{ "reason": reason, "startTime": "2026-01-02T10:00:00Z" }]
    });
    (spec, status)
}

/// Builds the status of an aborted rollout.
fn rolled_back(more: Value) -> Value {
    let mut rollback =
        json!({ "fromRevision": "game-2", "toRevision": "game-1", "reason": "RolloutAborted" });
    merge(&mut rollback, more);
    let blocked = json!([
        condition("Progressing", "False", "RolloutAborted"),
        condition("UpdateBlocked", "True", "RolloutAborted")
    ]);
    json!({ "phase": "Blocked", "reason": "RolloutAborted", "rollback": rollback, "conditions": blocked })
}

/// Builds a spec with hooks of pods and of the rollout.
fn with_hooks() -> Value {
    let hook = json!({ "hook": { "templateName": "empty" } });
    let smoke =
        json!({ "name": "smoke", "trigger": { "type": "Post" }, "hook": { "templateName": "empty" } });
    json!({ "preDeleteUpdateStrategy": hook, "postInplaceUpdateStrategy": hook, "lifecycleHooks": [smoke] })
}

/// Builds the status of a rollout that exceeded its time limit.
fn exceeded() -> Value {
    json!({ "conditions": [
        condition("Progressing", "False", "ProgressDeadlineExceeded"),
        condition("UpdateBlocked", "True", "ProgressDeadlineExceeded")
    ] })
}

#[tokio::test]
async fn a_pause_is_ended_by_the_same_actions_as_commands() {
    let fleet = crate::fleet().await;
    compare(&fleet, &rolling_out(json!({}), json!({}))).await;
    let paused = json!({ "updateStrategy": { "paused": true } });
    compare(&fleet, &rolling_out(paused, json!({}))).await;
    for pause in [json!({}), json!({ "duration": 600 })] {
        for paused in [true, false] {
            for reason in ["PausedByCanaryPauseStep", "PausedByStepBasedHook"] {
                let (spec, status) = at_pause(pause.clone(), paused, reason);
                compare(&fleet, &rolling_out(spec, status)).await;
            }
        }
    }
    // The operator has not observed the newest spec, or nothing yet.
    let (spec, mut status) = at_pause(json!({}), true, "PausedByCanaryPauseStep");
    status["observedGeneration"] = json!(2);
    let mut object = rolling_out(spec, status);
    compare(&fleet, &object).await;
    object.as_object_mut().unwrap().remove("status");
    compare(&fleet, &object).await;
}

#[tokio::test]
async fn a_rollout_is_aborted_where_the_command_aborts_it() {
    let fleet = crate::fleet().await;
    let invalid = json!([condition("InvalidSpec", "True", "InvalidSpec")]);
    let unrecorded = json!([condition("UpdateBlocked", "True", "RevisionNotRecorded")]);
    let stalled = json!([condition("UpdateBlocked", "True", "InPlaceStalled")]);
    for status in [
        json!({ "currentRevision": "game-2" }),
        json!({ "currentRevision": null }),
        json!({ "currentRevision": null, "canary": { "revision": "game-1" } }),
        json!({ "currentRevision": null, "canary": { "revision": "game-2" } }),
        json!({ "updateRevision": null }),
        json!({ "conditions": invalid }),
        json!({ "conditions": unrecorded }),
        json!({ "conditions": stalled }),
    ] {
        compare(&fleet, &rolling_out(json!({}), status)).await;
    }
    let recreate = json!({ "updateStrategy": { "type": "Recreate" } });
    compare(&fleet, &rolling_out(recreate, json!({}))).await;
}

#[tokio::test]
async fn an_aborted_rollout_is_retried_like_by_the_command() {
    let fleet = crate::fleet().await;
    let handled = json!({ "tkex.tencent.com/retry-requested": "rollout=1" });
    for rollback in [
        json!({}),
        json!({ "lastHandledRetry": "rollout=1" }),
        json!({ "fromRevision": "game-0" }),
    ] {
        let mut object = rolling_out(json!({}), rolled_back(rollback));
        compare(&fleet, &object).await;
        object["metadata"]["annotations"] = handled.clone();
        compare(&fleet, &object).await;
    }
    for ignores in [true, false] {
        let paused = json!({ "updateStrategy": { "paused": true } });
        let status = rolled_back(json!({ "ignoresPause": ignores }));
        compare(&fleet, &rolling_out(paused, status)).await;
    }
}

#[tokio::test]
async fn hooks_are_retried_like_by_the_command() {
    let fleet = crate::fleet().await;
    let spec = with_hooks();
    let pod = |name: &str, phase: &str| json!({ "podName": name, "phase": phase });
    let pods = |phase: &str| json!([pod("game-a", "Running"), pod("game-b", phase)]);
    let lifecycle =
        |phase: &str| json!([{ "name": "smoke", "revision": "game-2", "phase": phase, "attempts": 1 }]);
    for status in [
        json!({ "preDeleteHookCondition": pods("Failed") }),
        json!({ "preDeleteHookCondition": pods("Running") }),
        json!({ "preDeleteHookCondition": pods("Error"), "postInplaceHookCondition": pods("Inconclusive") }),
        // The spec has no such hook any more.
        json!({ "preInplaceHookCondition": pods("Failed") }),
        json!({ "lifecycleHooks": lifecycle("Failed") }),
        json!({ "lifecycleHooks": lifecycle("Waiting") }),
        json!({ "lifecycleHooks": lifecycle("Successful") }),
        json!({ "lifecycleHooks": lifecycle("Error"), "postInplaceHookCondition": pods("Failed") }),
        exceeded(),
    ] {
        compare(&fleet, &rolling_out(spec.clone(), status)).await;
    }
    // The spec has no lifecycle hook any more.
    let status = json!({ "lifecycleHooks": lifecycle("Failed") });
    compare(&fleet, &rolling_out(json!({}), status)).await;
}

/// To rerun the hook of a pod must not restart the bad version.
#[tokio::test]
async fn a_hook_is_retried_without_the_rollout_that_was_aborted() {
    let fleet = crate::fleet().await;
    let spec = with_hooks();
    let lifecycle = json!([{ "name": "smoke", "revision": "game-2", "phase": "Failed", "attempts": 1 }]);
    let pods = json!([{ "podName": "game-a", "phase": "Failed" }]);
    let pre_delete = json!({ "preDeleteHookCondition": pods });
    let both = json!({ "preDeleteHookCondition": pods, "postInplaceHookCondition": pods });
    for status in [rolled_back(json!({})), exceeded()] {
        for ended in [&json!({}), &pre_delete, &both] {
            let mut status = status.clone();
            merge(&mut status, json!({ "lifecycleHooks": lifecycle }));
            merge(&mut status, ended.clone());
            compare(&fleet, &rolling_out(spec.clone(), status)).await;
        }
    }
    let mut paused = spec;
    merge(&mut paused, json!({ "updateStrategy": { "paused": true } }));
    let mut status = rolled_back(json!({ "ignoresPause": true }));
    merge(&mut status, pre_delete);
    compare(&fleet, &rolling_out(paused, status)).await;
}
