//! Objects for both cores, of realistic size.

use serde_json::{Value, json};

/// The workload's name and UID.
pub(crate) const NAME: &str = "arena";
pub(crate) const UID: &str = "7b3d4f0e-0c1b-4d57-9c6a-3f1f3f6b9a01";
pub(crate) const NAMESPACE: &str = "games";

/// Builds a pod template with two containers.
pub(crate) fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": NAME, "tier": "ranked" }, "annotations": { "team": "arena" } },
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "containers": [
                {
                    "name": "game", "image": image,
                    "ports": [{ "name": "game", "containerPort": 7777, "protocol": "UDP" }, { "name": "hook", "containerPort": 9091 }],
                    "env": [{ "name": "REGION", "value": "eu-1" }, { "name": "MODE", "value": "ranked" }],
                    "resources": { "requests": { "cpu": "500m", "memory": "1Gi" }, "limits": { "cpu": "1", "memory": "1Gi" } },
                    "readinessProbe": { "httpGet": { "path": "/ready", "port": 9091 }, "periodSeconds": 5 },
                    "volumeMounts": [{ "name": "maps", "mountPath": "/maps" }],
                },
                {
                    "name": "voice", "image": "registry.example.com/arena/voice:v3",
                    "resources": { "requests": { "cpu": "50m", "memory": "64Mi" } },
                },
            ],
            "volumes": [{ "name": "maps", "configMap": { "name": "maps" } }],
        },
    })
}

/// Builds a GameDeployment with in-place updates, a tenth of its pods at a time.
pub(crate) fn workload(replicas: usize, hooks: Value) -> Value {
    let mut spec = json!({
        "replicas": replicas,
        "selector": { "matchLabels": { "app": NAME } },
        "template": template("registry.example.com/arena/game:v1"),
        "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": "10%" },
    });
    if let (Some(spec), Value::Object(hooks)) = (spec.as_object_mut(), hooks) {
        spec.extend(hooks);
    }
    json!({
        "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 1 },
        "spec": spec,
    })
}

/// Builds a pod at this revision that has been in service for a long time, as the API server returns it.
pub(crate) fn pod(number: usize, revision: &str) -> Value {
    let name = format!("{NAME}-{number:05}");
    let since = "2026-01-01T00:01:00Z";
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": since, "lastProbeTime": null });
    let conditions = [
        "PodScheduled",
        "Initialized",
        "InPlaceUpdateReady",
        "ContainersReady",
        "Ready",
    ]
    .map(condition);
    let container = |name: &str, image: &str| {
        json!({
            "name": name, "image": image, "imageID": format!("{image}@sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"),
            "containerID": format!("containerd://{name}-{number}"), "ready": true, "started": true, "restartCount": 0,
            "state": { "running": { "startedAt": "2026-01-01T00:00:30Z" } },
        })
    };
    let mut spec = template("registry.example.com/arena/game:v1")["spec"].clone();
    spec["nodeName"] = json!(format!("node-{:03}", number % 200));
    spec["readinessGates"] = json!([{ "conditionType": "InPlaceUpdateReady" }]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("0c8b2c52-8d57-4a5e-9f0b-{number:012}"),
            "resourceVersion": (100_000 + number).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "app": NAME, "tier": "ranked", "controller-revision-hash": revision,
                "tkex.bkbcs.tencent.com/gamedeployment-instance-id": format!("{number:05}"),
            },
            "annotations": { "team": "arena" },
            "ownerReferences": [{
                "apiVersion": "tkex.tencent.com/v1alpha1", "kind": "GameDeployment", "name": NAME, "uid": UID,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
        "status": {
            "phase": "Running",
            "podIP": format!("10.{}.{}.{}", number / 65_536, number / 256 % 256, number % 256), "hostIP": "10.200.0.1",
            "conditions": conditions,
            "containerStatuses": [
                container("game", "registry.example.com/arena/game:v1"),
                container("voice", "registry.example.com/arena/voice:v3"),
            ],
        },
    })
}

/// Builds a HookTemplate, or the spec of a HookRun: it queries a game server for its number of players.
pub(crate) fn hook() -> Value {
    json!({
        "args": [{ "name": "PodIP" }, { "name": "limit", "value": "0" }],
        "policy": "Parallel",
        "metrics": [{
            "name": "players", "interval": "30s", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": {
                "url": "http://{{args.PodIP}}:9091/players?limit={{ args.limit }}", "jsonPath": "{$.players}", "timeoutSeconds": 5,
                "headers": [{ "key": "X-Asked-By", "value": "hook-operator" }],
            } },
        }],
    })
}
