//! Manifests with which nothing is wrong.

use operator_tests::fleet::{GAME, game};
use operator_tests::{merge, web};
use serde_json::{Value, json};

use crate::api::Kind;

/// Condition of each hook. The server answers 45, or 1 while it refuses.
const CONDITION: &str = "asInt(result) > 30";

/// Builds a metric that asks a URL once.
pub(crate) fn asking(url: &str, more: Value) -> Value {
    let mut metric = web("allowed", url, json!({ "successCondition": CONDITION }));
    merge(&mut metric, more);
    metric
}

/// Builds a workload of this name.
pub(crate) fn named_game(name: &str, pods: usize, more: Value) -> Value {
    let text = game(pods, more).to_string().replace(GAME, name);
    serde_json::from_str(&text).unwrap()
}

/// Builds an object of any kind. Its hook posts to the URL; its action calls the pods of the workload `held`.
pub(crate) fn manifest(kind: Kind, name: &str, url: &str) -> Value {
    let mut manifest = match kind {
        Kind::ControllerRevision => json!({ "revision": 1, "data": {} }),
        Kind::ExecutionHook => {
            let selector = json!({ "podSelector": { "matchLabels": { "app": "held" } } });
            let selection = json!({ "podContainerSelector": selector });
            json!({ "spec": { "actionName": name, "podSelection": selection } })
        }
        Kind::GameDeployment => named_game(name, 1, json!({})),
        Kind::HookAction => json!({ "action": { "httpGet": { "port": 9091, "path": "/" } } }),
        Kind::HookRun | Kind::HookTemplate => {
            let metric = asking(url, json!({ "provider": { "web": { "method": "POST" } } }));
            json!({ "spec": { "metrics": [metric] } })
        }
        Kind::Pod => json!({ "spec": { "containers": [{ "name": "game", "image": "game:v1" }] } }),
    };
    let head = json!({ "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": { "name": name } });
    merge(&mut manifest, head);
    manifest
}
