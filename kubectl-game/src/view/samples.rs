//! Sample workloads for tests: three pods, one of which is selected for deletion, with its HookRun in various
//! states.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared_api::names::pod::REMOVAL_REQUESTED;
use shared_api::names::workload::ASK_BEFORE_REMOVAL;
use shared_api::removal_request::{RemovalRequests, RemovalType};
use shared_api::{GameDeployment, HookRun};

use crate::cluster::{ListResult, Snapshot};

/// Returns the current time of all views.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T10:00:00Z".parse().unwrap()
}

const RUN: &str = "pre-delete-hook-arena-7d4b9c-x7k2p-empty";
const NOTICE: &str = "notice-hook-arena-7d4b9c-x7k2p-finish-0123456789abcdef";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 3,
        "lastTransitionTime": "2026-01-02T09:58:00Z"
    })
}

fn available(pods: usize) -> Value {
    let message = format!("at least {pods} pods are available");
    condition("Available", "True", "MinimumPodsAvailable", &message)
}

/// Builds a workload with these conditions and extra status fields.
pub(crate) fn game(conditions: &Value, extra: Value) -> GameDeployment {
    let mut status = json!({
        "observedGeneration": 3, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
        "updatedReadyReplicas": 3, "updateRevision": "arena-7d4b9c", "currentRevision": "arena-7d4b9c",
        "conditions": conditions
    });
    merge(&mut status, extra);
    read(json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": {
            "name": "arena", "namespace": "games", "uid": "u-arena", "generation": 3, "resourceVersion": "7",
            "creationTimestamp": "2025-12-31T10:00:00Z"
        },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "arena" } }, "template": template("game:v2"),
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": "20%" },
            "preDeleteUpdateStrategy": { "hook": { "templateName": "empty" } }
        },
        "status": status
    }))
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "arena" } },
        "spec": { "containers": [{ "name": "game", "image": image }] }
    })
}

fn owner() -> Value {
    json!({ "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": "arena", "uid": "u-arena" })
}

/// Builds a ready pod of the workload.
pub(crate) fn pod(name: &str, revision: &str, annotations: Value) -> k8s_openapi::api::core::v1::Pod {
    let instance = name.rsplit('-').next().unwrap();
    let mut owner = owner();
    owner["controller"] = json!(true);
    read(json!({
        "metadata": {
            "name": name, "namespace": "games", "uid": format!("u-{instance}"), "annotations": annotations,
            "creationTimestamp": "2026-01-01T22:00:00Z",
            "labels": { "app": "arena", "controller-revision-hash": revision },
            "ownerReferences": [owner]
        },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "game", "image": "game:v2" }] },
        "status": {
            "phase": "Running", "podIP": "10.0.0.7",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T22:00:09Z" }],
            "containerStatuses": [{
                "name": "game", "image": "game:v2", "imageID": "i", "containerID": "c", "ready": true,
                "restartCount": 0, "state": { "running": { "startedAt": "2026-01-01T22:00:05Z" } }
            }]
        }
    }))
}

/// Builds a HookRun for a pod.
pub(crate) fn run(spec: Value, status: Value) -> HookRun {
    read(json!({
        "metadata": {
            "name": RUN, "namespace": "games", "uid": "u-run", "creationTimestamp": "2026-01-02T09:58:00Z",
            "labels": {
                "hookrun-type": "pre-delete-step", "tkex.tencent.com/pod-uid": "u-x7k2p", "instance-id": "x7k2p"
            },
            "annotations": { "tkex.tencent.com/intent": "delete" },
            "ownerReferences": [owner()]
        },
        "spec": spec, "status": status
    }))
}

/// Builds the spec of the runs, with one metric.
pub(crate) fn players(extra: Value) -> Value {
    let mut metric = json!({
        "name": "players", "successCondition": "asInt(result) == 0",
        "provider": { "web": { "url": "http://10.0.0.7:9091", "jsonPath": "{$.players}" } }
    });
    merge(&mut metric, extra);
    json!({ "args": [{ "name": "PodName", "value": "arena-x7k2p" }], "metrics": [metric] })
}

fn revision(number: i64, name: &str, image: &str) -> k8s_openapi::api::apps::v1::ControllerRevision {
    let mut template = template(image);
    template["$patch"] = json!("replace");
    read(json!({
        "metadata": {
            "name": name, "namespace": "games", "creationTimestamp": format!("2026-01-0{number}T08:00:00Z"),
            "ownerReferences": [owner()]
        },
        "revision": number, "data": { "spec": { "template": template } }
    }))
}

/// Builds a snapshot of the workload with its three pods and these runs.
pub(crate) fn snapshot(game: GameDeployment, runs: Vec<HookRun>) -> Snapshot {
    let chosen = json!({
        "io.tencent.bcs.dev/game-pod-deleting": "true", "tkex.tencent.com/chosen-for": "delete@2026-01-02T09:58:00Z"
    });
    let pods = vec![
        pod("arena-x7k2p", "arena-7d4b9c", chosen),
        pod("arena-b4n8c", "arena-7d4b9c", json!({})),
        pod("arena-q9w5d", "arena-7d4b9c", json!({})),
    ];
    let revisions = vec![
        revision(2, "arena-7d4b9c", "game:v2"),
        revision(1, "arena-5f6d8b", "game:v1"),
    ];
    let runs = ListResult {
        objects: runs,
        ..ListResult::default()
    };
    let mut snapshot = Snapshot::of(game, pods, runs, revisions, "");
    snapshot.now = now();
    snapshot
}

/// Builds the status entry of a pod that waits, and the number of such pods. `reason` is empty while the hook runs
/// without trouble.
fn waits(phase: &str, run: Option<&str>, reason: &str, message: &str) -> Value {
    let mut entry = json!({
        "podName": "arena-x7k2p", "phase": phase, "startTime": "2026-01-02T09:58:00Z", "message": message
    });
    if let Some(run) = run {
        entry["hookRun"] = json!(run);
    }
    if !reason.is_empty() {
        entry["reason"] = json!(reason);
    }
    json!({ "preDeleteHookCondition": [entry], "hookPendingReplicas": 1 })
}

const SCALING: &str = "deleting 1 pod";

/// Builds the conditions of a workload that cannot delete a pod, with this reason and this remedy.
fn scaling_blocked(reason: &str, message: &str, remedy: &str) -> Value {
    let message = format!("pod arena-x7k2p: {message}{remedy}");
    json!([
        available(1),
        condition("Progressing", "True", "Scaling", SCALING),
        condition("ScaleBlocked", "True", reason, &message),
    ])
}

/// Builds a snapshot whose hook failed.
pub(crate) fn refused() -> Snapshot {
    let said = "metric players Failed: \"3\" does not satisfy asInt(result) == 0 (1 failed > failureLimit 0)";
    let metric = json!({
        "name": "players", "phase": "Failed", "count": 1, "failed": 1, "measurements": [{
            "phase": "Failed", "value": "3", "startedAt": "2026-01-02T09:58:00Z",
            "finishedAt": "2026-01-02T09:58:00.012Z"
        }]
    });
    ended("Failed", "FailureLimitExceeded", said, metric)
}

/// Builds a snapshot whose hook ended without success, with this metric result.
pub(crate) fn ended(phase: &str, reason: &str, said: &str, metric: Value) -> Snapshot {
    let message = format!("HookRun {RUN} is {phase}: {said}; the pod is kept");
    let remedy = ". To rerun the hook, set spec.preDeleteUpdateStrategy.retry to true or delete the HookRun";
    let conditions = scaling_blocked("HookUnsuccessful", &message, remedy);
    let status = json!({
        "phase": phase, "reason": reason, "message": said, "startedAt": "2026-01-02T09:58:00Z",
        "completedAt": "2026-01-02T09:58:01Z", "metricResults": [metric]
    });
    let game = game(&conditions, waits(phase, Some(RUN), "HookUnsuccessful", &message));
    snapshot(game, vec![run(players(json!({})), status)])
}

/// Builds a snapshot whose hook ended because of an error, with this reason of its measurement.
pub(crate) fn ended_in_error(reason: &str, message: &str) -> Snapshot {
    let said = format!("metric players Error: {message} (5 consecutive errors > consecutiveErrorLimit 4)");
    ended(
        "Error",
        "ErrorLimitExceeded",
        &said,
        errors("Error", 5, reason, message),
    )
}

/// Builds the result of a metric with errors, the last one with this reason.
fn errors(phase: &str, count: i64, reason: &str, message: &str) -> Value {
    json!({
        "name": "players", "phase": phase, "error": count, "consecutiveError": count, "measurements": [{
            "phase": "Error", "reason": reason, "message": message, "startedAt": "2026-01-02T09:59:56Z",
            "finishedAt": "2026-01-02T09:59:56Z"
        }]
    })
}

/// Builds a snapshot whose hook runs and brings errors: `reason` is that of the HookRun, and `measurement` that of the
/// last measurement. With `Measuring` the errors are too few for the operator to report them.
pub(crate) fn erroring(reason: &str, measurement: &str, message: &str) -> Snapshot {
    let is_reported = reason != "Measuring";
    let count = if is_reported { 160 } else { 3 };
    let status = json!({
        "phase": "Running", "reason": reason, "startedAt": "2026-01-02T09:58:00Z",
        "message": format!("metric players: last measurement Error: {message} ({count} consecutive errors)"),
        "metricResults": [errors("Running", count, measurement, message)]
    });
    let run = run(players(json!({ "interval": "3s", "successfulLimit": 1 })), status);
    let game = if is_reported {
        let message = format!("HookRun {RUN} keeps failing with errors: metric players: {message}");
        let conditions = scaling_blocked(reason, &message, "");
        game(&conditions, waits("Running", Some(RUN), reason, &message))
    } else {
        let message = format!("waiting for the verdict of HookRun {RUN}");
        let conditions = json!([available(1), condition("Progressing", "True", "Scaling", SCALING)]);
        game(&conditions, waits("Running", Some(RUN), "", &message))
    };
    snapshot(game, vec![run])
}

/// Builds a snapshot whose hook has no success limit, and thus cannot succeed.
pub(crate) fn endless() -> Snapshot {
    let said = "metric players has neither count, successfulLimit nor consecutiveSuccessfulLimit, so it can never \
                succeed";
    let status = json!({
        "phase": "Running", "reason": "HookCannotSucceed", "startedAt": "2026-01-02T09:58:00Z", "message": said,
        "metricResults": [{
            "name": "players", "phase": "Running", "count": 12, "successful": 12, "consecutiveSuccessful": 12,
            "measurements": [{
                "phase": "Successful", "value": "0", "startedAt": "2026-01-02T09:59:56Z",
                "finishedAt": "2026-01-02T09:59:56Z"
            }]
        }]
    });
    let message = format!("HookRun {RUN} cannot succeed: {said}");
    let conditions = scaling_blocked("HookCannotSucceed", &message, "");
    let game = game(
        &conditions,
        waits("Running", Some(RUN), "HookCannotSucceed", &message),
    );
    snapshot(game, vec![run(players(json!({ "interval": "3s" })), status)])
}

/// Turns the one waiting pod of a snapshot into this many, all with the same cause: `arena-0`, `arena-1` and so on.
pub(crate) fn many(mut snapshot: Snapshot, count: usize) -> Snapshot {
    let status = snapshot.game.status.as_mut().unwrap();
    let entry = status.pre_delete_hook_condition.remove(0);
    let run = snapshot.runs.pop();
    for number in 0..count {
        let name = format!("arena-{number}");
        let mut entry = entry.clone();
        entry.pod_name.clone_from(&name);
        if let Some(mut run) = run.clone() {
            let of_pod = format!("pre-delete-hook-{name}");
            entry.hook_run = Some(of_pod.clone());
            run.metadata.name = Some(of_pod);
            let uid = format!("u-{number}");
            run.labels_mut()
                .insert("tkex.tencent.com/pod-uid".to_owned(), uid);
            snapshot.runs.push(run);
        }
        status.pre_delete_hook_condition.push(entry);
        snapshot.pods.push(pod(&name, "arena-7d4b9c", json!({})));
    }
    status.hook_pending_replicas = i32::try_from(count).unwrap();
    snapshot
}

/// Builds a snapshot whose hook is running.
pub(crate) fn running() -> Snapshot {
    let message = format!("waiting for the verdict of HookRun {RUN}");
    let words = format!("{SCALING}; running the hook of arena-x7k2p");
    let conditions = json!([available(1), condition("Progressing", "True", "Scaling", &words)]);
    let status = json!({
        "phase": "Running", "reason": "Measuring", "startedAt": "2026-01-02T09:58:00Z",
        "message": "metric players: last measurement Failed: \"3\" does not satisfy asInt(result) == 0",
        "metricResults": [{
            "name": "players", "phase": "Running", "count": 13, "failed": 12, "successful": 1, "error": 1,
            "consecutiveSuccessful": 0, "measurements": [{
                "phase": "Failed", "value": "3", "startedAt": "2026-01-02T09:59:56Z",
                "finishedAt": "2026-01-02T09:59:56Z"
            }]
        }]
    });
    let spec = players(json!({ "interval": "10s", "consecutiveSuccessfulLimit": 2 }));
    let game = game(&conditions, waits("Running", Some(RUN), "", &message));
    snapshot(game, vec![run(spec, status)])
}

/// Builds a snapshot that searches for idle pods: one pod is selected, one more is needed, and the other two are
/// candidates, whose hooks run.
pub(crate) fn searching() -> Snapshot {
    let mut snapshot = running();
    let spec = &mut snapshot.game.spec;
    spec.replicas = Some(1);
    spec.scale_strategy = Some(read(json!({ "selectionPolicy": "FirstIdle" })));
    let status = snapshot.game.status.get_or_insert_default();
    status.first_idle = Some(read(
        json!({ "scale": { "candidates": 2, "selected": 1, "needed": 1 } }),
    ));
    for condition in &mut status.conditions {
        if condition.reason == "Scaling" {
            "deleting 2 pods; running the hook of arena-x7k2p; waiting for 1 more idle pod: running the hooks of 2 \
             candidates"
                .clone_into(&mut condition.message);
        }
    }
    let scouts = ["b4n8c", "q9w5d"].map(|instance| scout(&snapshot.runs[0], instance));
    snapshot.runs.extend(scouts);
    snapshot
}

/// Builds a snapshot that searches for idle pods to update in place: one of three pods is updated, one more can be
/// updated, and the other two are candidates, whose hooks run.
pub(crate) fn searching_to_update() -> Snapshot {
    let words =
        "1 of 3 pods are updated; waiting for 1 more idle pod to update: running the hooks of 2 candidates";
    let mut snapshot = with_condition("Progressing", "True", "RollingOut", words);
    let spec = &mut snapshot.game.spec;
    let strategy = spec.update_strategy.get_or_insert_default();
    strategy.selection_policy = Some("FirstIdle".to_owned());
    spec.pre_inplace_update_strategy = spec.pre_delete_update_strategy.clone();
    let status = snapshot.game.status.get_or_insert_default();
    status.updated_replicas = 1;
    status.first_idle = Some(read(
        json!({ "update": { "candidates": 2, "selected": 0, "needed": 1 } }),
    ));
    for pod in &mut snapshot.pods {
        let is_updated = pod.name_any() == "arena-x7k2p";
        let revision = if is_updated {
            "arena-7d4b9c"
        } else {
            "arena-5f6d8b"
        };
        let label = ("controller-revision-hash".to_owned(), revision.to_owned());
        pod.labels_mut().extend([label]);
    }
    let run = running().runs.remove(0);
    snapshot.runs = ["b4n8c", "q9w5d"]
        .map(|instance| in_place_scout(&run, instance))
        .into();
    snapshot
}

/// Builds a scout of the hook before an update in place, in the state of a run, for the pod with this instance ID.
pub(crate) fn in_place_scout(run: &HookRun, instance: &str) -> HookRun {
    let mut scout = scout(run, instance);
    scout.metadata.name = Some(format!("scout-inplace-hook-arena-5f6d8b-{instance}-empty"));
    let label = ("hookrun-type".to_owned(), "scout-inplace-step".to_owned());
    scout.labels_mut().extend([label]);
    scout
}

/// Builds a scout in the state of a run, for the pod with this instance ID.
pub(crate) fn scout(run: &HookRun, instance: &str) -> HookRun {
    let mut scout = run.clone();
    scout.metadata.name = Some(format!("scout-hook-arena-7d4b9c-{instance}-empty"));
    scout.metadata.uid = Some(format!("u-scout-{instance}"));
    let labels = [
        ("hookrun-type", "scout-step".to_owned()),
        ("tkex.tencent.com/pod-uid", format!("u-{instance}")),
        ("instance-id", instance.to_owned()),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value));
    scout.labels_mut().extend(labels);
    let intent = ("tkex.tencent.com/intent".to_owned(), "scout".to_owned());
    scout.annotations_mut().extend([intent]);
    for argument in scout.spec.args.iter_mut().flatten() {
        argument.value = Some(format!("arena-{instance}"));
    }
    scout
}

/// Builds a snapshot of a selected pod whose hook waits for the notice, which was created 10 s ago.
pub(crate) fn notified() -> Snapshot {
    let conditions = json!([available(1), condition("Progressing", "True", "Scaling", SCALING)]);
    let mut notice = run(players(json!({})), json!({}));
    notice.metadata.name = Some(NOTICE.to_owned());
    notice.metadata.creation_timestamp = Some(read(json!("2026-01-02T09:59:50Z")));
    let label = ("hookrun-type".to_owned(), "notice-step".to_owned());
    notice.labels_mut().extend([label]);
    let notes = [
        ("tkex.tencent.com/intent", "notice"),
        ("tkex.tencent.com/choice", "delete@2026-01-02T09:58:00Z"),
    ];
    let notes = notes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    notice.annotations_mut().extend(notes);
    let mut game = game(&conditions, json!({}));
    let strategy = json!({ "hook": { "templateName": "empty" }, "notice": { "templateName": "finish" } });
    game.spec.pre_delete_update_strategy = Some(read(strategy));
    snapshot(game, vec![notice])
}

/// Builds a snapshot whose hook cannot run.
pub(crate) fn blocked() -> Snapshot {
    because(
        "HookTemplateMissing",
        "its hook cannot run, because HookTemplate empty does not exist; create it",
    )
}

/// Builds a snapshot whose hook cannot run for this reason.
pub(crate) fn because(reason: &str, message: &str) -> Snapshot {
    let conditions = scaling_blocked(reason, message, "");
    snapshot(game(&conditions, waits("Pending", None, reason, message)), vec![])
}

/// Builds a snapshot of a complete workload with a hook that cannot run, for this reason.
pub(crate) fn unresolved(reason: &str) -> Snapshot {
    let mut snapshot = complete();
    let message = "spec.preDeleteUpdateStrategy.hook: HookTemplate empty is invalid";
    let status = snapshot.game.status.as_mut().unwrap();
    let unresolved = condition("HooksResolved", "False", reason, message);
    status.conditions.push(read(unresolved));
    snapshot
}

/// Builds a snapshot of a complete workload.
pub(crate) fn complete() -> Snapshot {
    let words = "all pods are at the update revision";
    let progressing = condition("Progressing", "True", "RolloutComplete", words);
    let mut game = game(&json!([available(2), progressing]), json!({}));
    game.spec.replicas = Some(3);
    let mut snapshot = snapshot(game, vec![]);
    for pod in &mut snapshot.pods {
        pod.metadata.annotations = None;
    }
    snapshot
}

/// Builds a snapshot of a workload with this condition, and one pod at an old revision.
pub(crate) fn with_condition(kind: &str, status: &str, reason: &str, message: &str) -> Snapshot {
    let mut conditions = vec![available(2)];
    conditions.retain(|known| known["type"] != kind);
    conditions.push(condition(kind, status, reason, message));
    if kind != "Progressing" {
        let words = "2 of 3 pods are updated";
        conditions.push(condition("Progressing", "True", "RollingOut", words));
    }
    let mut snapshot = complete();
    let replicas = snapshot.game.spec.replicas;
    snapshot.game = game(&json!(conditions), json!({ "updatedReplicas": 2 }));
    snapshot.game.spec.replicas = replicas;
    let pod = snapshot
        .pods
        .iter_mut()
        .find(|pod| pod.name_any() == "arena-x7k2p");
    let labels = pod.unwrap().labels_mut();
    labels.insert("controller-revision-hash".to_owned(), "arena-5f6d8b".to_owned());
    snapshot
}

/// Builds a snapshot of a workload whose rollout a person aborted: two pods must be rolled back, one has the earlier
/// revision.
pub(crate) fn rolled_back() -> Snapshot {
    let words = "the rollout to revision arena-7d4b9c was aborted; 2 pods are being rolled back to revision \
                 arena-5f6d8b";
    let mut snapshot = with_condition("UpdateBlocked", "True", "RolloutAborted", words);
    let stopped = |kind: &str, status: &str| condition(kind, status, "RolloutAborted", words);
    let status = snapshot.game.status.get_or_insert_default();
    status.conditions = read(json!([
        available(2),
        stopped("Progressing", "False"),
        stopped("UpdateBlocked", "True"),
    ]));
    status.current_revision = Some("arena-5f6d8b".to_owned());
    status.rollback = Some(read(json!({
        "fromRevision": "arena-7d4b9c", "toRevision": "arena-5f6d8b", "reason": "RolloutAborted",
        "startTime": "2026-01-02T09:58:00Z"
    })));
    snapshot
}

/// Builds a lifecycle hook with this trigger.
pub(crate) fn lifecycle_hook(name: &str, trigger: Value) -> Value {
    json!({ "name": name, "trigger": trigger, "hook": { "templateName": "empty" } })
}

/// Builds the trigger of a lifecycle hook that runs at this progress.
pub(crate) fn at(progress: Value) -> Value {
    json!({ "progressAvailableParams": { "progressPoint": progress } })
}

/// Builds the status entry of a lifecycle hook, with these extra fields.
pub(crate) fn lifecycle_entry(name: &str, phase: &str, extra: Value) -> Value {
    let mut entry = json!({ "name": name, "revision": "arena-7d4b9c", "phase": phase });
    merge(&mut entry, extra);
    entry
}

/// Builds a snapshot of a rollout with these lifecycle hooks and their status entries: 5 of 10 pods are updated.
pub(crate) fn lifecycle_hooks(hooks: &Value, entries: &Value) -> Snapshot {
    let words = "lifecycle hook smoke-test (50%): waiting for its verdict";
    let mut snapshot = with_condition("Progressing", "True", "LifecycleHookRunning", words);
    snapshot.game.spec.replicas = Some(10);
    snapshot.game.spec.lifecycle_hooks = Some(read(hooks.clone()));
    let status = snapshot.game.status.get_or_insert_default();
    status.lifecycle_hooks = read(entries.clone());
    status.updated_replicas = 5;
    (status.replicas, status.ready_replicas, status.available_replicas) = (10, 10, 10);
    snapshot
}

/// Builds a snapshot of a rollout whose lifecycle hook at 50% is running.
pub(crate) fn smoke_test() -> Snapshot {
    let hooks = json!([
        lifecycle_hook("migrate", json!({ "type": "Pre" })),
        lifecycle_hook("smoke-test", at(json!("50%"))),
        lifecycle_hook("announce", json!({ "type": "Post" })),
    ]);
    let migrated = json!({
        "attempts": 1, "hookRun": "lifecycle-arena-7d4b9c-2-migrate-1",
        "message": "HookRun lifecycle-arena-7d4b9c-2-migrate-1 succeeded"
    });
    let running = json!({
        "attempts": 1, "hookRun": "lifecycle-arena-7d4b9c-2-smoke-test-1", "startTime": "2026-01-02T09:58:00Z",
        "message": "waiting for the verdict of HookRun lifecycle-arena-7d4b9c-2-smoke-test-1"
    });
    let entries = json!([
        lifecycle_entry("migrate", "Successful", migrated),
        lifecycle_entry("smoke-test", "Running", running),
        lifecycle_entry("announce", "Waiting", json!({})),
    ]);
    lifecycle_hooks(&hooks, &entries)
}

/// Turns a snapshot into one of a workload with this policy, one of whose pods has this annotation of removal requests.
pub(crate) fn with_removal(mut snapshot: Snapshot, policy: &str, pod: &str, text: String) -> Snapshot {
    snapshot.game.spec.disruption = Some(read(json!({ "policy": policy })));
    let mut pods = snapshot.pods.iter_mut();
    let pod = pods.find(|known| known.name_any() == pod).unwrap();
    pod.annotations_mut().insert(REMOVAL_REQUESTED.to_owned(), text);
    snapshot
}

/// Adds a removal request of this type, by the node of the pod with this UID, to the status of a snapshot's workload.
pub(crate) fn with_node_request(snapshot: Snapshot, pod_uid: &str, type_: &str) -> Snapshot {
    with_unrecorded(snapshot, pod_uid, "node/node-1", type_)
}

/// Adds the `EvictionRequest` of a requester, for the pod with this UID, to the status of a snapshot's workload.
pub(crate) fn with_eviction_request(snapshot: Snapshot, pod_uid: &str, requester: &str) -> Snapshot {
    with_unrecorded(snapshot, pod_uid, requester, "EvictionRequest")
}

fn with_unrecorded(mut snapshot: Snapshot, pod_uid: &str, requester: &str, type_: &str) -> Snapshot {
    let status = snapshot.game.status.get_or_insert_default();
    status.removal_requests.push(read(json!({
        "podName": "arena", "podUID": pod_uid, "requester": requester, "type": type_,
        "requestTime": "2026-01-02T09:57:00Z"
    })));
    snapshot
}

/// Formats the removal requests of these requesters, made this many seconds ago.
pub(crate) fn removal_requests(made: &[(&str, RemovalType, i64)]) -> String {
    let mut requests = RemovalRequests::default();
    for (requester, type_, ago) in made {
        let at = Timestamp::from_second(now().as_second() - ago).unwrap();
        requests.record(requester, *type_, at).unwrap();
    }
    requests.text()
}

/// Deletes the workload of a snapshot, with or without the finalizer of guarded pods.
pub(crate) fn being_deleted(mut snapshot: Snapshot, is_guarded: bool) -> Snapshot {
    let metadata = &mut snapshot.game.metadata;
    metadata.deletion_timestamp = Some(read(json!("2026-01-02T09:58:00Z")));
    let finalizers = ["foregroundDeletion", ASK_BEFORE_REMOVAL];
    let count = if is_guarded { 2 } else { 1 };
    metadata.finalizers = Some(finalizers[..count].iter().map(ToString::to_string).collect());
    snapshot
}

/// Builds a snapshot of a paused workload.
pub(crate) fn paused() -> Snapshot {
    let message = "updates are paused at 2 of 3 pods; to continue, set spec.updateStrategy.paused to false";
    let mut snapshot = with_condition("Progressing", "False", "Paused", message);
    snapshot.game.spec.update_strategy.get_or_insert_default().paused = Some(true);
    snapshot
}

/// Builds a snapshot whose canary step waits for this reason.
pub(crate) fn canary(reason: &str, paused: bool) -> Snapshot {
    let mut snapshot = with_condition("Progressing", "False", reason, "canary step 2 pauses");
    let strategy = snapshot.game.spec.update_strategy.get_or_insert_default();
    strategy.paused = Some(paused);
    let steps = json!([{ "partition": 2 }, { "pause": {} }, { "partition": 0 }]);
    strategy.canary = Some(read(json!({ "steps": steps })));
    let status = snapshot.game.status.get_or_insert_default();
    status.current_step_index = Some(1);
    status.pause_conditions = read(json!([{ "reason": reason, "startTime": "2026-01-02T09:58:00Z" }]));
    let run = "canary-arena-7d4b9c-1-no-alerts";
    status.canary = Some(read(json!({ "currentStepHookRun": run })));
    snapshot
}

pub(crate) fn without_hook() -> Snapshot {
    let mut snapshot = complete();
    snapshot.game.spec.pre_delete_update_strategy = None;
    snapshot
}
