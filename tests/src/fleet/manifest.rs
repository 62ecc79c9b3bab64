//! Initial manifests of the tests.

use serde_json::{Value, json};

use super::GAME;

/// Builds a workload: in-place updates, no hook, one container named `game`.
pub fn game(replicas: usize, extra: Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "tkex.tencent.com/v1alpha1",
        "kind": "GameDeployment",
        "metadata": { "name": GAME, "labels": { "app": GAME } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": GAME } },
            "template": {
                "metadata": { "labels": { "app": GAME } },
                "spec": { "containers": [{ "name": "game", "image": "game:v1", "ports": [{ "containerPort": 9091 }] }] }
            },
            "updateStrategy": { "type": "InplaceUpdate", "maxUnavailable": 2 }
        }
    });
    crate::merge(&mut manifest["spec"], extra);
    manifest
}

/// Builds a hook that queries the pod itself until it has no players, as often as it takes.
pub fn until_empty() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "interval": "100ms", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}

/// Builds a hook that queries the pod itself once and succeeds if it has no players.
pub fn empty_now() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}

/// Builds a hook that reads one field of the pod's document once and succeeds if it has the wanted value.
pub fn one_of(field: &str, wanted: &str) -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": field, "successCondition": format!("result == \"{wanted}\""),
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": format!("{{$.{field}}}") } }
        }]
    })
}

/// Builds the part of a spec that runs the template before a pod is deleted.
pub fn hooked(template: &str) -> Value {
    json!({ "preDeleteUpdateStrategy": { "hook": { "templateName": template } } })
}
