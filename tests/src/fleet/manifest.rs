//! Manifests that tests begin with.

use serde_json::{Value, json};

use super::GAME;

/// A workload: in-place updates, no hook, one container called `game`.
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

/// A hook that asks the pod itself until nobody plays: as many times as it takes.
pub fn until_empty() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "interval": "100ms", "successfulLimit": 1, "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}

/// A hook that asks the pod itself once: may it go now?
pub fn empty_now() -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": "players", "successCondition": "asInt(result) == 0",
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": "{$.players}" } }
        }]
    })
}

/// A hook that asks once for one word of the pod's document: is it so?
pub fn one_of(field: &str, wanted: &str) -> Value {
    json!({
        "args": [{ "name": "PodIP" }],
        "metrics": [{
            "name": field, "successCondition": format!("result == \"{wanted}\""),
            "provider": { "web": { "url": "http://{{ args.PodIP }}:9091", "jsonPath": format!("{{$.{field}}}") } }
        }]
    })
}

/// A part of a spec: the template asked before a pod is deleted.
pub fn hooked(template: &str) -> Value {
    json!({ "preDeleteUpdateStrategy": { "hook": { "templateName": template } } })
}
